"""Columns of float64 as integer limbs whose weighted sums are exact in float32.

A sum of floats depends on the order of its terms, and the order that a matrix product takes
depends on the device, the block and the library. A sum of integers does not, and float32 adds
integers exactly while every partial sum stays within 2^24. So each column becomes fixed point and
is cut into signed limbs (digits in a power-of-two base) small enough for that: with non-negative
integer weights that add up to n, |any partial sum| <= n * max |limb| <= 2^24. The host puts the
limbs' sums together in float64, exactly again.
"""

import math
from dataclasses import dataclass

import numpy as np

FLOAT32_EXACT_BITS = 24
MIN_BITS = 28
"""Fixed-point bits, sign included: the rounding error is then at most 2^-27 of the peak."""

DIVISORS = (840, 720720)
"""Least common multiples of 1 .. 8 and 1 .. 16: a share of so many rows is a multiple of 1/840."""


@dataclass(frozen=True)
class Limbs:
    """Fixed-point columns: a value of column d is an integer times unit[d] / divisor[d].

    Axis letters: n rows, D columns, L limbs of all columns together.
    """

    digits: np.ndarray  # float32 [n, L] integers, |digit| <= 2^24 / total weight
    column: np.ndarray  # int64 [L] the column that a limb belongs to
    place: np.ndarray  # float64 [L] what a limb counts for in it
    unit: np.ndarray  # float64 [D] powers of two
    divisor: np.ndarray  # float64 [D] integers

    def totals(self, sums: np.ndarray) -> np.ndarray:
        """Puts limbs together.

        Args:
            sums: float32 [R, L], R sums of `digits` times weights.

        Returns:
            float64 [D, R], the sums of the columns' integers, exact.
        """
        totals = np.zeros((len(self.unit), len(sums)), np.float64)
        limbs = np.ascontiguousarray(sums.T).astype(np.float64)
        for limb, column, place in zip(limbs, self.column, self.place, strict=True):
            totals[column] += limb * place
        return totals


def split_columns(columns: np.ndarray, total_weight: int) -> Limbs:
    """Cuts columns into limbs for sums whose integer weights add up to `total_weight`.

    A column is rounded to a multiple of a power of two at most 2^-26 of its peak (largest absolute
    value): an error of at most 2^-27 = 7.5e-9 of the peak per value. There is no error where the
    values are such multiples already (counts, shares of 2, 4 or 8 rows) or the floats nearest to
    shares of at most 16 rows. Columns that need fewer limbs take fewer.

    Args:
        columns: float64 [n, D], finite.
        total_weight: 1 .. 2^21, sum of the non-negative weights of any sum to come.

    Returns:
        The limbs; all that `totals` adds up are integers below 2^53.
    """
    # |digit| <= 2^(width - 1), the largest power of two that keeps total_weight * |digit| <= 2^24.
    width = FLOAT32_EXACT_BITS - (total_weight - 1).bit_length() + 1
    bits = -(-MIN_BITS // width) * width - 1
    n, statistics = columns.shape
    digits: list[np.ndarray] = []
    owner: list[int] = []
    place: list[float] = []
    unit = np.ones(statistics, np.float64)
    divisor = np.ones(statistics, np.float64)
    for column in range(statistics):
        integers, unit[column], divisor[column] = _fixed_point(columns[:, column], bits)
        limbs = _digits(integers, width)
        digits += limbs
        owner += [column] * len(limbs)
        place += [2.0 ** (width * position) for position in range(len(limbs))]
    table = np.empty((n, len(digits)), np.float32)
    for index, digit in enumerate(digits):
        table[:, index] = digit
    return Limbs(
        digits=table,
        column=np.array(owner, np.int64),
        place=np.array(place, np.float64),
        unit=unit,
        divisor=divisor,
    )


def _fixed_point(values: np.ndarray, bits: int) -> tuple[np.ndarray, float, int]:
    """int64 [n] of at most 2^bits, unit and divisor of one column."""
    peak = float(np.max(np.abs(values), initial=0.0))
    # Every float64 is a multiple of 2^-1074.
    exponent, divisor = max(math.frexp(peak)[1] - bits, -1074), 1
    integers = np.rint(np.ldexp(values, -exponent))
    if (np.ldexp(integers, exponent) != values).any():
        for candidate in DIVISORS:
            if peak * candidate >= 2.0**bits:
                break
            multiples = np.rint(values * candidate)
            if (multiples / candidate == values).all():
                integers, exponent, divisor = multiples, 0, candidate
                break
    whole = integers.astype(np.int64)
    # Drop the zero bits that all values end with: v & -v is the lowest set bit of v.
    used = int(np.bitwise_or.reduce(whole))
    spare = (used & -used).bit_length() - 1 if used else 0
    return whole >> spare, math.ldexp(1.0, exponent + spare), divisor


def _digits(integers: np.ndarray, width: int) -> list[np.ndarray]:
    """int64 [n] in signed digits of base 2^width, lowest first, |digit| <= 2^(width - 1)."""
    half, mask = 1 << (width - 1), (1 << width) - 1
    digits = []
    rest = integers
    while rest.any():
        # The highest digit takes all that is left: `half` itself may stand there.
        last = np.max(np.abs(rest)) <= half
        digit = rest if last else ((rest + half) & mask) - half
        digits.append(digit)
        rest = (rest - digit) >> width
    return digits
