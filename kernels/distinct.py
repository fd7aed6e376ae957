"""Columns with few distinct values: the values and how often each occurs."""

import numpy as np

SAMPLE = 4096


def few_distinct(values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Distinct values and their frequencies, when there are few.

    Args:
        values: float64 [n], n >= 1, no NaN.
        most: the most distinct values.

    Returns:
        float64 [U] in rising order and int64 [U]; None when there are more than `most`.
    """
    # Mostly a sample says already that there are too many.
    if len(values) > SAMPLE and _distinct(values[:: len(values) // SAMPLE])[0].size > most:
        return None
    found = _distinct(values)
    return found if found[0].size <= most else None


def _distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ordered = np.sort(values + 0.0)  # + 0.0 leaves one zero, 0.0
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[first], np.diff(np.append(first, len(ordered)))


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
