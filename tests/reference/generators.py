"""Candidate passages for laundering: lexical, BM25, stored, exhaustive by class.

The first two see the question, the answer, what was retrieved and cited, and the corpus; the third
takes what the log proposes; the last reads support and is for oracle-worst alone.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from reference.detectors import retrieved_ids
from reference.text import tokens

K1, B, EPSILON = 1.5, 0.75, 0.25
UNIT = 65536  # contributions are whole multiples of 1 / UNIT


class Corpus:
    """The passages, their tokens, and the two rankings over them.

    The rankings are remembered: rollouts of one question often share an answer.
    """

    def __init__(self, texts: dict[str, str], bm25_variant: str = "okapi"):
        self.texts = texts
        self.tokens = {id_: tokens(text) for id_, text in texts.items()}
        self.token_sets = {id_: set(found) for id_, found in self.tokens.items()}
        self.contributions = bm25_contributions(self.tokens, bm25_variant)
        self.remembered: dict[tuple[str, tuple[str, ...]], list[str]] = {}

    def __contains__(self, id_: str) -> bool:
        return id_ in self.texts

    def lexical_scores(self, query: Sequence[str]) -> dict[str, int]:
        """Passage -> number of distinct tokens shared with the query; only those above 0."""
        wanted = set(query)
        scores = {id_: len(wanted & found) for id_, found in self.token_sets.items()}
        return {id_: score for id_, score in scores.items() if score > 0}

    def bm25_scores(self, query: Sequence[str]) -> dict[str, int]:
        """Passage -> BM25 score in units of 1 / UNIT; a score of 0 or below stays."""
        scores = dict.fromkeys(self.texts, 0)
        for term, times in Counter(query).items():
            for id_, contribution in self.contributions.get(term, {}).items():
                scores[id_] += times * contribution
        return scores

    def ranking(self, generator: str, query: Sequence[str]) -> list[str]:
        """Every passage that the generator scores, best first, equal ones by code points."""
        score = {"lexical": self.lexical_scores, "bm25": self.bm25_scores}[generator]
        key = (generator, tuple(query))
        if key not in self.remembered:
            scores = score(query)
            self.remembered[key] = sorted(scores, key=lambda id_: (-scores[id_], id_))
        return self.remembered[key]


def bm25_idf(df: Counter, passages: int, variant: str) -> dict[str, float]:
    """Term -> idf, with the floor of rank_bm25 0.2.2 for `okapi`."""
    if variant == "lucene":
        return {term: math.log(1 + (passages - n + 0.5) / (n + 0.5)) for term, n in df.items()}
    if variant != "okapi":
        raise ValueError(f"no such variant: {variant}")
    idf = {term: math.log(passages - n + 0.5) - math.log(n + 0.5) for term, n in df.items()}
    if not idf:
        return {}
    floor = EPSILON * (math.fsum(idf.values()) / len(idf))
    return {term: floor if value < 0 else value for term, value in idf.items()}


def bm25_contributions(passages: dict[str, list[str]], variant: str) -> dict[str, dict[str, int]]:
    """Term -> passage -> what one occurrence of the term in a query adds to the passage's score.

    idf · tf (k1 + 1) / (tf + k1 (1 − b + b · length / mean length)), rounded to nearest, ties to
    even, in units of 1 / UNIT.
    """
    df = Counter(term for found in passages.values() for term in set(found))
    idf = bm25_idf(df, len(passages), variant)
    mean_length = sum(map(len, passages.values())) / len(passages) if passages else 0.0
    contributions: dict[str, dict[str, int]] = {term: {} for term in idf}
    for id_, found in passages.items():
        for term, tf in Counter(found).items():
            length = 1 - B + B * len(found) / mean_length
            value = idf[term] * (tf * (K1 + 1) / (tf + K1 * length))
            contributions[term][id_] = round(value * UNIT)
    return contributions


def seen_ids(trajectory: dict) -> set[str]:
    """E ∪ C: what a candidate must not be."""
    return {*retrieved_ids(trajectory), *trajectory["citations"]}


def candidates(generator: str, k: int, trajectory: dict, corpus: Corpus) -> list[str]:
    """The ranked candidates of a blind generator."""
    seen = seen_ids(trajectory)
    if generator == "stored":
        proposed = [p for p in trajectory["candidates"] if p in corpus and p not in seen]
        return list(dict.fromkeys(proposed))[:k]
    query = tokens(trajectory["question"]) + tokens(trajectory["answer"] or "")
    return list(islice((p for p in corpus.ranking(generator, query) if p not in seen), k))


def exhaustive(trajectory: dict, gold: dict, corpus: Corpus) -> list[str]:
    """The first of each class of P \\ (E ∪ C): support, not support."""
    seen, support = seen_ids(trajectory), set(gold["support_ids"])
    supporting = [p for p in corpus.texts if p in support and p not in seen]
    other = (p for p in sorted(corpus.texts) if p not in support and p not in seen)
    return sorted(supporting)[:1] + list(other)[:1]
