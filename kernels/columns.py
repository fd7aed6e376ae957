"""What a bootstrap draws for each of its columns: nothing, values or clusters.

The rules are those of `kernels.bootstrap`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from herald_jax.kernels.distinct import few_distinct, few_pairs
from herald_jax.kernels.limbs import FixedPoint, fixed_point
from herald_jax.kernels.resample import TILE
from herald_jax.kernels.threads import in_threads

# A column whose values agree this closely (relative to its peak) is constant: what is left is the
# rounding of the caller's own sums and means.
ROUNDING = 2.0**-44
LARGEST = 2.0**900  # sums of 2^24 such values are far from overflow

FEW_FROM = TILE
CLUSTERS_A_VALUE = 1024
THREADS_FROM = 2**15

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A column to draw, in fixed point.

    Axis letter: U distinct values, or clusters where `times` is None.
    """

    numerator: FixedPoint  # [U]
    denominator: FixedPoint | None  # [U]
    times: np.ndarray | None  # int64 [U] clusters that have each of the values


@dataclass(frozen=True)
class Columns:
    """Axis letter: D columns as given."""

    drawn: list[Column]
    which: np.ndarray  # int64 [D] the drawn column of each, -1 for a constant one


def plan_columns(numerator: np.ndarray, denominator: np.ndarray | None) -> Columns:
    """Decides for each column what is drawn.

    Args:
        numerator: float64 [n, D], values of n clusters, n >= 2.
        denominator: float64 [n], positive weights of the clusters, or None for means.

    Returns:
        The plan, which holds the columns in fixed point.

    Raises:
        ValueError: a value is not finite, or beyond 2^900.
    """
    n, statistics = numerator.shape
    weights = None if denominator is None else fixed_point(denominator, n)
    most = n // CLUSTERS_A_VALUE if n > FEW_FROM else 0

    def look(d: int) -> tuple[float, float, int] | None:
        """Marks of a column that equal ones share; None for a constant one."""
        values = np.ascontiguousarray(numerator[:, d])
        low, high = float(values.min()), float(values.max())
        if not (low > -LARGEST and high < LARGEST):
            raise ValueError("numerator must be finite and below 2^900")
        if denominator is None:
            constant = high - low <= ROUNDING * max(high, -low)
        else:
            ratio = values / denominator
            constant = np.ptp(ratio) <= ROUNDING * np.abs(ratio).max()
        return None if constant else (low, high, int(values.view(np.uint64).sum()))

    def draw(d: int) -> Column:
        values = np.ascontiguousarray(numerator[:, d])
        if most and denominator is None:
            few = few_distinct(values, most)
            if few is not None:
                return Column(fixed_point(few[0], n), None, few[1])
        if most and denominator is not None:
            pairs = few_pairs(values, denominator, most)
            if pairs is not None:
                value, weight, times = pairs
                return Column(fixed_point(value, n), fixed_point(weight, n), times)
        return Column(fixed_point(values, n), weights, None)

    marks = each(look, range(statistics), n)
    which = np.full(statistics, -1)
    firsts: dict[tuple[float, float, int], list[int]] = {}
    drawn: list[int] = []
    for d, mark in enumerate(marks):
        if mark is None:
            continue
        alike = firsts.setdefault(mark, [])
        for first in alike:
            if np.array_equal(numerator[:, d], numerator[:, first]):
                which[d] = which[first]
                break
        else:
            alike.append(d)
            which[d] = len(drawn)
            drawn.append(d)
    return Columns(each(draw, drawn, n), which)


def each(function: Callable[[S], T], items: Iterable[S], n: int) -> list[T]:
    """[function(item) for item in items], by threads where columns are long enough for it."""
    return [function(item) for item in items] if n < THREADS_FROM else in_threads(function, items)
