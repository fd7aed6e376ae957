"""Uniform words and indices from a counter: the random stream of the bootstrap.

A word is a function of (seed, replicate, stage, number) alone, in 32-bit unsigned arithmetic, so
that it is the same on every device and for every way to cut replicates or draws into blocks. The
mixing steps are those of `triple32` (three multiply and xor-shift rounds, a bijection of 32-bit
words with low avalanche bias: C. Wellons, hash-prospector), with a key of two words per replicate
and stage: one word offsets the counter, the other enters between the rounds, so that two
replicates whose counters overlap still draw apart. The stream is fixed: changing it changes
published intervals.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np

MAX_INDICES = 2**24
"""Largest n: sums of n signed bytes still fit an int32."""


def _mix(word: jax.Array, key: jax.Array) -> jax.Array:
    """Bijection of `word` for each `key`; both uint32, of shapes that broadcast."""
    word = word ^ (word >> 17)
    word = word * jnp.uint32(0xED5AD4BB)
    word = (word ^ (word >> 11)) + key
    word = word * jnp.uint32(0xAC4C1B51)
    word = word ^ (word >> 15)
    word = word * jnp.uint32(0x31848BAB)
    return word ^ (word >> 14)


def seed_words(seed: int) -> np.ndarray:
    """Splits a seed into the two words that the draws take.

    Args:
        seed: 0 .. 2^64 - 1.

    Returns:
        uint32 [2], low word first.

    Raises:
        ValueError: the seed is out of range.
    """
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be in 0 .. 2^64 - 1, got {seed}")
    return np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint32)


def scale_to_range(word: jax.Array, n: jax.Array) -> jax.Array:
    """floor(word * n / 2^32): 32 random bits as an index below n.

    The 56-bit product is taken in 16-bit limbs. Each index receives the floor or the ceiling of
    2^32 / n words, so its probability is within 2^-32 of 1/n: a relative error below n / 2^32,
    which is 4e-6 at n = 2^14, the most that a whole replicate is drawn from in this way.

    Args:
        word: uint32 [...].
        n: uint32 [], 1 .. MAX_INDICES.

    Returns:
        int32 [...], 0 .. n - 1.
    """
    chex.assert_type([word, n], jnp.uint32)
    chex.assert_rank(n, 0)
    low_half = jnp.uint32(0xFFFF)
    word_high, word_low = word >> 16, word & low_half
    n_high, n_low = n >> 16, n & low_half
    middle = word_high * n_low + ((word_low * n_low) >> 16)
    carry = (word_low * n_high + (middle & low_half)) >> 16
    index: jax.Array = word_high * n_high + (middle >> 16) + carry
    return index.astype(jnp.int32)


def replicate_keys(
    seed: jax.Array, replicate: jax.Array, stage: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The two words that set one stage of one replicate apart from all others.

    Args:
        seed: uint32 [2], from `seed_words`.
        replicate: uint32 [], number of the replicate.
        stage: uint32 [], number of the stage; stages of one replicate draw apart.

    Returns:
        offset and key, uint32 []; for one seed and stage no two replicates have the same offset.
    """
    chex.assert_shape(seed, (2,))
    chex.assert_rank([replicate, stage], 0)
    chex.assert_type([seed, replicate, stage], jnp.uint32)
    first = _mix(seed[0] ^ jnp.uint32(0x243F6A88), seed[1])
    second = _mix(seed[1] ^ jnp.uint32(0x85A308D3), first)
    spread = stage * jnp.uint32(0x9E3779B9)
    offset = _mix(replicate ^ first, second + spread)
    return offset, _mix(replicate ^ second, (first ^ jnp.uint32(0x13198A2E)) + spread)


def draw_words(offset: jax.Array, key: jax.Array, number: jax.Array) -> jax.Array:
    """Uniform words of one stage of one replicate.

    Args:
        offset: uint32 [], from `replicate_keys`.
        key: uint32 [], likewise.
        number: uint32 [N], numbers of the words.

    Returns:
        uint32 [N].
    """
    chex.assert_rank([offset, key, number], [0, 0, 1])
    chex.assert_type([offset, key, number], jnp.uint32)
    return _mix(number + offset, key)


def draw_indices(offset: jax.Array, key: jax.Array, draw: jax.Array, n: jax.Array) -> jax.Array:
    """The indices that one replicate draws, with replacement, from 0 .. n - 1.

    Args:
        offset: uint32 [], from `replicate_keys`.
        key: uint32 [], likewise.
        draw: uint32 [N], numbers of the draws.
        n: uint32 [], 1 .. MAX_INDICES.

    Returns:
        int32 [N].
    """
    return scale_to_range(draw_words(offset, key, draw), n)
