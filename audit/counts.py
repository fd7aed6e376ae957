"""Counts by name, in trees: what an audit adds up section by section, in any order.

A tree is a dictionary whose leaves are integers, so that it can be written as JSON, merged by
addition, and is the same whatever way the work was cut.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from herald_jax.kernels.exact import ExactSum

Counts = dict[str, Any]


def bump(counts: Counts, *path: str, by: int = 1) -> None:
    """Add to the leaf at a path, which begins at 0."""
    *branches, leaf = path
    for branch in branches:
        counts = counts.setdefault(branch, {})
    counts[leaf] = counts.get(leaf, 0) + int(by)


def leaf(counts: Mapping[str, Any], *path: str) -> int:
    """The count at a path; 0 where nothing was counted."""
    found: Any = counts
    for name in path:
        found = found.get(name)
        if found is None:
            return 0
    return int(found)


def branch(counts: Mapping[str, Any], *path: str) -> Counts:
    """The tree at a path; empty where nothing was counted."""
    found: Any = counts
    for name in path:
        found = found.get(name, {})
    return dict(found)


def merge(into: Counts, other: Mapping[str, Any]) -> None:
    """Add every leaf of another tree."""
    for name, value in other.items():
        if isinstance(value, Mapping):
            merge(into.setdefault(name, {}), value)
        else:
            into[name] = into.get(name, 0) + value


def add_exactly(counts: Counts, *path: str, values: npt.NDArray[np.floating[Any]]) -> None:
    """Add finite float64 values to the exact sum at a path."""
    total = ExactSum()
    total.add(values)
    bump(counts, *path, "count", by=total.count)
    flat = total.bins.reshape(-1)
    for place in np.flatnonzero(flat).tolist():
        bump(counts, *path, "bins", str(place), by=int(flat[place]))


def exact_sum(counts: Mapping[str, Any], *path: str) -> ExactSum:
    """The exact sum at a path; that of no values where nothing was added."""
    total = ExactSum(count=leaf(counts, *path, "count"))
    flat = total.bins.reshape(-1)
    for place, value in branch(counts, *path, "bins").items():
        flat[int(place)] = value
    return total


def exact_total(counts: Mapping[str, Any], *path: str) -> Fraction:
    """The sum itself."""
    return exact_sum(counts, *path).fraction()
