from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.statistics import poisson_thresholds

from herald_jax.kernels.poisson import poisson_tables


def thresholds(rate, which=0, rates=None):
    """What 2^32 P(X <= k) came to, for k = 0, 1, ...; the last is below 2^32."""
    tables = poisson_tables(np.array([rate] if rates is None else rates, np.float64))
    start, size = tables.start[which], tables.size[which]
    last = tables.last[start : start + size].tolist()
    return [0] * int(tables.least[which]) + [word + 1 for word in last]


def check(rate):
    found = thresholds(rate)
    exact = poisson_thresholds(Fraction(rate))
    # Those that are missing at the end round to 2^32.
    found += [2**32] * (len(exact) - len(found))
    for threshold, right in zip(found, exact, strict=True):
        # Rounding is off by 1/2; the tails left out and the errors of float64 add less than 1/2.
        assert abs(threshold - right) < 1


@pytest.mark.parametrize("rate", [0.0, 1e-12, 1e-3, 0.5, 1.0, 7.25, 100.0, 1234.5])
def test_thresholds_are_the_distribution_function(rate):
    check(rate)


@settings(max_examples=30)
@given(st.floats(0, 300))
def test_thresholds_of_any_rate_are_the_distribution_function(rate):
    check(rate)


def test_a_large_rate():
    # As `check`, but from ten standard deviations below the mean on: the exact law of 2^24 has
    # too many terms.
    rate = 2**24
    low = rate - 10 * 2**12
    term, total, below = 1 << 200, 0, {}
    for k in range(low, rate + 10 * 2**12):
        term = term * rate // k if k > low else term
        total += term
        below[k] = total
    found = thresholds(float(rate))
    for k in range(rate - 6 * 2**12, rate + 6 * 2**12, 997):
        assert abs(found[k] - Fraction(below[k] * 2**32, total)) < 1


def test_laws_do_not_touch_each_other():
    rates = [900.0, 0.0, 3.5, 1.0, 40.0, 0.7, 1e5]
    for which, rate in enumerate(rates):
        assert thresholds(None, which, rates) == thresholds(rate)


def test_the_stream_is_fixed():
    # 2^32 / e, 2^32 * 2 / e, 2^32 * 5 / (2 e), ...; the last rounds to one word short of all.
    assert thresholds(1.0) == [
        1580030169,
        3160060337,
        3950075422,
        4213413783,
        4279248374,
        4292415292,
        4294609778,
        4294923276,
        4294962463,
        4294966817,
        4294967253,
        4294967292,
    ]


def test_no_laws():
    tables = poisson_tables(np.empty(0))
    assert tables.last.size == tables.start.size == 0
