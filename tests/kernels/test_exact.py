import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herald_jax.kernels import exact
from herald_jax.kernels.exact import ExactSum

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TINY, HUGE = 5e-324, 1.7976931348623157e308


def summed(values):
    total = ExactSum()
    total.add(np.array(values, np.float64))
    return total


@settings(deadline=None)
@given(st.lists(FINITE, max_size=30))
def test_the_sum_is_exact(values):
    assert summed(values).fraction() == sum(map(Fraction, values))


@settings(deadline=None)
@given(st.lists(st.floats(-1e300, 1e300), max_size=30))
def test_value_is_rounded_once(values):
    assert summed(values).value() == math.fsum(values)


@settings(deadline=None)
@given(st.lists(FINITE, min_size=1, max_size=30), st.randoms(use_true_random=False), st.data())
def test_order_and_cut_leave_no_bit_changed(values, random, data):
    shuffled = random.sample(values, len(values))
    cut = data.draw(st.integers(0, len(values)))
    merged = summed(shuffled[cut:])
    merged.merge(summed(shuffled[:cut]))
    assert np.array_equal(merged.bins, summed(values).bins)
    assert merged.count == len(values)


def test_large_terms_that_cancel():
    # 1e16 + 1 = 1e16 in float64: summed in this order one at a time the result would be 0.5.
    assert summed([1e16, 1.0, -1e16, 0.5]).value() == 1.5


def test_ends_of_the_range():
    assert summed([TINY, HUGE, -HUGE]).value() == TINY
    assert summed([HUGE, HUGE, -HUGE]).value() == HUGE
    assert summed([-0.0, 0.0]).value() == 0.0
    with pytest.raises(OverflowError):
        summed([HUGE, HUGE]).value()


def test_mean_of_equal_values_is_the_value():
    # The rounded sum of 49 times 1/49 over 49 need not be 1/49 again; the exact one is.
    for n in range(1, 200):
        assert summed([1 / n] * n).mean() == 1 / n


def test_mean_of_nothing_is_unknown():
    with pytest.raises(ValueError, match="unknown"):
        ExactSum().mean()


def test_state_can_be_saved_and_taken_up():
    total = summed([0.1, 0.2])
    again = ExactSum(
        bins=np.frombuffer(total.bins.tobytes(), np.int64).reshape(2, -1).copy(), count=2
    )
    again.add(np.array([0.3]))
    assert again.value() == math.fsum([0.1, 0.2, 0.3])
    assert again.mean() == float((Fraction(0.1) + Fraction(0.2) + Fraction(0.3)) / 3)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_and_nothing_is_added(bad):
    total = summed([1.0])
    with pytest.raises(ValueError, match="finite"):
        total.add(np.array([2.0, bad]))
    assert (total.value(), total.count) == (1.0, 1)


def test_chunks_of_the_addition(monkeypatch):
    values = np.random.default_rng(0).normal(size=1000)
    whole = summed(values)
    monkeypatch.setattr(exact, "_CHUNK", 7)
    assert np.array_equal(summed(values).bins, whole.bins)


def test_more_values_than_the_bins_hold():
    full = ExactSum(count=exact.MAX_COUNT)
    with pytest.raises(OverflowError, match="at most"):
        full.add(np.array([1.0]))
    with pytest.raises(OverflowError, match="at most"):
        full.merge(summed([1.0]))
