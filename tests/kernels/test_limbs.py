from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herald_jax.kernels.draws import MAX_INDICES
from herald_jax.kernels.limbs import fixed_point, needed_limbs, put_together, signed_digits

WEIGHTS = st.sampled_from([2, 3, 593, 10_000, 2**20, 2**22 - 1, 2**22, MAX_INDICES])
VALUES = st.lists(
    st.floats(-1e300, 1e300) | st.floats(-2, 2) | st.just(0.0), min_size=1, max_size=6
)


def rebuilt(column):
    unit = Fraction(column.unit) / column.divisor
    return [int(integer) * unit for integer in column.integers]


@settings(deadline=None)
@given(values=VALUES, total=WEIGHTS)
def test_error_is_below_1e_8_of_the_peak(values, total):
    found = rebuilt(fixed_point(np.array(values), total))
    peak = max(abs(Fraction(v)) for v in values)
    bits = 27 if total >= 2**22 else 30
    assert all(abs(a - Fraction(b)) <= peak / 2**bits for a, b in zip(found, values, strict=True))


@settings(deadline=None)
@given(values=VALUES, total=WEIGHTS)
def test_sums_stay_exact_in_float64(values, total):
    integers = fixed_point(np.array(values), total).integers
    assert integers.dtype == np.int32
    digits = signed_digits(integers[None], [needed_limbs(integers)])
    assert digits.dtype == np.int8
    # What any order of adding digits comes to on the way, at the most.
    largest = np.abs(digits.astype(int)).max(axis=1, initial=0)
    assert sum(int(d) * 256**j * total for j, d in enumerate(largest)) < 2**53


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(-(2**30), 2**30)] * 3), min_size=1, max_size=5))
def test_digits_add_up(integers):
    columns = np.array(integers, np.int32).T
    limbs = [needed_limbs(column) for column in columns]
    digits = signed_digits(columns, limbs)
    assert len(digits) == sum(limbs)
    assert put_together(digits.astype(np.int32), limbs).T.tolist() == [list(i) for i in integers]


@pytest.mark.parametrize(
    ("integers", "limbs"),
    [
        ([0, 0], 0),
        ([1], 1),
        ([127, -128], 1),
        ([128], 2),
        ([-129], 2),
        ([127 * 257, -128 * 257], 2),
        ([127 * 257 + 1], 3),
        ([-128 * 257 - 1], 3),
        ([2**30, -(2**30)], 4),
    ],
)
def test_digits_are_as_many_as_it_takes(integers, limbs):
    column = np.array(integers, np.int32)
    assert needed_limbs(column) == limbs
    digits = signed_digits(column[None], [4])
    assert not digits[limbs:].any()
    assert limbs == 0 or digits[limbs - 1].any()


@pytest.mark.parametrize("rows", range(1, 17))
def test_shares_of_up_to_sixteen_rows_are_exact(rows):
    shares = np.array([k / rows for k in range(rows + 1)])
    assert rebuilt(fixed_point(shares, 593)) == [Fraction(k, rows) for k in range(rows + 1)]


def test_one_value_that_is_no_share_is_noticed_however_late():
    shares = np.arange(5000) % 4 / 3
    assert fixed_point(shares, 5000).divisor == 840
    shares[-1] = 0.123456789
    column = fixed_point(shares, 5000)
    assert column.divisor == 1
    np.testing.assert_allclose(np.array(rebuilt(column), float), shares, atol=1e-9, rtol=0)


def test_zero_bits_at_the_end_are_dropped():
    column = fixed_point(np.array([0.0, 1.0, 3.0]) * 1000 * 2.0**40, 593)
    assert column.integers.tolist() == [0, 125, 375]  # 1000 = 8 * 125
    assert rebuilt(column) == [0, 1000 * 2**40, 3000 * 2**40]


def test_no_rows():
    assert needed_limbs(fixed_point(np.empty(0), 2).integers) == 0
