"""The k best of many integer scores, equal scores by lowest position.

Scores are int32, so that equal means equal on every device. XLA selects from float32 on the CPU but
sorts int32 in full (a hundred times slower at 20,000 scores), so the selection itself compares
float32 numbers whose *bits* are the integers: the order of positive floats is the order of their
bits. No score is rounded by that.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from herald_jax.types import PAD

# Stands for "not a candidate" and orders below every score.
NO_SCORE = int(np.iinfo(np.int32).min)

# Bits of the smallest normal float32; smaller bit patterns are subnormal and may flush to zero.
_SMALLEST_NORMAL = 0x0080_0000

# The largest magnitude a score may have, so that its bits are those of a finite float32.
MAX_SCORE = 0x7F7F_FFFF - _SMALLEST_NORMAL

# Scores a block of the first stage; rows of scores are multiples of this long.
BLOCK = 128


def exclude_codes(scores: jax.Array, codes: jax.Array) -> jax.Array:
    """Takes positions out of the running.

    Args:
        scores: int32 [n, W].
        codes: int32 [n, X] positions to exclude in each row; PAD and positions outside the row are
            ignored.

    Returns:
        int32 [n, W], NO_SCORE at the excluded positions.
    """
    chex.assert_rank([scores, codes], 2)
    chex.assert_type([scores, codes], jnp.int32)
    chex.assert_equal_shape_prefix([scores, codes], 1)
    rows, width = scores.shape
    # A negative index would count from the end: send PAD past it, where "drop" discards it.
    position = jnp.where(codes < 0, width, codes)
    row = jnp.arange(rows, dtype=jnp.int32)[:, None]
    return scores.at[row, position].set(NO_SCORE, mode="drop")


def topk(scores: jax.Array, *, k: int) -> tuple[jax.Array, jax.Array]:
    """Selects the k best positions of each row, by score descending, then position ascending.

    Two stages: the k blocks with the largest maxima hold the k best scores. (Were one of these in
    another block, each of the k blocks would hold a score that precedes it.)

    Args:
        scores: int32 [n, W], W a multiple of BLOCK, magnitudes at most MAX_SCORE; NO_SCORE marks a
            position that is no candidate.
        k: how many to select.

    Returns:
        Positions int32 [n, k], PAD where candidates run out, and their scores int32 [n, k],
        NO_SCORE there.

    Raises:
        ValueError: k is not positive or W is not a multiple of BLOCK.
    """
    chex.assert_rank(scores, 2)
    chex.assert_type(scores, jnp.int32)
    rows, width = scores.shape
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if width % BLOCK:
        raise ValueError(f"rows of {width} scores are not a multiple of {BLOCK} long")
    blocks = scores.reshape(rows, width // BLOCK, BLOCK)
    if blocks.shape[1] > k:
        _, chosen = lax.top_k(_ordered_float(blocks.max(axis=2)), k)
        # Ascending, so that among the selected blocks too the lowest position comes first.
        chosen = jnp.sort(chosen, axis=1)
        blocks = jnp.take_along_axis(blocks, chosen[:, :, None], axis=1)
    else:
        chosen = jnp.broadcast_to(
            jnp.arange(blocks.shape[1], dtype=jnp.int32), (rows, blocks.shape[1])
        )
    candidates = blocks.reshape(rows, -1)
    keep = min(k, candidates.shape[1])
    _, index = lax.top_k(_ordered_float(candidates), keep)
    best = jnp.take_along_axis(candidates, index, axis=1)
    position = jnp.take_along_axis(chosen, index // BLOCK, axis=1) * BLOCK + index % BLOCK
    position = jnp.where(best == NO_SCORE, PAD, position)
    missing = ((0, 0), (0, k - keep))
    return (
        jnp.pad(position, missing, constant_values=PAD),
        jnp.pad(best, missing, constant_values=NO_SCORE),
    )


def _ordered_float(scores: jax.Array) -> jax.Array:
    """Maps int32 scores to float32 in the same order, without ties of unequal scores.

    A score s >= 0 becomes the float with bits s + 2^23, a score s < 0 minus the float of -s - 1:
    every value is normal, and zero has one representation, not two.
    """
    magnitude = jnp.where(scores < 0, -(scores + 1), scores)
    positive = lax.bitcast_convert_type(magnitude + _SMALLEST_NORMAL, jnp.float32)
    signed = jnp.where(scores < 0, -positive, positive)
    return jnp.where(scores == NO_SCORE, -jnp.inf, signed)
