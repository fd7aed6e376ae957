"""Multinomial counts of n draws over few categories, at a cost that hardly grows with n.

Categories have multiplicities m_u that add up to n; a replicate draws n of the n items with
replacement and counts the categories. Two facts make this cheap:

1. Independent Poisson(r m_u / n) counts are, given their total T, a multinomial of T draws.
2. Which draws are still missing, and whether a batch of them is taken or left, may depend on
   totals in any way: given all totals the categories of the draws are still independent, each with
   probability m_u / n.

So a replicate takes batches of about r draws, r the largest rate of a fixed list that leaves four
standard deviations of room, until fewer than `SINGLES` draws are missing; a batch that turns out
larger than what is missing is left. The last draws are single ones. The result is exactly
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
SINGLES = 54  # the most draws that are too few for a batch
RATES = 32  # more than any n below 2^24 uses
ROUNDS = 64  # a replicate takes about 8; it leaves one batch in 30,000
COUNTS_A_CALL = 2**15  # of 4 bytes: a dozen arrays of them stay in the cache
STAGE = 1 << 31  # stages from here on are those of this module


@pytree
class Batches:
    """What the counts of n draws over U categories are drawn from.

    Axis letters: U categories, V rates, the largest first.
    """

    rates: jax.Array  # int32 [] how many of the V are used, the first ones
    needs: jax.Array  # int32 [V] fewest missing draws for which a rate is taken, falling
    last: jax.Array  # uint32 [...] thresholds, see `poisson.Tables`
    start: jax.Array  # int32 [U, V]
    size: jax.Array  # int32 [U, V]
    least: jax.Array  # int32 [U, V]
    steps: jax.Array  # int32 [V] bits of the largest size
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
    rates = _rates(n)
    # Multiples of 4, at most eight sizes an octave: each compiles a program.
    step = max(4, 1 << max(0, len(times).bit_length() - 4))
    padded = -(-len(times) // step) * step
    multiples = np.zeros(padded)
    multiples[: len(times)] = times
    tables = poisson_tables((multiples[:, None] * rates / n).ravel())
    # A search may look as far behind the end of a table as the largest is long.
    length = max(1 << 12, 1 << (len(tables.last) + int(tables.size.max())).bit_length())
    shape, unused = (padded, len(rates)), RATES - len(rates)

    def by_rate(values: np.ndarray) -> jax.Array:
        return jnp.asarray(np.pad(values.reshape(shape), ((0, 0), (0, unused))))

    largest = tables.size.reshape(shape).max(axis=0)
    above = np.full(padded, n, np.int32)
    above[: len(times)] = np.cumsum(times)
    return Batches(
        rates=jnp.asarray(len(rates), jnp.int32),
        needs=jnp.asarray(np.pad(_needs(rates), (0, unused))),
        last=jnp.asarray(np.pad(tables.last, (0, length - len(tables.last)))),
        start=by_rate(tables.start),
        size=by_rate(tables.size),
        least=by_rate(tables.least),
        steps=jnp.asarray(np.pad(np.frexp(largest.astype(np.float64))[1], (0, unused))),
        above=jnp.asarray(above),
        n=jnp.asarray(n, jnp.uint32),
    )


def _rates(n: int) -> np.ndarray:
    """float64 [V], falling: n less its room, then powers of the square root of two."""
    first = n - ROOM * np.sqrt(n)
    # Less than this is missing after the first batch, but for one replicate in 30,000.
    rest = min(2 * ROOM * np.sqrt(n), first)
    rates = [LEAST_RATE]
    while rates[-1] * 1.5 < rest:
        # Every other one is a power of two, the one between is its product with a float.
        rates.append(rates[-2] * 2 if len(rates) > 1 else LEAST_RATE * np.sqrt(2.0))
    return np.array([*([first] if first > rates[-1] else []), *reversed(rates)])


def _needs(rates: np.ndarray) -> np.ndarray:
    """int32 [V]: the fewest missing draws for which a rate is taken."""
    return np.ceil(rates + ROOM * np.sqrt(rates)).astype(np.int32)


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
    chex.assert_rank([tables.needs, tables.start, replicate], [1, 2, 1])
    categories = tables.start.shape[0]
    number = jnp.arange(categories, dtype=jnp.uint32)

    def words(stage: jax.Array, number: jax.Array) -> jax.Array:
        keys = jax.vmap(replicate_keys, in_axes=(None, 0, None))(seed, replicate, stage)
        return jax.vmap(draw_words, in_axes=(0, 0, None), out_axes=1)(*keys, number)

    def chosen(left: jax.Array) -> jax.Array:
        """The largest rate that leaves room; `rates` when there is none."""
        return jnp.sum((tables.needs[:, None] > left[None]).astype(jnp.int32), axis=0)

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        batch, _, left = state
        return (batch < ROUNDS) & jnp.any(chosen(left) < tables.rates)

    def take(
        state: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        batch, counts, left = state
        rate = chosen(left)
        taken = rate < tables.rates
        rate = jnp.minimum(rate, tables.rates - 1)
        steps = jnp.max(jnp.where(taken, tables.steps[rate], 0))
        start, size, least = (t[:, rate] for t in (tables.start, tables.size, tables.least))
        word = words(jnp.uint32(STAGE) + batch, number)
        drawn = least + _smaller(tables.last, start, size, steps, word)
        total = jnp.sum(drawn, axis=0)
        taken &= total <= left
        counts += jnp.where(taken[None], drawn, 0)
        return batch + 1, counts, left - jnp.where(taken, total, 0)

    n = tables.n.astype(jnp.int32)
    none = jnp.zeros((categories, len(replicate)), jnp.int32)
    start = (jnp.uint32(0), none, jnp.full(len(replicate), n))
    _, counts, left = jax.lax.while_loop(unfinished, take, start)

    single = words(jnp.uint32(STAGE + ROUNDS), jnp.arange(SINGLES, dtype=jnp.uint32))
    above = tables.above[:, None]
    below = jnp.concatenate([jnp.zeros((1, 1), jnp.int32), above[:-1]])

    def add(draw: jax.Array, counts: jax.Array) -> jax.Array:
        item = scale_to_range(single[draw], tables.n)
        # Items behind the last belong to no category.
        item = jnp.where(draw < left, item, n)[None]
        return counts + ((below <= item) & (item < above)).astype(jnp.int32)

    return jax.lax.fori_loop(0, jnp.max(left), add, counts)


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
    block = block or max(64, COUNTS_A_CALL // tables.start.shape[0] // 64 * 64)
    counts = np.empty((len(times), replicates), np.int32)
    for first in range(0, replicates, block):
        numbers = np.arange(first, first + block, dtype=np.uint32)
        some = np.asarray(category_counts(tables, seed_words(seed), numbers))
        counts[:, first : first + block] = some[: len(times), : replicates - first]
    return counts


def _smaller(
    last: jax.Array, start: jax.Array, size: jax.Array, steps: jax.Array, word: jax.Array
) -> jax.Array:
    """How many of a table's thresholds are smaller than a word, by bisection.

    Args:
        last: uint32 [...], tables in rising order, one behind the other.
        start: int32 [U, R], where the table begins.
        size: int32 [U, R], its length, below 2^steps.
        steps: int32 [].
        word: uint32 [U, R].

    Returns:
        int32 [U, R].
    """

    def halve(step: jax.Array, found: jax.Array) -> jax.Array:
        probe = found + (1 << (steps - 1 - step))
        threshold = last.at[start + probe - 1].get(mode="promise_in_bounds")
        return jnp.where((probe <= size) & (threshold < word), probe, found)

    return jax.lax.fori_loop(0, steps, halve, jnp.zeros_like(start))
