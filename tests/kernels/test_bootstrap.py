"""Intervals and replicates by each of the ways to draw."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import statistics as reference
from scipy.stats import binom

from herald_jax.kernels import columns as plan
from herald_jax.kernels import resample
from herald_jax.kernels.bootstrap import (
    bootstrap_intervals,
    bootstrap_replicates,
    point_estimates,
)
from herald_jax.kernels.draws import MAX_INDICES

RNG = np.random.default_rng(20)
WAYS = ("indices", "batches", "tiles", "values")


def force(way, monkeypatch, tile=2):
    """Makes one way serve any number of clusters; `tile` of them in a tile, at the most."""
    if way == "values":
        monkeypatch.setattr(plan, "FEW_FROM", 0)
        monkeypatch.setattr(plan, "CLUSTERS_A_VALUE", 1)
    if way in ("batches", "tiles"):
        monkeypatch.setattr(resample, "INDICES", 0)
        monkeypatch.setattr(resample, "ROOM", 0.5)
    if way == "tiles":
        monkeypatch.setattr(resample, "TILE", tile)


def columns(n, count=4):
    """Shares of 1..8 rows and margins, by turns."""
    rows = RNG.integers(1, 9, (n, 1))
    shares = RNG.binomial(rows, 0.2, (n, count)) / rows
    margins = RNG.normal(-0.4, 0.3, (n, count))
    return np.concatenate([shares, margins], axis=1)


@pytest.mark.parametrize("n", [2, 3, 17, 64, 200])
def test_replicates_equal_the_plain_reading(n):
    # Multiples of 1/16 are kept exactly, so that the fractions round to the same floats.
    sixteenths = RNG.integers(-40, 40, (n, 3))
    numerator = [[Fraction(int(v), 16) for v in column] for column in sixteenths.T]
    weights = RNG.integers(1, 9, n)
    for denominator in (None, weights.astype(np.float64)):
        exact = None if denominator is None else [Fraction(int(w)) for w in weights]
        found = bootstrap_replicates(sixteenths / 16, denominator, seed=9, replicates=40)
        expected = [reference.replicates(column, exact, 9, 40) for column in numerator]
        assert found.T.tolist() == [[float(v) for v in column] for column in expected]


def test_replicates_of_any_floats_equal_numpy_within_the_quantisation():
    n = 593
    x, weights = columns(n), RNG.random(n) + 0.5
    picks = np.array([reference.draws(2, r, n) for r in range(50)])
    means = bootstrap_replicates(x, None, seed=2, replicates=50)
    np.testing.assert_allclose(means, x[picks].mean(axis=1), atol=1e-8 * np.abs(x).max(), rtol=0)
    ratios = bootstrap_replicates(x, weights, seed=2, replicates=50)
    expected = x[picks].sum(axis=1) / weights[picks].sum(axis=1)[:, None]
    np.testing.assert_allclose(ratios, expected, atol=1e-7, rtol=0)


@pytest.mark.parametrize("n", [593, 5000, 20_000])
def test_blocks_change_no_bit(n):
    # At 20,000 clusters the first columns are drawn by value, the others in tiles.
    x = np.column_stack([RNG.integers(0, 8, (n, 2)), columns(n, 1)])
    weights = RNG.integers(1, 3, n).astype(np.float64)
    for denominator in (None, weights):
        whole = bootstrap_replicates(x, denominator, seed=3, replicates=60)
        for block in (16, 37, 61) if n < 1000 else (37,):
            again = bootstrap_replicates(x, denominator, seed=3, replicates=60, block=block)
            assert np.array_equal(whole, again)


def test_fewer_replicates_are_the_first_of_more():
    x = columns(50)
    more = bootstrap_replicates(x, None, seed=3, replicates=200)
    assert np.array_equal(bootstrap_replicates(x, None, seed=3, replicates=90), more[:90])


@pytest.mark.parametrize("n", [593, 20_000])
def test_columns_stand_alone(n):
    x = np.column_stack([columns(n, 2), RNG.integers(0, 3, n), RNG.normal(size=n) * 1e200])
    whole = bootstrap_intervals(x, None, seed=1, replicates=100)
    order = RNG.permutation(x.shape[1])
    assert np.array_equal(
        bootstrap_intervals(x[:, order], None, seed=1, replicates=100), whole[order]
    )
    for d in range(x.shape[1]):
        alone = bootstrap_intervals(x[:, [d]], None, seed=1, replicates=100)
        assert np.array_equal(alone[0], whole[d])


def test_clusters_drawn_themselves_share_their_draws():
    # The replicates of a difference are the differences of replicates.
    x = RNG.integers(-8, 8, (100, 2)) / 8
    both = np.column_stack([x, x[:, 0] - x[:, 1]])
    found = bootstrap_replicates(both, None, seed=1, replicates=100)
    np.testing.assert_allclose(found[:, 2], found[:, 0] - found[:, 1], atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
def test_few_values_do_not_depend_on_the_order_of_clusters(weighted):
    n = 20_000
    x = RNG.integers(0, 4, (n, 2)).astype(np.float64)
    weights = RNG.integers(1, 4, n).astype(np.float64) if weighted else None
    order = RNG.permutation(n)
    whole = bootstrap_intervals(x, weights, seed=1, replicates=100)
    shuffled = bootstrap_intervals(
        x[order], None if weights is None else weights[order], seed=1, replicates=100
    )
    assert np.array_equal(whole, shuffled)


def test_layout_changes_nothing():
    x = np.column_stack([columns(20_000, 1), RNG.integers(0, 4, 20_000)])
    whole = bootstrap_intervals(x, None, seed=1, replicates=50)
    for other in (np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]):
        assert np.array_equal(bootstrap_intervals(other, None, seed=1, replicates=50), whole)


@pytest.mark.parametrize("n", [700, 20_000])
def test_ways_agree_within_the_error_of_simulation(n, monkeypatch):
    """Interval ends of 5,000 replicates by every way, in standard deviations of the replicates.

    A 2.5 % point of 5,000 normal replicates has a standard error of 0.038, a difference 0.054.
    """
    rows = RNG.integers(1, 9, n)
    x = np.column_stack([RNG.binomial(rows, 0.1) / 4, RNG.integers(0, 12, n) ** 2])
    for weights in (None, rows.astype(np.float64)):
        ends, deviation = {}, 0.0
        for way in WAYS[:2] + WAYS[3:] if n < 1000 else ("indices", "values"):
            with monkeypatch.context() as patch:
                force(way, patch)
                patch.setattr(resample, "ROOM", 4.0)
                if n > 1000 and way == "indices":
                    patch.setattr(plan, "FEW_FROM", n)  # by tiles, of the size that they have
                ends[way] = bootstrap_intervals(x, weights, seed=1)
                deviation = bootstrap_replicates(x, weights, seed=1).std(axis=0)
        for way in ends:
            assert (np.abs(ends[way] - ends["values"]) < 0.3 * deviation[:, None]).all()
            assert way == "values" or not np.array_equal(ends[way], ends["values"])


def test_seed_changes_the_replicates():
    x = columns(50)
    a, b = (bootstrap_replicates(x, None, seed=seed, replicates=50) for seed in (0, 1))
    assert (a != b).mean() > 0.9


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_replicates_follow_the_exact_distribution(n, weighted, tied, way, monkeypatch):
    force(way, monkeypatch)
    values = [Fraction(int(v), 8) for v in RNG.choice(64, n, replace=False)]
    weights = [Fraction(int(w)) for w in RNG.integers(1, 6, n)] if weighted else None
    if tied and n > 2:
        values[-1] = values[0]
        if weights:
            weights[-1] = weights[0]
    ways = reference.distribution(values, weights)
    count = 40_000
    found = bootstrap_replicates(
        np.array([[float(v)] for v in values]),
        np.array([float(w) for w in weights]) if weights else None,
        seed=12,
        replicates=count,
    )[:, 0]
    support = np.array([float(value) for value in ways])
    assert set(found.tolist()) <= set(support.tolist())
    observed = (found[:, None] == support).sum(axis=0)
    expected = np.array(list(ways.values())) / n**n
    # Each count is binomial; 1e-6 leaves room for a hundred or so of them.
    low, high = binom.ppf(1e-6, count, expected), binom.ppf(1 - 1e-6, count, expected)
    assert ((low <= observed) & (observed <= high)).all()


def test_percentiles_follow_the_inverse_distribution_function():
    x = columns(40)
    for replicates, level in ((1, 0.95), (7, 0.5), (39, 0.95), (40, 0.95), (5000, 0.95)):
        values = bootstrap_replicates(x, None, seed=5, replicates=replicates)
        found = bootstrap_intervals(x, None, seed=5, replicates=replicates, level=level)
        tail = (1 - Fraction(str(level))) / 2
        for d in range(x.shape[1]):
            assert found[d].tolist() == [
                reference.percentile(values[:, d].tolist(), tail),
                reference.percentile(values[:, d].tolist(), 1 - tail),
            ]


def test_rank_is_taken_of_the_level_as_written():
    # (1 - 0.95) / 2 * 5000 is 125.00000000000011 in floats, whose ceiling would be 126.
    x = np.arange(60.0)[:, None]
    values = np.sort(bootstrap_replicates(x, None, seed=5)[:, 0])
    assert bootstrap_intervals(x, None, seed=5)[0].tolist() == [values[124], values[4874]]


@pytest.mark.parametrize("value", [0.0, 0.1, -1 / 3, 1e-300, 7e200])
def test_equal_clusters_give_the_value_itself(value):
    x = np.full((49, 1), value)
    assert bootstrap_intervals(x, None, seed=0, replicates=50).tolist() == [[value, value]]


def test_clusters_equal_but_for_rounding_give_the_plain_statistic():
    # 0.1 + 0.1 + 0.1 over three rows is 0.10000000000000002 as a float.
    rows = RNG.integers(1, 9, 30).astype(np.float64)
    totals = np.array([[sum([0.1] * int(k))] for k in rows])
    for numerator, denominator in ((totals, rows), (totals / rows[:, None], None)):
        point = point_estimates(numerator, denominator)[0]
        found = bootstrap_intervals(numerator, denominator, seed=0, replicates=50)
        assert found.tolist() == [[point, point]]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 90), st.integers(0, 2**64 - 1), st.data())
def test_replicates_lie_between_the_extremes(n, seed, data):
    values = data.draw(st.lists(st.floats(-10, 10), min_size=n, max_size=n))
    found = bootstrap_replicates(np.array(values)[:, None], None, seed=seed, replicates=5)
    slack = 1e-8 * max(map(abs, values))
    assert (min(values) - slack <= found).all()
    assert (found <= max(values) + slack).all()


def test_point_estimates_are_rounded_once():
    x, weights = columns(31), RNG.random(31) + 0.5
    exact = [sum(map(Fraction, column.tolist())) for column in x.T]
    total = sum(map(Fraction, weights.tolist()))
    assert point_estimates(x, None).tolist() == [float(s / 31) for s in exact]
    assert point_estimates(x, weights).tolist() == [float(s / total) for s in exact]


@pytest.mark.parametrize("way", WAYS)
def test_coverage_of_the_mean_and_of_a_ratio(way, monkeypatch):
    """The 95 % interval of 80 clusters covers in 300 simulated logs as often as it should.

    Percentile intervals of skewed data cover a little less than their level at this size; 0.925 is
    allowed for. The binomial band of 300 trials around [0.925, 0.95] at 1e-4 is [0.86, 0.99].
    """
    force(way, monkeypatch, tile=40)
    trials, n = 300, 80
    covered = np.zeros(2)
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        rows = rng.integers(1, 9, n)
        rate = rng.beta(1, 4, n)  # of mean 0.2, independent of the rows
        hits = rng.binomial(rows, rate)
        mean = bootstrap_intervals((hits / rows)[:, None], None, seed=trial, replicates=200)[0]
        ratio = bootstrap_intervals(
            hits[:, None].astype(np.float64), rows.astype(np.float64), seed=trial, replicates=200
        )[0]
        covered += [mean[0] <= 0.2 <= mean[1], ratio[0] <= 0.2 <= ratio[1]]
    low, high = binom.ppf(1e-4, trials, 0.925), binom.ppf(1 - 1e-4, trials, 0.95)
    assert ((low <= covered) & (covered <= high)).all(), covered / trials


@pytest.mark.parametrize("n", [593, 5000, 40_000])
def test_standard_error_of_a_mean(n):
    # The variance of a replicate is the population variance over n.
    x = np.column_stack([columns(n, 2), RNG.integers(0, 9, n)])
    found = bootstrap_replicates(x, None, seed=8, replicates=5000)
    np.testing.assert_allclose(found.std(axis=0), x.std(axis=0) / math.sqrt(n), rtol=0.05)
    error = x.std(axis=0) / math.sqrt(n * 5000)
    assert (np.abs(found.mean(axis=0) - x.mean(axis=0)) < 5 * error).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_cluster_that_differs(way, weighted, monkeypatch):
    force(way, monkeypatch, tile=25)
    n, replicates = 50, 2000
    x = np.zeros((n, 1))
    x[7] = 1.0
    weights = np.full(n, 2.0) if weighted else None
    found = bootstrap_replicates(x, weights, seed=0, replicates=replicates)[:, 0]
    times = found * n * (2 if weighted else 1)
    np.testing.assert_allclose(times, np.rint(times), atol=1e-12)
    # The cluster is drawn Binomial(50, 1/50) times: never with probability 0.98^50 = 0.364.
    low, high = binom.ppf([1e-5, 1 - 1e-5], replicates, 0.98**n)
    assert low <= (found == 0).sum() <= high


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 1e200])
def test_magnitudes_change_nothing_but_the_unit(way, scale, monkeypatch):
    force(way, monkeypatch, tile=20)
    x = RNG.integers(-40, 40, (60, 2)).astype(np.float64)
    plain = bootstrap_replicates(x, None, seed=4, replicates=50)
    for factor in (2.0 ** round(math.log2(scale)), scale):
        found = bootstrap_replicates(x * factor, None, seed=4, replicates=50)
        np.testing.assert_allclose(found, plain * factor, atol=4e-7 * factor, rtol=0)


def test_two_clusters():
    x = np.array([[0.0, 1.0], [1.0, 1.0]])
    # Of two draws a quarter are both of either; the ends are the extremes.
    assert bootstrap_intervals(x, None, seed=0).tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_a_few_values_of_millions_of_clusters():
    n = 2**22 + 1
    x = np.zeros((n, 1))
    x[: n // 4] = 1.0
    found = bootstrap_replicates(x, None, seed=1, replicates=2000)[:, 0]
    error = math.sqrt(0.25 * 0.75 / n)
    assert abs(found.mean() - 0.25) < 5 * error / math.sqrt(2000)
    assert found.std() == pytest.approx(error, rel=0.1)


GOOD = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("numerator", "denominator", "options", "message"),
    [
        (np.zeros(3), None, {}, "shape"),
        (np.zeros((1, 2)), None, {}, "clusters"),
        (np.zeros((0, 2)), None, {}, "clusters"),
        (np.zeros((MAX_INDICES + 1, 1)), None, {}, "clusters"),
        (np.array([[0.0], [math.nan]]), None, {}, "finite"),
        (np.array([[0.0], [math.inf]]), None, {}, "finite"),
        (GOOD, np.ones(2), {}, "shape"),
        (GOOD, np.array([1.0, 0.0, 1.0]), {}, "positive"),
        (GOOD, np.array([1.0, math.nan, 1.0]), {}, "positive"),
        (GOOD, None, {"replicates": 0}, "replicates"),
        (GOOD, None, {"seed": -1}, "seed"),
        (GOOD, None, {"level": 1.0}, "level"),
    ],
)
def test_refused(numerator, denominator, options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_intervals(numerator, denominator, **{"seed": 0, **options})


def test_no_statistics():
    assert bootstrap_intervals(np.zeros((3, 0)), None, seed=0, replicates=5).shape == (0, 2)
