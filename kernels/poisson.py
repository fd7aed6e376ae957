"""Poisson laws as tables of 32-bit thresholds: a uniform word becomes a count by comparisons.

The count of a word is the number of thresholds below it, which is inversion of the distribution
function (L. Devroye, Non-Uniform Random Variate Generation, 1986, section III.2). Each value of
the distribution function is rounded to a multiple of 2^-32, and what lies beyond 2^-33 in either
tail is left out; that is all that sets a count apart from a Poisson count.

The tables come from additions, multiplications, divisions and square roots in a fixed order, which
IEEE 754 fixes to the last bit; exponentials and gamma functions differ between libraries, and a
stream made of them would not be the same everywhere.
"""

from dataclasses import dataclass

import numpy as np

# P(|X - rate| > TAIL sqrt(rate) + EXTRA) is below 2^-33 on either side by Chernoff's bounds.
TAIL = 6.8
EXTRA = 16


@dataclass(frozen=True)
class Tables:
    """Thresholds of m Poisson laws, one behind the other.

    The count of a word under law i is least[i] plus the number of
    last[start[i] : start[i] + size[i]] that are smaller than the word.
    """

    last: np.ndarray  # uint32 [sum of size] the largest word that gives at most a count
    start: np.ndarray  # int32 [m]
    size: np.ndarray  # int32 [m]
    least: np.ndarray  # int32 [m] the smallest count


def poisson_tables(rates: np.ndarray) -> Tables:
    """Tables of Poisson laws.

    Args:
        rates: float64 [m], each between 0 and 2^24.

    Returns:
        The tables, in the order of the rates.
    """
    spread = TAIL * np.sqrt(rates)
    least = np.maximum(np.floor(rates - spread), 0.0).astype(np.int64)
    width = np.ceil(rates + spread).astype(np.int64) + EXTRA - least
    start, size = np.zeros_like(least), np.zeros_like(least)
    parts = [np.empty(0, np.uint32)]
    filled = 0
    octave = np.frexp(width.astype(np.float64))[1]
    for wide in np.unique(octave):  # widths within a factor of two are padded to one
        alike = np.flatnonzero(octave == wide)
        words = _distribution(rates[alike], least[alike], int(width[alike].max()))
        # A count that no word falls short of is surely reached; one of 2^32 is never passed.
        least[alike] += (words == 0).sum(axis=1)
        kept = (words > 0) & (words < 2**32)
        size[alike] = kept.sum(axis=1)
        start[alike] = filled + np.cumsum(size[alike]) - size[alike]
        parts.append((words[kept] - 1).astype(np.uint32))
        filled += len(parts[-1])
    return Tables(
        last=np.concatenate(parts),
        start=start.astype(np.int32),
        size=size.astype(np.int32),
        least=least.astype(np.int32),
    )


def _distribution(rates: np.ndarray, least: np.ndarray, width: int) -> np.ndarray:
    """int64 [m, width]: P(X <= least), P(X <= least + 1), ... times 2^32, rounded."""
    counts = least[:, None] + np.arange(width)
    ratio = rates[:, None] / np.maximum(counts, 1)  # P(X = k) / P(X = k - 1)
    ratio[:, 0] = 1.0
    # Both accumulate from the left, one after the other: no library orders these anew.
    below = np.add.accumulate(np.multiply.accumulate(ratio, axis=1), axis=1)
    words: np.ndarray = np.floor(below / below[:, -1:] * 2.0**32 + 0.5).astype(np.int64)
    return words
