"""Columns of float64 as integers, and integers as signed bytes whose weighted sums are exact.

A sum of floats depends on the order of its terms, and the order that a matrix product takes
depends on the device, the block and the library. A sum of integers does not. So each column becomes
fixed point, and each integer up to four signed bytes (digits in base 256): processors and
accelerators multiply bytes and add the products into int32 much faster than they multiply floats.
With non-negative integer weights of at most 127 that add up to n <= 2^24, no sum of bytes exceeds
2^31. The host puts the sums of bytes together in float64, exactly again.
"""

import math
from dataclasses import dataclass

import numpy as np

BASE = 256.0
MOST_BITS = 30
EXACT_BITS = 53  # integers that float64 adds exactly

DIVISORS = (840, 720720)
"""Least common multiples of 1 .. 8 and 1 .. 16: a share of so many rows is a multiple of 1/840."""


@dataclass(frozen=True)
class FixedPoint:
    """A column in fixed point: its values are integers times unit / divisor."""

    integers: np.ndarray  # int32 [n]
    unit: float  # a power of two
    divisor: int


def fixed_point(values: np.ndarray, total_weight: int) -> FixedPoint:
    """A column as integers for sums whose integer weights add up to `total_weight`.

    Values are rounded to a multiple of a power of two at most 2^-26 of their peak (largest absolute
    value): an error of at most 2^-27 = 7.5e-9 of the peak per value, 9.4e-10 when the weights add
    up to less than 2^22. There is no error where the values are such multiples already (counts,
    shares of 2, 4 or 8 rows) or the floats nearest to shares of at most 16 rows.

    Args:
        values: float64 [n], finite.
        total_weight: 1 .. 2^24, sum of the non-negative weights of any sum to come.

    Returns:
        The column; sums of its integers, and of their digits as they are put together, are exact
        in float64.
    """
    # One bit is left for the digits: those below the highest may add up the other way.
    bits = min(MOST_BITS, EXACT_BITS - 1 - total_weight.bit_length())
    peak = max(float(values.max()), -float(values.min())) if values.size else 0.0
    # Every float64 is a multiple of 2^-1074.
    exponent, divisor = max(math.frexp(peak)[1] - bits, -1074), 1
    integers = _scaled(values, exponent)
    if (np.ldexp(integers, exponent) != values).any():
        for candidate in DIVISORS:
            if peak * candidate >= 2.0**bits:
                break
            if _shares(values, candidate):
                integers, exponent, divisor = np.rint(values * candidate), 0, candidate
                break
    whole = integers.astype(np.int64)
    # Drop the zero bits that all values end with: v & -v is the lowest set bit of v.
    used = int(np.bitwise_or.reduce(whole))
    spare = (used & -used).bit_length() - 1 if used else 0
    return FixedPoint((whole >> spare).astype(np.int32), math.ldexp(1.0, exponent + spare), divisor)


def _scaled(values: np.ndarray, exponent: int) -> np.ndarray:
    scaled: np.ndarray = np.rint(np.ldexp(values, -exponent))
    return scaled


def _shares(values: np.ndarray, of: int) -> bool:
    """Whether all values are the floats nearest to multiples of 1/of."""
    # The first few mostly say that they are not.
    if any(round(value * of) / of != value for value in values[:4].tolist()):
        return False
    return bool((np.rint(values * of) / of == values).all())


def needed_limbs(integers: np.ndarray) -> int:
    """How many signed digits the integers need.

    Args:
        integers: int32 [n], at most 2^30 in absolute value.

    Returns:
        0 .. 4.
    """
    low, high = int(integers.min(initial=0)), int(integers.max(initial=0))
    limbs = 0
    # Digits of -128 .. 127 reach from -128 to 127 times 1 + 256 + 256^2 + ...
    while not -128 * _ones(limbs) <= low <= high <= 127 * _ones(limbs):
        limbs += 1
    return limbs


def _ones(limbs: int) -> int:
    return (256**limbs - 1) // 255


def signed_digits(integers: np.ndarray, limbs: list[int]) -> np.ndarray:
    """Digits in base 256 of -128 .. 127.

    Args:
        integers: int32 [D, n], at most 2^30 in absolute value.
        limbs: how many digits of each of the D to keep, from `needed_limbs`.

    Returns:
        int8 [L, n], column after column, lowest digit first.
    """
    # With 128 added to each digit, the digits are the bytes of the sum.
    shifted = (integers.astype(np.int64) + 0x80808080).astype("<u4", order="C")
    digits = (shifted.view(np.uint8).reshape(*integers.shape, 4) ^ 0x80).view(np.int8)
    kept = np.arange(4) < np.array(limbs)[:, None]
    found: np.ndarray = digits.transpose(0, 2, 1)[kept]
    return found


def put_together(sums: np.ndarray, limbs: list[int]) -> np.ndarray:
    """Sums of integers from the sums of their digits, exact.

    Args:
        sums: int32 [L, R], R sums of L digits.
        limbs: how many of the L each of D columns has.

    Returns:
        float64 [D, R].
    """
    totals = np.zeros((len(limbs), sums.shape[1]))
    rows = iter(sums)
    for total, count in zip(totals, limbs, strict=True):
        for position in range(count):
            total += next(rows) * BASE**position
    return totals
