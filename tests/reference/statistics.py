"""Bootstrap, its random stream and exact binomial intervals, in integers and fractions."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

WORD = 1 << 32


def mix(word: int, key: int) -> int:
    """The stream's mixing step: triple32, with a key added after the first round."""
    word ^= word >> 17
    word = word * 0xED5AD4BB % WORD
    word = ((word ^ (word >> 11)) + key) % WORD
    word = word * 0xAC4C1B51 % WORD
    word ^= word >> 15
    word = word * 0x31848BAB % WORD
    return word ^ (word >> 14)


def draws(seed: int, replicate: int, n: int) -> list[int]:
    """The n clusters of one replicate."""
    low, high = seed % WORD, seed // WORD
    first = mix(low ^ 0x243F6A88, high)
    second = mix(high ^ 0x85A308D3, first)
    offset = mix(replicate ^ first, second)
    key = mix(replicate ^ second, first ^ 0x13198A2E)
    return [mix((draw + offset) % WORD, key) * n // WORD for draw in range(n)]


def statistic(
    picks: Sequence[int], numerator: Sequence[Fraction], denominator: Sequence[Fraction] | None
) -> Fraction:
    """Ratio of sums over the picked clusters; the mean when there is no denominator."""
    below = sum(denominator[i] for i in picks) if denominator is not None else len(picks)
    return sum(numerator[i] for i in picks) / Fraction(below)


def replicates(
    numerator: Sequence[Fraction], denominator: Sequence[Fraction] | None, seed: int, count: int
) -> list[Fraction]:
    """The statistic of each replicate of the stream."""
    n = len(numerator)
    return [statistic(draws(seed, r, n), numerator, denominator) for r in range(count)]


def distribution(
    numerator: Sequence[Fraction], denominator: Sequence[Fraction] | None
) -> dict[Fraction, int]:
    """All n^n draws: value of the statistic -> number of draws that give it."""
    n = len(numerator)
    ways: Counter[Fraction] = Counter()
    for picks in itertools.product(range(n), repeat=n):
        ways[statistic(picks, numerator, denominator)] += 1
    return dict(sorted(ways.items()))


def percentile(values: Sequence[Fraction], share: Fraction) -> Fraction:
    """The smallest value that at least this share of the values do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def tail_at_most(successes: int, n: int, p: Fraction) -> Fraction:
    """P(X <= successes) of X ~ Binomial(n, p), exactly."""
    return sum(
        (math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(successes + 1)), Fraction(0)
    )


def clopper_pearson_upper(successes: int, n: int, alpha: Fraction) -> float:
    """The p at which P(X <= successes) is alpha, by bisection to 2^-40; 1 at n successes."""
    if successes == n:
        return 1.0
    low, high = 0, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        if tail_at_most(successes, n, Fraction(middle, 1 << 40)) > alpha:
            low = middle
        else:
            high = middle
    return low / (1 << 40)
