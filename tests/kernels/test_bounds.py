from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import statistics as reference

from herald_jax.kernels.bounds import clopper_pearson, clopper_pearson_upper


def test_the_papers_bound():
    # 1 - 0.05^(1/593) = 0.0050391: with no success among 593 questions, at most 0.50391 %.
    assert clopper_pearson_upper(0, 593) == pytest.approx(1 - 0.05 ** (1 / 593), abs=1e-15)
    assert round(100 * clopper_pearson_upper(0, 593), 5) == 0.50391


@given(st.integers(1, 40), st.data(), st.sampled_from(["0.9", "0.95", "0.99"]))
@settings(max_examples=40, deadline=None)
def test_against_bisection_on_exact_tails(n, data, level):
    successes = data.draw(st.integers(0, n))
    expected = reference.clopper_pearson_upper(successes, n, 1 - Fraction(level))
    assert clopper_pearson_upper(successes, n, level=float(level)) == pytest.approx(
        expected, abs=1e-9
    )


@given(st.integers(1, 30), st.data())
@settings(max_examples=30, deadline=None)
def test_two_sided_ends_leave_half_of_alpha_each(n, data):
    successes = data.draw(st.integers(0, n))
    low, high = clopper_pearson(successes, n)
    half = Fraction(1, 40)
    # P(X >= k | p) is P(n - X <= n - k | 1 - p): the lower end mirrors the upper.
    assert low == pytest.approx(
        1 - reference.clopper_pearson_upper(n - successes, n, half), abs=1e-9
    )
    assert high == pytest.approx(reference.clopper_pearson_upper(successes, n, half), abs=1e-9)
    assert low <= successes / n <= high


def test_ends_of_the_range():
    assert clopper_pearson_upper(7, 7) == 1.0
    assert clopper_pearson(0, 7)[0] == 0.0
    assert clopper_pearson(7, 7)[1] == 1.0


def test_nothing_tried_bounds_nothing():
    assert clopper_pearson_upper(0, 0) == 1.0
    assert clopper_pearson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "n"), [(-1, 3), (4, 3), (0, -1)])
def test_counts_out_of_range(successes, n):
    with pytest.raises(ValueError, match="successes"):
        clopper_pearson_upper(successes, n)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_level_out_of_range(level):
    with pytest.raises(ValueError, match="level"):
        clopper_pearson_upper(1, 3, level=level)
