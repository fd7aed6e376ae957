"""BM25 and the lexical score, one passage at a time."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

SCALE = 65_536


def idf(
    passages: Sequence[Sequence[str]], epsilon: float = 0.25, variant: str = "okapi"
) -> Mapping[str, float]:
    """Inverse document frequency of every term that occurs."""
    n = len(passages)
    values: dict[str, float] = {}
    for term, df in Counter(term for passage in passages for term in set(passage)).items():
        if variant == "okapi":
            values[term] = math.log(n - df + 0.5) - math.log(df + 0.5)
        else:
            values[term] = math.log(1 + (n - df + 0.5) / (df + 0.5))
    if variant == "okapi" and values:
        floor = epsilon * (math.fsum(values.values()) / len(values))
        values = {term: floor if value < 0 else value for term, value in values.items()}
    return values


def contribution(
    tf: int, length: int, average: float, idf: float, k1: float, b: float, factor: float
) -> float:
    """What one occurrence of a term in the query adds to the score of a passage, unrounded."""
    return idf * (tf * factor / (tf + k1 * (1 - b + b * length / average)))


def nearest_even(value: float) -> int:
    """The nearest integer, the even one of two; exact, by rational arithmetic."""
    exact = Fraction(value)
    below = math.floor(exact)
    rest = exact - below
    if rest == Fraction(1, 2):
        return below + below % 2
    return below + (rest > Fraction(1, 2))


def bm25_scores(
    passages: Sequence[Sequence[str]],
    query: Sequence[str],
    k1: float = 1.5,
    b: float = 0.75,
    epsilon: float = 0.25,
    variant: str = "okapi",
) -> list[int]:
    """The score of every passage, in units of 1 / SCALE."""
    weights = idf(passages, epsilon, variant)
    total = sum(map(len, passages))
    factor = 1.0 if variant == "lucene8" else k1 + 1
    scores = []
    for passage in passages:
        score = 0
        for term in query:
            tf = list(passage).count(term)
            if tf:
                average = total / len(passages)
                exact = contribution(tf, len(passage), average, weights[term], k1, b, factor)
                score += nearest_even(exact * SCALE)
        scores.append(score)
    return scores


def lexical_scores(passages: Sequence[Sequence[str]], query: Sequence[str]) -> list[int]:
    """The number of distinct query tokens in every passage."""
    return [len(set(passage) & set(query)) for passage in passages]


def ranking(scores: Sequence[int], exclude: Sequence[int], k: int) -> list[int]:
    """The k best positions that are not excluded: score descending, then position ascending."""
    candidates = [i for i in range(len(scores)) if i not in set(exclude)]
    return sorted(candidates, key=lambda i: (-scores[i], i))[:k]
