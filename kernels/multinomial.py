"""Multinomial counts of n draws over few categories, at a cost that hardly grows with n.

Categories have multiplicities m_u that add up to n; a replicate draws n of the n items with
replacement and counts the categories. Two facts make this cheap:

1. Independent Poisson(r m_u / n) counts are, given their total T, a multinomial of T draws.
2. Which draws are still missing, and whether a batch of them is taken or left, may depend on
   totals in any way: given all totals the categories of the draws are still independent, each with
   probability m_u / n.

So there are batches of falling rates, the first of n less four standard deviations, the others
halving down to `LEAST_RATE`, and a replicate that misses more than `SINGLES` draws, and at least as
many as the rate, takes a batch that is not larger than what it misses. The batches come in passes,
until no replicate misses more than `SINGLES`. The last draws are single ones. The result is exactly
multinomial but for the tables of `kernels.poisson` and the bias of `draws.scale_to_range`.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.kernels.draws import draw_words, replicate_keys, scale_to_range, seed_words
from herald_jax.kernels.poisson import poisson_tables
from herald_jax.types import pytree

ROOM = 4.0  # standard deviations
LEAST_RATE = 32.0
SINGLES = 64
RATES = 16  # more than any n up to 2^24 uses
COUNTS_A_CALL = 2**15  # of 4 bytes: a dozen arrays of them stay in the cache
UNROLLED = 8  # comparisons that one pass over all words makes
STAGE = 1 << 31  # stages from here on are those of this module: single draws, then batches


@pytree
class Batches:
    """What the counts of n draws over U categories are drawn from.

    Axis letters: U categories, V rates, the largest first. A count is found among the `size`
    thresholds of its law in two steps: comparisons with every 2^`bits`-th of them, which are the
    same for all replicates, then bisection.
    """

    used: jax.Array  # int32 [] how many of the V are used, the first ones
    fits: jax.Array  # int32 [V] the rates, rounded up
    last: jax.Array  # uint32 [...] thresholds, see `poisson.Tables`
    start: jax.Array  # int32 [V, U]
    size: jax.Array  # int32 [V, U]
    least: jax.Array  # int32 [V, U]
    bits: jax.Array  # int32 [V]
    turns: jax.Array  # int32 [V] comparisons with every 2^bits-th, `UNROLLED` a turn
    above: jax.Array  # int32 [U] items up to and with a category
    n: jax.Array  # uint32 []


def batches(times: np.ndarray) -> Batches:
    """Tables for one list of multiplicities.

    Args:
        times: int64 [U], multiplicities, at least 1, in all 1 .. 2^24.

    Returns:
        The tables, padded to few shapes.
    """
    n = int(times.sum())
    rates = batch_rates(n)
    # Multiples of 4, at most four sizes an octave: each compiles a program.
    step = max(4, 1 << max(0, len(times).bit_length() - 3))
    padded = -(-len(times) // step) * step
    multiples = np.zeros(padded)
    multiples[: len(times)] = times
    tables = poisson_tables((rates[:, None] * multiples / n).ravel())
    # A search may look as far behind the end of a table as the largest is long.
    largest = tables.size.reshape(len(rates), padded).max(axis=1)
    length = 1 << 2 * max(6, ((len(tables.last) + 2 * int(largest.max())).bit_length() + 1) // 2)
    unused = RATES - len(rates)

    def by_rate(values: np.ndarray) -> jax.Array:
        rows = values.reshape(len(rates), -1)
        return jnp.asarray(np.pad(rows, ((0, unused), (0, 0))).astype(np.int32))

    # A comparison costs about a thirtieth of a step of bisection.
    bits = np.maximum(np.frexp(largest / 32)[1] - 1, 0)
    turns = -(-(largest >> bits) // UNROLLED)
    above = np.full(padded, n, np.int32)
    above[: len(times)] = np.cumsum(times)
    return Batches(
        used=jnp.asarray(len(rates), jnp.int32),
        fits=by_rate(np.ceil(rates))[:, 0],
        last=jnp.asarray(np.pad(tables.last, (0, length - len(tables.last)))),
        start=by_rate(tables.start),
        size=by_rate(tables.size),
        least=by_rate(tables.least),
        bits=by_rate(bits)[:, 0],
        turns=by_rate(turns)[:, 0],
        above=jnp.asarray(above),
        n=jnp.asarray(n, jnp.uint32),
    )


def batch_rates(n: int) -> np.ndarray:
    """The rates of batches, in draws.

    Args:
        n: 1 .. 2^24, draws of a replicate.

    Returns:
        float64 [V], falling.
    """
    first = n - ROOM * np.sqrt(n)
    # After the first batch four standard deviations are missing on the average, seldom six.
    rates = [LEAST_RATE]
    while rates[-1] * 2 <= min(1.5 * ROOM * np.sqrt(n), first):
        rates.append(rates[-1] * 2)
    return np.array([*([first] if first > rates[-1] else []), *reversed(rates)])


@jax.jit
def category_counts(tables: Batches, seed: jax.Array, replicate: jax.Array) -> jax.Array:
    """How often each category is drawn in n draws.

    Args:
        tables: from `batches`.
        seed: uint32 [2], from `draws.seed_words`.
        replicate: uint32 [R], numbers of the replicates.

    Returns:
        int32 [U, R], columns adding up to n.
    """
    chex.assert_rank([tables.fits, tables.start, replicate], [1, 2, 1])
    categories, block = tables.start.shape[1], len(replicate)
    number = jnp.arange(categories, dtype=jnp.uint32)
    words = jax.vmap(draw_words, in_axes=(0, 0, None), out_axes=1)

    def keys(batch: jax.Array) -> tuple[jax.Array, jax.Array]:
        stage = jnp.uint32(STAGE) + batch
        return jax.vmap(replicate_keys, in_axes=(None, 0, None))(seed, replicate, stage)

    def unfinished(state: _State) -> jax.Array:
        return jnp.any(state.left > SINGLES)

    def take(state: _State) -> _State:
        word = words(state.offset, state.key, number)
        drawn = tables.least[state.rate][:, None] + _smaller(tables, state.rate, word)
        total = jnp.sum(drawn, axis=0)
        # What others miss decides which batches are drawn, but not who takes them.
        misses = (state.left > SINGLES) & (state.left >= tables.fits[state.rate])
        taken = misses & (total <= state.left)
        left = state.left - jnp.where(taken, total, 0)
        last = state.rate + 1 == tables.used
        first = jnp.sum((tables.fits > jnp.max(left)).astype(jnp.int32))
        batch = state.batch + jnp.where(last, RATES - state.rate + first, 1).astype(jnp.uint32)
        offset, key = keys(batch)
        return _State(
            batch=batch,
            rate=jnp.where(last, first, state.rate + 1),
            counts=state.counts + jnp.where(taken[None], drawn, 0),
            left=left,
            offset=offset,
            key=key,
        )

    n = tables.n.astype(jnp.int32)
    offset, key = keys(jnp.uint32(1))
    begin = _State(
        batch=jnp.uint32(1),
        rate=jnp.int32(0),
        counts=jnp.zeros((categories, block), jnp.int32),
        left=jnp.full(block, n),
        offset=offset,
        key=key,
    )
    end = jax.lax.while_loop(unfinished, take, begin)

    draw = jnp.arange(max(SINGLES, UNROLLED), dtype=jnp.uint32)
    item = scale_to_range(words(*keys(jnp.uint32(0)), draw), tables.n)
    # Items behind the last belong to no category.
    item = jnp.where(draw.astype(jnp.int32)[:, None] < end.left[None], item, n)

    def add(turn: jax.Array, up_to: jax.Array) -> jax.Array:
        for draw in range(UNROLLED):
            drawn = item[turn * UNROLLED + draw][None]
            up_to += (drawn < tables.above[:, None]).astype(jnp.int32)
        return up_to

    turns = (jnp.max(end.left) + UNROLLED - 1) // UNROLLED
    up_to = jax.lax.fori_loop(0, turns, add, jnp.zeros((categories, block), jnp.int32))
    return end.counts + jnp.diff(up_to, axis=0, prepend=jnp.int32(0))


@pytree
class _State:
    """Where R replicates stand after some batches.

    `offset` and `key` are those of the next batch: as part of the state they are worked out once a
    batch and not, as XLA on CPU would, once a word.
    """

    batch: jax.Array  # uint32 [] 1 + RATES * pass + rate of the next batch
    rate: jax.Array  # int32 [] which of the rates it has
    counts: jax.Array  # int32 [U, R]
    left: jax.Array  # int32 [R] draws that are missing
    offset: jax.Array  # uint32 [R]
    key: jax.Array  # uint32 [R]


def _smaller(tables: Batches, rate: jax.Array, word: jax.Array) -> jax.Array:
    """How many thresholds of a batch's laws are smaller than uint32 [U, R] words; int32 [U, R]."""
    start, size = tables.start[rate], tables.size[rate]
    bits = tables.bits[rate]

    def threshold(probe: jax.Array, start: jax.Array, size: jax.Array) -> jax.Array:
        """The `probe`-th threshold; behind the last one that no word is larger than."""
        found = tables.last.at[start + probe - 1].get(mode="promise_in_bounds")
        return jnp.where(probe <= size, found, jnp.uint32(2**32 - 1))

    def every(turn: jax.Array) -> jax.Array:
        """uint32 [UNROLLED, U]: the thresholds of one turn of comparisons."""
        probe = (turn * UNROLLED + jnp.arange(1, UNROLLED + 1)) << bits
        return threshold(probe[:, None], start[None], size[None])

    def compare(turn: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        found, row = state
        for k in range(UNROLLED):
            found += (word > row[k][:, None]).astype(jnp.int32)
        return found, every(turn + 1)

    def halve(step: jax.Array, found: jax.Array) -> jax.Array:
        probe = found + (1 << (bits - 1 - step))
        return jnp.where(word > threshold(probe, start[:, None], size[:, None]), probe, found)

    begin = (jnp.zeros(word.shape, jnp.int32), every(jnp.int32(0)))
    found, _ = jax.lax.fori_loop(0, tables.turns[rate], compare, begin)
    return jax.lax.fori_loop(0, bits, halve, found << bits)


def resampled_categories(
    times: np.ndarray, *, seed: int, replicates: int, block: int | None = None
) -> np.ndarray:
    """How often each category is drawn in n draws, for many replicates.

    Args:
        times: int64 [U], multiplicities, at least 1, in all n <= 2^24.
        seed: 0 .. 2^64 - 1.
        replicates: number of replicates.
        block: replicates per call of the device, chosen by size when None; never of influence on
            the result.

    Returns:
        int32 [U, replicates], columns adding up to n.
    """
    tables = batches(times)
    block = block or max(64, COUNTS_A_CALL // len(tables.above) // 64 * 64)
    counts = np.empty((len(times), replicates), np.int32)
    for first in range(0, replicates, block):
        numbers = np.arange(first, first + block, dtype=np.uint32)
        some = np.asarray(category_counts(tables, seed_words(seed), numbers))
        counts[:, first : first + block] = some[: len(times), : replicates - first]
    return counts
