"""Columns with few distinct values: the values and how often each occurs."""

import numpy as np

SAMPLE = 4096


def few_distinct(values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Distinct values and their frequencies, when there are few.

    Args:
        values: float64 [n], n >= 1, no NaN.
        most: the most distinct values.

    Returns:
        float64 [U] in rising order, a zero of either sign, and int64 [U]; None when there are more
        than `most`.
    """
    # Mostly a sample says already that there are too many.
    if len(values) > SAMPLE and _distinct(values[:: len(values) // SAMPLE], most) is None:
        return None
    return _distinct(values, most)


def _distinct(values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    ordered = np.sort(values)
    ends = [0]
    while ends[-1] < len(ordered):
        if len(ends) > most:
            return None
        ends.append(int(np.searchsorted(ordered, ordered[ends[-1]], side="right")))
    return ordered[ends[:-1]], np.diff(ends)


def few_pairs(
    values: np.ndarray, weights: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Distinct pairs and their frequencies, when there are few.

    Args:
        values: float64 [n], n >= 1, no NaN.
        weights: float64 [n], likewise.
        most: the most distinct pairs.

    Returns:
        float64 [U] values and float64 [U] weights in rising order, the value first, and int64 [U]
        frequencies; None when there are more than `most`.
    """
    both = [few_distinct(column, most) for column in (values, weights)]
    if both[0] is None or both[1] is None:
        return None
    (value, _), (weight, _) = both[0], both[1]
    code = np.searchsorted(value, values) * len(weight) + np.searchsorted(weight, weights)
    times = np.bincount(code)
    pair = np.flatnonzero(times)
    if len(pair) > most:
        return None
    return value[pair // len(weight)], weight[pair % len(weight)], times[pair]
