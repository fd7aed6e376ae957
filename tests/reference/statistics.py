"""Bootstrap, its random stream and exact binomial intervals, in integers and fractions."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
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


def words(seed: int, replicate: int, stage: int, numbers: Iterable[int]) -> list[int]:
    """Uniform words of one stage of one replicate."""
    low, high = seed % WORD, seed // WORD
    first = mix(low ^ 0x243F6A88, high)
    second = mix(high ^ 0x85A308D3, first)
    spread = stage * 0x9E3779B9
    offset = mix(replicate ^ first, (second + spread) % WORD)
    key = mix(replicate ^ second, ((first ^ 0x13198A2E) + spread) % WORD)
    return [mix((number + offset) % WORD, key) for number in numbers]


def draws(seed: int, replicate: int, n: int) -> list[int]:
    """The n clusters of one replicate, each an index."""
    return [word * n // WORD for word in words(seed, replicate, 0, range(n))]


def poisson_thresholds(rate: Fraction) -> list[Fraction]:
    """2^32 P(X <= k) of a Poisson law for k = 0, 1, ... until 2^-40 is left, in whole numbers."""
    unit = 1 << 200
    terms = [unit]
    # Falls off faster than a geometric series of ratio 1/2 from twice the rate on.
    while len(terms) <= 2 * rate or terms[-1] > unit >> 160:
        terms.append(terms[-1] * rate.numerator // (rate.denominator * len(terms)))
    total = sum(terms)
    found: list[Fraction] = []
    for below in itertools.accumulate(terms):
        found.append(Fraction(below * WORD, total))
        if total - below < total >> 40:
            break
    return found


def tile_counts(
    seed: int,
    replicate: int,
    share: int,
    rows: int,
    *,
    last: Sequence[int],
    most: int,
    stage: int,
    step: int,
) -> list[int]:
    """How often each row of a tile is drawn in `share` draws: Poisson counts, then indices."""
    while True:
        counts = [
            sum(word > threshold for threshold in last)
            for word in words(seed, replicate, stage + 1, range(rows))
        ]
        missing = share - sum(counts)
        if 0 <= missing <= most:
            break
        stage += step
    for word in words(seed, replicate, stage, range(missing)):
        counts[word * rows // WORD] += 1
    return counts


def category_counts(
    seed: int,
    replicate: int,
    times: Sequence[int],
    rates: Sequence[float],
    laws: Sequence[Sequence[tuple[int, Sequence[int]]]],
    *,
    singles: int = 64,
) -> list[int]:
    """How often each category is drawn in sum(times) draws: batches, then single items.

    `laws`: for each rate and category the least count and the thresholds above which it is one
    more, two more, ...
    """
    n = left = sum(times)
    counts = [0] * len(times)
    for turn in itertools.count():
        for v, (rate, law) in enumerate(zip(rates, laws, strict=True)):
            if left <= singles or rate > left:
                continue
            word = words(seed, replicate, (1 << 31) + 1 + 16 * turn + v, range(len(times)))
            drawn = [
                least + sum(w > threshold for threshold in last)
                for w, (least, last) in zip(word, law, strict=True)
            ]
            if sum(drawn) <= left:
                counts = [a + b for a, b in zip(counts, drawn, strict=True)]
                left -= sum(drawn)
        if left <= singles:
            break
    items = [u for u, count in enumerate(times) for _ in range(count)]
    for word in words(seed, replicate, 1 << 31, range(left)):
        counts[items[word * n // WORD]] += 1
    return counts


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
