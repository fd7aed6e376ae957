"""Columns of float64 as integer limbs whose weighted sums are exact in float32.

A sum of floats depends on the order of its terms, and the order that a matrix product takes
depends on the device, the block and the library. A sum of integers does not, and float32 adds
integers exactly while every partial sum stays within 2^24. So each column becomes fixed point and
is cut into signed limbs (digits in a power-of-two base) small enough for that: with integer
weights that add up to n, |any partial sum| <= n * max |limb| <= 2^24. The host puts the limbs'
sums together in float64, exactly again.
"""

from dataclasses import dataclass

import numpy as np

FLOAT32_EXACT_BITS = 24
MIN_BITS = 28
"""Fixed-point bits, sign included: the rounding error is then below 2^-27 of the column's peak."""


@dataclass(frozen=True)
class Limbs:
    """Fixed-point columns, column d being `unit 2^exponent[d]`.

    Axis letters: n rows, D columns, L limbs of all columns together.
    """

    digits: np.ndarray  # float32 [n, L] integers, |digit| <= 2^24 / total weight
    place: np.ndarray  # float64 [L, D] value of a limb in its column's units, 0 in other columns
    exponent: np.ndarray  # int64 [D] a column's unit is 2^exponent


def split_columns(columns: np.ndarray, total_weight: int) -> Limbs:
    """Cuts columns into limbs for sums whose integer weights add up to `total_weight`.

    A column is rounded to a multiple of a power of two at most 2^-26 of its peak (largest absolute
    value), an error of at most 2^-27 = 7.5e-9 of the peak per value, and none at all where the
    values are such multiples already (counts, shares of 2, 4 or 8 rows). Columns whose values are
    multiples of a larger power of two take fewer limbs.

    Args:
        columns: float64 [n, D], finite.
        total_weight: 1 .. 2^21, sum of the non-negative weights of any sum to come.

    Returns:
        The limbs; sums of `digits` times weights, times `place`, are integers below 2^53.
    """
    # |digit| <= 2^(width - 1), the largest power of two that keeps total_weight * |digit| <= 2^24.
    width = FLOAT32_EXACT_BITS - (total_weight - 1).bit_length() + 1
    most = -(-MIN_BITS // width)
    peak = np.max(np.abs(columns), axis=0, initial=0.0)
    exponent = np.frexp(peak)[1].astype(np.int64) - (most * width - 1)
    integers = np.rint(np.ldexp(columns, -exponent)).astype(np.int64)  # |.| <= 2^(most width - 1)
    # Drop the zero bits that all values of a column end with: v & -v is the lowest set bit of v.
    used = np.bitwise_or.reduce(integers, axis=0)
    spare = np.frexp(np.maximum(used & -used, 1).astype(np.float64))[1].astype(np.int64) - 1
    integers >>= spare
    exponent += spare

    digits: list[np.ndarray] = []
    places: list[np.ndarray] = []
    half, base = 1 << (width - 1), 1 << width
    for column in range(columns.shape[1]):
        rest = integers[:, column]
        place = 1.0
        while rest.any():
            # The last limb takes all that is left, as it may be `half` itself.
            last = np.max(np.abs(rest)) <= half
            digit = rest if last else ((rest + half) & (base - 1)) - half
            digits.append(digit.astype(np.float32))
            places.append(place * (np.arange(columns.shape[1]) == column))
            rest = (rest - digit) >> width
            place *= base
    shape = (len(digits), len(columns))
    return Limbs(
        digits=np.array(digits, np.float32).reshape(shape).T,
        place=np.array(places, np.float64).reshape(len(places), columns.shape[1]),
        exponent=exponent,
    )
