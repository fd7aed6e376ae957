"""Sums over n rows drawn with replacement, for many replicates: counts times digits.

Up to `INDICES` rows, n uniform indices are drawn and counted. Beyond, most draws are made as
independent Poisson counts of all rows, at a rate that leaves room, and uniform indices are drawn
for what is missing. Given its total, a batch of independent Poisson counts of equal rates is a
multinomial of that many draws; so is the sum of the two. Where a batch is larger than the number
of draws, or far smaller, it is drawn again: totals alone decide that, and leave the rows of the
draws as independent as they were. Hash and comparisons run in vector registers at a fraction of
what it costs to count an index in memory.

Above `TILE` rows, whose counts stay in the cache, the n draws are first shared out over tiles of
about equal size (`kernels.multinomial`), and each tile makes its share of draws so.
"""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.kernels.draws import draw_indices, draw_words, replicate_keys, seed_words
from herald_jax.kernels.limbs import needed_limbs, put_together, signed_digits
from herald_jax.kernels.multinomial import Batches, batches, category_counts
from herald_jax.kernels.poisson import poisson_tables
from herald_jax.kernels.threads import in_threads

INDICES = 2**10
SPARE = 16  # places behind the rows of a tile
TILE = 2**14 - SPARE
ROOM = 4.0  # standard deviations of the draws that are missing: one batch in 15,000 is drawn again
COUNTS = 12  # thresholds of a Poisson law of rate 1 or less: P(X > 12) is below 2^-33
COUNTS_A_CALL = 2**22
REDRAWN = 32  # replicates of the call that draws some of them again, at the least


# Three steps, each a program of its own: within a larger one XLA on CPU works out what a step
# returns once for each use of it, and the keys once for each draw.


@jax.jit
def stage_keys(seed: jax.Array, replicate: jax.Array, stage: jax.Array) -> tuple[jax.Array, ...]:
    """`draws.replicate_keys` of several replicates.

    Args:
        seed: uint32 [2], from `draws.seed_words`.
        replicate: uint32 [R], numbers of the replicates.
        stage: uint32 [].

    Returns:
        uint32 [R] offsets and uint32 [R] keys.
    """
    return jax.vmap(replicate_keys, in_axes=(None, 0, None))(seed, replicate, stage)


@partial(jax.jit, static_argnames="wide")
def poisson_counts(
    offset: jax.Array, key: jax.Array, last: jax.Array, rows: jax.Array, *, wide: int
) -> jax.Array:
    """Independent Poisson counts of the rows of a tile.

    Args:
        offset: uint32 [R], from `stage_keys`.
        key: uint32 [R], likewise.
        last: uint32 [K], thresholds of the law (`poisson.Tables`), whose least count is 0.
        rows: uint32 [], rows of the tile.
        wide: N, at least `rows`.

    Returns:
        int8 [R, N], 0 from `rows` on.
    """
    chex.assert_rank([offset, key, last, rows], [1, 1, 1, 0])
    row = jnp.arange(wide, dtype=jnp.uint32)
    word = jax.vmap(draw_words, in_axes=(0, 0, None))(offset, key, row)
    larger = jnp.zeros(word.shape, jnp.int32)
    for threshold in last:
        larger += (word > threshold).astype(jnp.int32)
    return jnp.where((row < rows)[None], larger, 0).astype(jnp.int8)


