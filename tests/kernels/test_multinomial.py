import itertools
import math

import jax
import numpy as np
import pytest
from reference import statistics as reference
from scipy.stats import binom, chi2

from herald_jax.kernels import multinomial
from herald_jax.kernels.draws import seed_words
from herald_jax.kernels.multinomial import (
    batch_rates,
    batches,
    category_counts,
    resampled_categories,
)


def counts(times, *, seed=3, replicates=20_000, block=None):
    found = resampled_categories(np.array(times), seed=seed, replicates=replicates, block=block).T
    assert (found.sum(axis=1) == sum(times)).all()
    return found


def small_batches(monkeypatch, room=0.2):
    """Batches even for a single draw, of which many are too large."""
    monkeypatch.setattr(multinomial, "LEAST_RATE", 0.5)
    monkeypatch.setattr(multinomial, "ROOM", room)
    monkeypatch.setattr(multinomial, "SINGLES", 0)
    category_counts.clear_cache()  # programs hold the numbers of single draws


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """No program of a changed module outlives its test."""
    yield
    if multinomial.SINGLES != 64:
        category_counts.clear_cache()


def plainly(times, seed, replicate):
    rates = batch_rates(sum(times)).tolist()
    tables = batches(np.array(times))
    assert int(tables.used) == len(rates)
    last = np.asarray(tables.last)

    def law(v, u):
        start, size = int(tables.start[v, u]), int(tables.size[v, u])
        return int(tables.least[v, u]), last[start : start + size].tolist()

    laws = [[law(v, u) for u in range(len(times))] for v in range(len(rates))]
    return reference.category_counts(
        seed, replicate, times, rates, laws, singles=multinomial.SINGLES
    )


@pytest.mark.parametrize(
    "times", [[2], [1, 1], [65], [70, 12, 1], [700, 300], [10, 90_000, 4000, 1], [50] * 30]
)
def test_equals_the_plain_reading(times):
    found = counts(times, seed=2**40 + 1, replicates=4)
    for replicate, row in enumerate(found):
        assert row.tolist() == plainly(times, 2**40 + 1, replicate)


def test_equals_the_plain_reading_where_batches_are_too_large(monkeypatch):
    small_batches(monkeypatch, room=0.0)
    found = counts([5, 60, 1], replicates=20)
    for replicate, row in enumerate(found):
        assert row.tolist() == plainly([5, 60, 1], 3, replicate)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("times", [[1, 1], [1, 2], [1, 1, 1], [1, 3], [2, 1, 1], [1, 1, 1, 1]])
def test_counts_follow_the_exact_distribution(times, small, monkeypatch):
    if small:
        small_batches(monkeypatch)
    n, replicates = sum(times), 40_000
    found = counts(times, replicates=replicates)
    for cells in itertools.product(range(n + 1), repeat=len(times)):
        if sum(cells) == n:
            ways = math.factorial(n)
            for u, k in zip(times, cells, strict=True):
                ways = ways * u**k // math.factorial(k)
            observed = (found == cells).all(axis=1).sum()
            # Each count is binomial; 1e-6 leaves room for a hundred or so of them.
            low, high = binom.ppf([1e-6, 1 - 1e-6], replicates, ways / n**n)
            assert low <= observed <= high, (cells, observed)


@pytest.mark.parametrize("times", [[999_000, 900, 99, 1], [400_000, 350_000, 250_000], [30] * 40])
def test_each_count_is_binomial(times):
    n = sum(times)
    found = counts(times)
    for u in range(len(times)):
        # Twenty bins of about equal probability, or one for each count.
        edges = np.unique(binom.ppf(np.arange(1, 20) / 20, n, times[u] / n))
        below = np.concatenate([[0.0], binom.cdf(edges, n, times[u] / n), [1.0]])
        expected = np.diff(below) * len(found)
        observed = np.bincount(np.searchsorted(edges, found[:, u]), minlength=len(expected))
        kept = expected > 5
        statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
        assert chi2.sf(statistic, kept.sum() - 1) > 1e-5


def test_two_counts_vary_against_each_other():
    times = np.array([700, 5000, 20_000, 74_300])
    share = times / times.sum()
    found = counts(times.tolist(), replicates=50_000)
    exact = times.sum() * (np.diag(share) - np.outer(share, share))
    spread = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    # A correlation of 50,000 pairs has a standard error below 1/sqrt(50,000) = 0.0045.
    np.testing.assert_allclose(np.cov(found.T) / spread, exact / spread, atol=5 * 0.0045)


def test_replicates_and_seeds_draw_apart():
    times = [40_000, 60_000]
    here, there = counts(times)[:, 0], counts(times, seed=4)[:, 0]
    for a, b in ((here[:-1], here[1:]), (here, there)):
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / math.sqrt(len(a))


@pytest.mark.parametrize("block", [1, 37, 300])
def test_blocks_change_no_bit(block):
    times = [3, 2000, 150]
    whole = counts(times, replicates=150)
    assert np.array_equal(counts(times, replicates=150, block=block), whole)


def test_categories_that_are_split_add_up_in_the_mean():
    whole, split = counts([3000, 9000])[:, 0], counts([1000, 2000, 9000])[:, :2].sum(axis=1)
    error = math.sqrt(3000 * 0.75 / len(whole))
    assert abs(whole.mean() - 3000) < 5 * error
    assert abs(split.mean() - 3000) < 5 * error


def test_sizes_share_programs():
    category_counts.clear_cache()
    for n in (50, 1000, 40_000):
        for u in (5, 7, 8):
            counts([1] * (u - 1) + [n], replicates=4, block=4)
    assert category_counts._cache_size() <= 2  # two lengths of tables


@pytest.mark.parametrize("times", [[1], [2**24], [2**24 - 1, 1], [1] * 3000])
def test_extremes(times):
    found = counts(times, replicates=4)
    if len(times) == 1:
        assert (found == times[0]).all()


def test_strict_promotion_and_no_recompilation_for_seeds():
    tables = batches(np.array([5, 50]))
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        found = category_counts(tables, seed_words(3), np.arange(6, dtype=np.uint32))
    assert found.shape == (4, 6)
