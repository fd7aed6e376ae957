"""Subsets of the lattice's detectors: their names, and which of them suffice."""

from collections.abc import Collection, Sequence
from itertools import combinations

from reference.settings import DETECTORS, SYMBOLS


def subsets(detectors: Collection[str]) -> list[tuple[str, ...]]:
    """All of them, smaller ones first, each in the order of the table of detectors."""
    ordered = [name for name in DETECTORS if name in detectors]
    return [s for size in range(len(ordered) + 1) for s in combinations(ordered, size)]


def subset_name(subset: Sequence[str]) -> str:
    """R0 for the empty one, R[U+L] and the like for the others."""
    return f"R[{'+'.join(SYMBOLS[name] for name in subset)}]" if subset else "R0"


def minimal(sufficient: Collection[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The sufficient subsets no proper subset of which is sufficient."""
    return [s for s in sufficient if not any(set(other) < set(s) for other in sufficient)]