@partial(jax.jit, static_argnames=("wide", "most"))
def missing_draws(
    counts: jax.Array | None,
    draws: jax.Array,
    rows: jax.Array,
    limit: jax.Array,
    offset: jax.Array,
    key: jax.Array,
    *,
    wide: int,
    most: int,
) -> tuple[jax.Array, jax.Array]:
    """Uniform rows for the draws that counts leave to be made.

    Args:
        counts: int8 [R, N], 0 from `rows` on, or None when no draw is made yet.
        draws: int32 [R], how many draws each replicate makes.
        rows: uint32 [], rows to draw from, at most N - `SPARE`.
        limit: int32 [], the most that may be missing.
        offset: uint32 [R], from `stage_keys`.
        key: uint32 [R], likewise.
        wide: N.
        most: M, at least `limit`.

    Returns:
        int32 [R, M], places in counts of [R * N], behind the rows for draws that are not missing;
        and bool [R], whether 0 .. `limit` are missing.
    """
    chex.assert_rank([draws, rows, limit, offset, key], [1, 0, 0, 1, 1])
    chex.assert_type([draws, rows, limit], [jnp.int32, jnp.uint32, jnp.int32])
    missing = draws
    if counts is not None:
        # A product with ones is the quickest sum of bytes that XLA on CPU knows.
        missing -= _products(jnp.ones((16, wide), jnp.int8), counts)[0]
    draw = jnp.arange(most, dtype=jnp.uint32)
    row = jax.vmap(draw_indices, in_axes=(0, 0, None, None))(offset, key, draw, rows)
    # Several places for what is not missing: a core adds to one place again only after a wait.
    behind = (rows + draw % SPARE).astype(jnp.int32)[None]
    row = jnp.where(draw.astype(jnp.int32)[None] < missing[:, None], row, behind)
    first = wide * jnp.arange(len(draws), dtype=jnp.int32)
    return row + first[:, None], (missing >= 0) & (missing <= limit)


@jax.jit
def counted_sums(digits: jax.Array, counts: jax.Array | None, places: jax.Array) -> jax.Array:
    """Sums of the rows that each replicate draws from one tile.

    sums[l, r] = sum_i c[r, i] digits[l, i], c[r, i] the times that replicate r draws row i.

    Args:
        digits: int8 [L, N], 0 behind the rows of the tile.
        counts: int8 [R, N], from `poisson_counts`, or None.
        places: int32 [R, most], from `missing_draws`.

    Returns:
        int32 [L, R], exact.
    """
    chex.assert_rank([digits, places], 2)
    chex.assert_type([digits, places], [jnp.int8, jnp.int32])
    block, wide = len(places), digits.shape[1]
    if counts is None:
        counts = jnp.zeros((block, wide), jnp.int8)
    # One flat scatter into bytes: XLA on CPU runs it faster than one with two indices, and bytes
    # stay in the cache. A row is drawn more than 127 times with probability below 1 / 128!; the
    # count behind the rows may wrap, but multiplies zeros.
    added = counts.reshape(-1).at[places.reshape(-1)].add(jnp.int8(1), mode="promise_in_bounds")
    return _products(digits, added.reshape(block, wide))


def _products(left: jax.Array, right: jax.Array) -> jax.Array:
    """int32 [L, R] of int8 [L, N] and int8 [R, N]."""
    contracted = (((1,), (1,)), ((), ()))
    return jax.lax.dot_general(left, right, contracted, preferred_element_type=jnp.int32)


def resampled_sums(
    columns: list[np.ndarray], *, seed: int, replicates: int, block: int | None = None
) -> np.ndarray:
    """Sums of the n rows that each replicate draws from n rows.

    Args:
        columns: D arrays, int32 [n], n from 1 to `draws.MAX_INDICES`; from `limbs.fixed_point`.
        seed: 0 .. 2^64 - 1.
        replicates: number of replicates.
        block: replicates per call of the device, chosen by size when None; never of influence on
            the result.

    Returns:
        float64 [D, replicates], exact.
    """
    tiles = _Tiles(columns, seed_words(seed))
    block = block or _block(tiles.wide, replicates)
    firsts = range(0, replicates, block)

    def some(call: int) -> np.ndarray:
        return tiles.sums(np.arange(firsts[call], firsts[call] + block, dtype=np.uint32), call)

    # Scattering takes one core: several calls at a time use all of them.
    return np.concatenate(in_threads(some, range(len(firsts))), axis=1)[:, :replicates]


