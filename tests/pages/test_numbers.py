"""Rounding in print never turns one kind of number into another."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.pages import numbers

SHARES = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (0.0004, "<0.1%"),  # 0.04% would round to 0.0%
        (0.4032, "40.3%"),
        (0.9999, ">99.9%"),  # 99.99% would round to 100.0%
        (1.0, "100.0%"),
        (None, "not measured"),
        (math.nan, "not measured"),
    ],
)
def test_percent(share: float | None, text: str) -> None:
    assert numbers.percent(share) == text


@given(SHARES)
def test_percent_is_bare_zero_for_zero_alone(share: float) -> None:
    assert (numbers.percent(share) == "0%") == (share == 0.0)
    assert (numbers.percent(share) == "100.0%") == (share == 1.0)


@given(SHARES)
def test_an_upper_bound_is_never_printed_below_its_value(share: float) -> None:
    printed = numbers.upper_bound(share)
    if not printed.startswith(("<", ">")):
        assert float(printed.rstrip("%")) >= 100 * share - 1e-9


def test_upper_bound_of_the_paper() -> None:
    # 1 - 0.05^(1/593) = 0.503906%, which to one decimal rounds to 0.5% and is bounded by 0.6%.
    bound = 1 - 0.05 ** (1 / 593)
    assert numbers.percent(bound) == "0.5%"
    assert numbers.upper_bound(bound) == "0.6%"
    assert numbers.upper_bound(bound, 5) == "0.50391%"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.41375, "+0.414"),
        (-0.38625, "−0.386"),
        (0.0, "0"),
        (-0.0, "0"),
        (2e-7, "+2e−07"),
        (-2e-7, "−2e−07"),
        (None, "not measured"),
    ],
)
def test_signed_keeps_the_sign_of_what_is_tiny(value: float | None, text: str) -> None:
    assert numbers.signed(value) == text


@given(st.floats(-1e6, 1e6))
def test_signed_is_zero_for_zero_alone(value: float) -> None:
    assert (numbers.signed(value) == "0") == (value == 0.0)


def test_other_forms() -> None:
    assert numbers.count(1234567) == "1,234,567"
    assert numbers.out_of(79, 1000) == "79 of 1,000"
    assert numbers.percent_range((0.361, 0.447)) == "36.1–44.7%"
    assert numbers.signed_range((-0.5, 0.25)) == "−0.500 to +0.250"
    assert [numbers.weight(w) for w in (1.0, 1.6, -0.004)] == ["1.0", "1.6", "−0.004"]
    assert [numbers.quantity(n, "question") for n in (1, 2)] == ["1 question", "2 questions"]
