import math

import numpy as np
import pytest

from herald_jax.kernels import columns
from herald_jax.kernels.columns import FEW_FROM, plan_columns

RNG = np.random.default_rng(1)
N = 2**14 + 1  # more than a tile: 16 distinct values at the most


def ways(numerator, denominator=None):
    """For each column: constant, the number of its distinct values, or clusters."""
    plan = plan_columns(numerator, denominator)
    names = ["clusters" if column.times is None else len(column.times) for column in plan.drawn]
    return ["constant" if e < 0 else names[e] for e in plan.which]


def rebuilt(part):
    return part.integers * part.unit / part.divisor


def test_each_column_goes_its_way():
    few, many = np.arange(N) % 16 / 8.0, np.arange(N) % 17 / 8.0
    noise = RNG.normal(size=N)
    numerator = np.column_stack([few, many, noise, np.full(N, 0.1), few == 1])
    assert ways(numerator) == [16, "clusters", "clusters", "constant", 2]


def test_few_values_count_only_beyond_a_tile():
    assert ways((np.arange(FEW_FROM) % 2.0)[:, None]) == ["clusters"]
    assert ways((np.arange(FEW_FROM + 1) % 2.0)[:, None]) == [2]


def test_values_stand_with_their_frequencies():
    values = np.where(np.arange(N) % 4 == 1, 0.75, -2.0)
    (column,) = plan_columns(values[:, None], None).drawn
    assert rebuilt(column.numerator).tolist() == [-2.0, 0.75]
    assert column.times.tolist() == [N - N // 4, N // 4]


def test_pairs_of_value_and_weight():
    weights = 1.0 + np.arange(N) % 3
    numerator = np.column_stack([np.arange(N) % 5, np.arange(N) % 6, weights * 0.3])
    assert ways(numerator, weights) == [15, 6, "constant"]
    first = plan_columns(numerator, weights).drawn[0]
    pairs = list(zip(rebuilt(first.numerator), rebuilt(first.denominator), strict=True))
    assert pairs == [(a, b) for a in range(5) for b in (1.0, 2.0, 3.0)]
    assert first.times.sum() == N


def test_many_weights_are_many_pairs():
    assert ways((np.arange(N) % 2.0)[:, None], RNG.random(N) + 0.5) == ["clusters"]


def test_equal_columns_are_drawn_once():
    x = RNG.normal(size=(50, 2))
    plan = plan_columns(np.concatenate([x, x[:, ::-1]], axis=1), None)
    assert plan.which.tolist() == [0, 1, 1, 0]
    assert len(plan.drawn) == 2


def test_columns_with_equal_marks_are_told_apart(monkeypatch):
    # The same values in another order have the same extremes and the same sum.
    x = RNG.normal(size=50)
    plan = plan_columns(np.column_stack([x, x[::-1], x]), None)
    assert plan.which.tolist() == [0, 1, 0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 2.0**900])
def test_values_that_are_refused(bad):
    x = np.zeros((5, 2))
    x[3, 1] = bad
    with pytest.raises(ValueError, match="finite"):
        plan_columns(x, None)


def test_threads_give_the_same(monkeypatch):
    x = np.column_stack([RNG.normal(size=300), np.arange(300) % 3.0, np.zeros(300)])
    plain = plan_columns(x, None)
    monkeypatch.setattr(columns, "THREADS_FROM", 0)
    threaded = plan_columns(x, None)
    assert threaded.which.tolist() == plain.which.tolist()
    for a, b in zip(threaded.drawn, plain.drawn, strict=True):
        assert np.array_equal(a.numerator.integers, b.numerator.integers)