class _Tiles:
    """Digits of rows in tiles, on all devices of this process, which take turns."""

    def __init__(self, columns: list[np.ndarray], seed: np.ndarray) -> None:
        n = len(columns[0])
        count = -(-n // TILE)
        self.seed, self.limbs = seed, [needed_limbs(column) for column in columns]
        self.sizes = n // count + (np.arange(count) < n % count).astype(np.int64)
        self.wide, deep = _padded(int(self.sizes[0]), sum(self.limbs))
        self.shares: Batches | None = batches(self.sizes) if count > 1 else None
        self.last = np.empty(0, np.uint32)
        self.limit = self.most = self.wide
        if n > INDICES:
            # A tile's share of the draws varies as its batch does.
            room = ROOM if self.shares is None else ROOM * np.sqrt(2.0)
            rows = n // count
            self.limit = int(2 * room * np.sqrt(rows))
            self.most = int(2 * room * np.sqrt(self.wide))
            thresholds = poisson_tables(np.array([max(0.0, 1 - room / np.sqrt(rows))])).last
            self.last = np.full(COUNTS, 2**32 - 1, np.uint32)  # no word is larger
            self.last[: len(thresholds)] = thresholds
        padded = np.zeros((count, deep, self.wide), np.int8)
        ends = np.cumsum(self.sizes)
        for part, start, end in zip(padded, ends - self.sizes, ends, strict=True):
            integers = np.stack([column[start:end] for column in columns])
            part[: sum(self.limbs), : end - start] = signed_digits(integers, self.limbs)
        devices = jax.local_devices()
        if devices[0].platform == "cpu":
            devices = devices[:1]  # all of them are the same cores and memory
        self.parts = [[jax.device_put(part, device) for part in padded] for device in devices]

    def sums(self, replicate: np.ndarray, call: int) -> np.ndarray:
        """float64 [D, R] of the replicates of one call."""
        parts = self.parts[call % len(self.parts)]
        if self.shares is None:
            draws = np.full((1, len(replicate)), self.sizes[0], np.int32)
        else:
            draws = np.asarray(category_counts(self.shares, self.seed, replicate))
        sums = [
            self._tile(digits, tile, draws[tile], replicate, 0) for tile, digits in enumerate(parts)
        ]
        return put_together(np.add.reduce(sums)[: sum(self.limbs)], self.limbs)

    def _tile(
        self, digits: jax.Array, tile: int, draws: np.ndarray, replicate: np.ndarray, attempt: int
    ) -> np.ndarray:
        stage = 2 * (attempt * len(self.sizes) + tile)
        rows = np.uint32(self.sizes[tile])
        counts = None
        if len(self.last):
            keys = stage_keys(self.seed, replicate, np.uint32(stage + 1))
            counts = poisson_counts(*keys, self.last, rows, wide=self.wide)
        keys = stage_keys(self.seed, replicate, np.uint32(stage))
        places, valid = missing_draws(
            counts, draws, rows, np.int32(self.limit), *keys, wide=self.wide, most=self.most
        )
        sums = np.asarray(counted_sums(digits, counts, places))
        again = np.flatnonzero(~np.asarray(valid))
        if len(again):
            # Few; padded with themselves, so that mostly one program serves any number.
            padded = np.resize(again, max(REDRAWN, 1 << (len(again) - 1).bit_length()))
            redrawn = self._tile(digits, tile, draws[padded], replicate[padded], attempt + 1)
            sums = sums.copy()
            sums[:, again] = redrawn[:, : len(again)]
        return sums


def _padded(rows: int, limbs: int) -> tuple[int, int]:
    """Padded rows and limbs, in few sizes, as each compiles a program.

    Rows are multiples of 64 and limbs of 16, both of at most eight sizes an octave.
    """
    step = max(64, 1 << max(0, rows.bit_length() - 3))
    deep = max(16, 1 << max(0, limbs.bit_length() - 4))
    return -(-(rows + SPARE) // step) * step, -(-limbs // deep) * deep


def _block(rows: int, replicates: int) -> int:
    """Replicates per call: about `COUNTS_A_CALL` counts, shared out evenly over two calls or more.

    Multiples of 4: XLA's product on CPU is several times slower for some odd sizes.
    """
    most = max(32, COUNTS_A_CALL // rows)
    calls = max(2, -(-replicates // most))
    return -(-replicates // calls // 4) * 4
