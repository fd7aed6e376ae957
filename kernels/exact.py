"""Exact sums of float64 that can be merged in any order.

A float is an integer times a power of two. The sum keeps one integer per power of two, so adding
is integer addition: associative, commutative and without rounding. One rounding happens, in
`value`. Hence a mean over rows is the same to the last bit for any order of rows, any chunk size
and any number of processes. The idea is that of a superaccumulator (R. Neal, Fast exact summation
using small and large superaccumulators, arXiv 1505.05571).
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

# `frexp` gives exponents -1073 .. 1024, and 53 bits of mantissa, taken as 27 + 26.
LOWEST_EXPONENT = -1073
EXPONENTS = 1024 - LOWEST_EXPONENT + 1
UPPER_BITS, LOWER_BITS = 27, 26
MAX_COUNT = 2**36  # of integers up to 2^27 that an int64 adds without overflow
_CHUNK = 2**25  # of integers up to 2^27 that a float64 adds exactly, in `bincount`


def _no_bins() -> np.ndarray:
    return np.zeros((2, EXPONENTS), np.int64)


@dataclass
class ExactSum:
    """Sum of float64 values without rounding, and how many they are.

    The state is `bins` and `count`: they can be saved, sent and added.
    """

    bins: np.ndarray = field(default_factory=_no_bins)
    """int64 [2, EXPONENTS]: sums of the upper and lower halves of mantissas, by exponent."""
    count: int = 0
    """Values added."""

    def add(self, values: np.ndarray) -> None:
        """Adds values.

        Args:
            values: float64 of any shape.

        Raises:
            ValueError: a value is not finite (nothing is added then).
            OverflowError: more than 2^36 values.
        """
        flat = np.asarray(values, np.float64).reshape(-1)
        if not np.isfinite(flat).all():
            raise ValueError("an exact sum takes finite values only; count the others apart")
        self._grow(flat.size)
        for start in range(0, flat.size, _CHUNK):
            mantissa, exponent = np.frexp(flat[start : start + _CHUNK])
            scaled = np.ldexp(mantissa, UPPER_BITS)
            upper = np.trunc(scaled)
            lower = np.ldexp(scaled - upper, LOWER_BITS)  # an integer: nothing is lost
            place = exponent.astype(np.int64) - LOWEST_EXPONENT
            for bins, part in zip(self.bins, (upper, lower), strict=True):
                bins += np.bincount(place, weights=part, minlength=EXPONENTS).astype(np.int64)

    def merge(self, other: "ExactSum") -> None:
        """Adds another sum.

        Args:
            other: left as it is.

        Raises:
            OverflowError: more than 2^36 values.
        """
        self._grow(other.count)
        self.bins += other.bins

    def fraction(self) -> Fraction:
        """The sum itself."""
        total = 0  # in units of the lower half at the lowest exponent
        for bins, bits in zip(self.bins, (LOWER_BITS, 0), strict=True):
            for place in np.flatnonzero(bins).tolist():
                total += int(bins[place]) << (place + bits)
        return total * Fraction(2) ** (LOWEST_EXPONENT - UPPER_BITS - LOWER_BITS)

    def value(self) -> float:
        """The sum, rounded once to the nearest float64.

        Raises:
            OverflowError: the sum is beyond the largest float64.
        """
        return float(self.fraction())

    def mean(self) -> float:
        """The sum over the count, rounded once to the nearest float64.

        Raises:
            ValueError: nothing was added; the mean of nothing is unknown, not 0.
        """
        if self.count == 0:
            raise ValueError("the mean of no values is unknown")
        return float(self.fraction() / self.count)

    def _grow(self, count: int) -> None:
        if self.count + count > MAX_COUNT:
            raise OverflowError(f"an exact sum holds at most {MAX_COUNT} values")
        self.count += count
