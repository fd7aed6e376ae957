import math

import numpy as np
import pytest
from reference import statistics as reference
from scipy.stats import binom, chi2

from herald_jax.kernels import resample
from herald_jax.kernels.multinomial import resampled_categories
from herald_jax.kernels.resample import (
    counted_sums,
    missing_draws,
    poisson_counts,
    resampled_sums,
)

RNG = np.random.default_rng(8)


@pytest.fixture
def small(monkeypatch):
    """Poisson batches for the fewest rows, nearly half of which are too large or too small."""
    monkeypatch.setattr(resample, "INDICES", 0)
    monkeypatch.setattr(resample, "ROOM", 0.2)


def counts(n, *, seed=3, replicates=20_000, block=None, rows=None):
    """int [replicates, rows]: how often each of the first rows is drawn."""
    marks = list(np.eye(rows or n, n, dtype=np.int32))
    found = resampled_sums(marks, seed=seed, replicates=replicates, block=block)
    return found.T.astype(int)


def plainly(n, seed, replicate):
    """Draws of all rows, tile by tile."""
    tiles = resample._Tiles([np.zeros(n, np.int32)], None)
    sizes = tiles.sizes.tolist()
    shares = [n]
    if len(sizes) > 1:
        found = resampled_categories(tiles.sizes, seed=seed, replicates=replicate + 1)
        shares = found[:, replicate].tolist()
    drawn = []
    for tile, (share, size) in enumerate(zip(shares, sizes, strict=True)):
        drawn += reference.tile_counts(
            seed,
            replicate,
            share,
            size,
            last=tiles.last.tolist(),
            most=tiles.limit,
            stage=2 * tile,
            step=2 * len(sizes),
        )
    return drawn


@pytest.mark.parametrize("n", [1, 2, 40, 1024, 1025, 3000])
def test_equals_the_plain_reading(n):
    integers = RNG.integers(-(2**30), 2**30, (3, n)).astype(np.int32)
    found = resampled_sums(list(integers), seed=2**33, replicates=3)
    for replicate in range(3):
        drawn = np.array(plainly(n, 2**33, replicate))
        assert found[:, replicate].tolist() == (integers.astype(int) @ drawn).tolist()


@pytest.mark.parametrize("n", [1, 2, 7, 70])
def test_equals_the_plain_reading_where_batches_are_drawn_again(n, small, monkeypatch):
    monkeypatch.setattr(resample, "TILE", 30)
    found = counts(n, replicates=40)
    assert found.tolist() == [plainly(n, 3, replicate) for replicate in range(40)]


def test_tiles_equal_the_plain_reading():
    # Two tiles of the size that they have.
    n = resample.TILE + 1
    integers = RNG.integers(-(2**30), 2**30, (2, n)).astype(np.int32)
    found = resampled_sums(list(integers), seed=1, replicates=2)
    for replicate in range(2):
        drawn = np.array(plainly(n, 1, replicate))
        assert drawn.sum() == n
        assert found[:, replicate].tolist() == (integers.astype(int) @ drawn).tolist()


@pytest.mark.parametrize("way", ["indices", "batches", "tiles"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_counts_follow_the_exact_distribution(n, way, monkeypatch, request):
    if way != "indices":
        request.getfixturevalue("small")
    if way == "tiles":
        monkeypatch.setattr(resample, "TILE", 2)
    replicates = 40_000
    found = counts(n, replicates=replicates)
    cells, observed = np.unique(found, axis=0, return_counts=True)
    assert (cells.sum(axis=1) == n).all()
    assert len(cells) == math.comb(2 * n - 1, n)  # all ways to put n draws on n rows
    for cell, seen in zip(cells.tolist(), observed, strict=True):
        ways = math.factorial(n) // math.prod(math.factorial(k) for k in cell)
        low, high = binom.ppf([1e-6, 1 - 1e-6], replicates, ways / n**n)
        assert low <= seen <= high, (cell, seen)


@pytest.mark.parametrize("n", [900, 1100, 16_000, 40_000])
def test_a_row_is_drawn_as_often_as_it_should(n):
    # Of indices, batches, and tiles.
    found = counts(n, rows=20, replicates=4000)
    law = binom(n, 1 / n)
    expected = np.array([law.pmf(k) for k in range(5)] + [law.sf(4)]) * found.size
    observed = np.bincount(np.minimum(found.ravel(), 5), minlength=6)
    # The rows are nearly independent of each other: a covariance of -1/n.
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), 5) > 1e-5


@pytest.mark.parametrize("n", [900, 1100, 16_000, 40_000])
def test_shares_of_the_rows_are_binomial(n):
    """The draws of a half and of a tenth of the rows, spread and in one piece."""
    marks = np.zeros((4, n), np.int32)
    marks[0, ::2] = marks[1, : n // 2] = marks[2, ::10] = marks[3, -(n // 10) :] = 1
    found = resampled_sums(list(marks), seed=5, replicates=5000)
    for mark, drawn in zip(marks, found, strict=True):
        law = binom(n, mark.sum() / n)
        edges = law.ppf(np.arange(1, 10) / 10)
        expected = np.diff([0, *law.cdf(edges), 1]) * drawn.size
        observed = np.bincount(np.searchsorted(edges, drawn), minlength=10)
        assert chi2.sf(((observed - expected) ** 2 / expected).sum(), 9) > 1e-5


def test_neighbouring_rows_replicates_and_tiles_are_independent():
    n = 40_000
    marks = np.zeros((4, n), np.int32)
    marks[0, 0:20_000:2] = marks[1, 1:20_000:2] = marks[2, 20_000::2] = marks[3, 20_001::2] = 1
    found = resampled_sums(list(marks), seed=5, replicates=5000)
    correlated = np.corrcoef(np.concatenate([found[:, :-1], found[:, 1:]]))
    expected = np.full((8, 8), 0.0)
    # Within a replicate quarters of the draws have a correlation of -(1/4)^2 / (1/4 * 3/4).
    expected[:4, :4] = expected[4:, 4:] = -1 / 3
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(correlated, expected, atol=5 / math.sqrt(5000))


@pytest.mark.parametrize("n", [593, 5000, 20_000])
def test_blocks_change_no_bit(n):
    integers = RNG.integers(-300, 300, (5, n)).astype(np.int32)
    whole = resampled_sums(list(integers), seed=3, replicates=100)
    for block in (8, 37, 100, 101):
        assert np.array_equal(
            resampled_sums(list(integers), seed=3, replicates=100, block=block), whole
        )


def test_blocks_change_no_bit_where_batches_are_drawn_again(small):
    whole = counts(50, replicates=200)
    for block in (1, 37, 200):
        assert np.array_equal(counts(50, replicates=200, block=block), whole)


def test_sums_are_exact_at_the_largest_integers():
    # All draws add the same: the exact product, far beyond what float32 or int32 would hold.
    for integer in (2**30, -(2**30), 2**30 - 1, -128):
        column = np.full(20_000, integer, np.int32)
        found = resampled_sums([column], seed=0, replicates=2)
        assert found.tolist() == [[float(integer * 20_000)] * 2]


def test_sizes_share_programs():
    programs = (poisson_counts, missing_draws, counted_sums)
    for program in programs:
        program.clear_cache()
    for n in (1030, 1100, 1150):
        for limbs in (1, 9, 16):
            resampled_sums([np.ones(n, np.int32)] * limbs, seed=0, replicates=8)
    # The second of two comes from batches that are drawn again, if any is.
    assert all(program._cache_size() <= 2 for program in programs)
