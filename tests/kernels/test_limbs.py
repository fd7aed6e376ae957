from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herald_jax.kernels.draws import MAX_INDICES
from herald_jax.kernels.limbs import split_columns

WEIGHTS = st.sampled_from([2, 3, 593, 1024, 1025, 4096, 10_000, 2**17, MAX_INDICES])
VALUES = st.lists(
    st.floats(-1e300, 1e300) | st.floats(-2, 2) | st.just(0.0), min_size=1, max_size=6
)


def rebuilt(limbs):
    """Values of one column, exactly."""
    unit = Fraction(limbs.unit[0]) / int(limbs.divisor[0])
    return [int(integer) * unit for integer in limbs.totals(limbs.digits)[0]]


@settings(deadline=None)
@given(values=VALUES, total=WEIGHTS)
def test_error_is_below_1e_8_of_the_peak(values, total):
    found = rebuilt(split_columns(np.array(values)[:, None], total))
    peak = max(abs(Fraction(v)) for v in values)
    assert all(abs(a - Fraction(b)) <= peak / 2**27 for a, b in zip(found, values, strict=True))


@settings(deadline=None)
@given(values=VALUES, total=WEIGHTS)
def test_digits_keep_every_partial_sum_within_what_float32_holds(values, total):
    digits = split_columns(np.array(values)[:, None], total).digits
    assert digits.dtype == np.float32
    assert np.array_equal(digits, np.rint(digits))
    assert total * np.max(np.abs(digits), initial=0) <= 2**24


@settings(deadline=None)
@given(values=VALUES, total=WEIGHTS)
def test_totals_stay_exact_in_float64(values, total):
    limbs = split_columns(np.array(values)[:, None], total)
    largest = np.max(np.abs(limbs.digits), axis=0, initial=0).astype(object) * total
    places = [int(place) for place in limbs.place]
    assert sum(int(a) * b for a, b in zip(largest, places, strict=True)) < 2**53


@pytest.mark.parametrize("rows", range(1, 17))
def test_shares_of_up_to_sixteen_rows_are_exact(rows):
    shares = np.array([[k / rows] for k in range(rows + 1)])
    assert rebuilt(split_columns(shares, 593)) == [Fraction(k, rows) for k in range(rows + 1)]


def test_simple_columns_take_one_limb():
    k = np.arange(20) % 2
    columns = np.column_stack([k, k / 3, 1000.0 * k, 0.0 * k, 0.1 * np.arange(20) - 0.7])
    limbs = split_columns(columns, 593)
    # The last column needs 28 bits: two limbs of 15. A column of zeros needs none.
    assert np.bincount(limbs.column, minlength=5).tolist() == [1, 1, 1, 0, 2]


def test_columns_do_not_touch_each_other():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(50, 5)) * 10.0 ** np.arange(5)
    whole = split_columns(columns, 593)
    for d in range(5):
        alone = split_columns(columns[:, d : d + 1], 593)
        assert np.array_equal(whole.totals(whole.digits)[d], alone.totals(alone.digits)[0])
        assert whole.unit[d] == alone.unit[0]


def test_no_columns():
    limbs = split_columns(np.zeros((4, 0)), 4)
    assert limbs.digits.shape == (4, 0)
    assert limbs.totals(limbs.digits).shape == (0, 4)
