"""Faults of retrieval: BM25 in small corpora, ties, signed zeros.

Of `ranking-ties-nan`, cosines and vectors concern dense retrieval, an optional extra that is not
part of the package yet.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from herald_jax.kernels.bm25 import SCALE, contributions
from herald_jax.kernels.lexical import build_lexical, lexical_topk
from herald_jax.kernels.postings import term_frequency
from herald_jax.kernels.topk import BLOCK, NO_SCORE, topk
from herald_jax.search import CorpusIndex
from herald_jax.types import PAD
from known_faults.cases import Case, Record, exact

# In a pool, passages stand in the order of their ids, whatever the order of the file.
ORDERS = (lambda rows: rows, lambda rows: rows[::-1])


def _in_code_order(rows: list[Record]) -> list[Record]:
    return sorted(rows, key=lambda row: row["passage_id"])


def _words(text: str) -> list[str]:
    """Tokens by the rule of the cases: lower case, split on white space."""
    return text.lower().split()


def _vectors(rows: list[Record]):
    words = [_words(row["text"]) for row in rows]
    vocabulary = {word: i for i, word in enumerate(sorted({w for ws in words for w in ws}))}
    flat = np.array([vocabulary[word] for ws in words for word in ws], np.int32)
    return flat, np.cumsum([0, *map(len, words)], dtype=np.int64), vocabulary


def _spelled(text: str) -> str:
    """The same tokens in letters alone, which no tokeniser splits or folds into each other."""
    return " ".join("x" + "".join(f"{ord(c):x}z" for c in word) for word in _words(text))


def _index(rows: list[Record], variant: str) -> CorpusIndex:
    return CorpusIndex([("", _spelled(row["text"])) for row in rows], variant=variant)


def bm25_order(case: Case, folder: Path) -> None:
    names = list(case.given["queries"])
    texts = [_spelled(case.given["queries"][name]) for name in names]
    for order in ORDERS:
        rows = _in_code_order(order(case.given["corpus"]))
        ids = [row["passage_id"] for row in rows]
        codes, scores = _index(rows, "lucene").bm25(texts, None, case.given["k"])
        for name, text, found, points in zip(names, texts, codes, scores, strict=True):
            assert [ids[code] for code in found if code != PAD] == case.expected["top_k"][name]
            # Each contribution is rounded by at most half a unit.
            rounding = len(text.split()) * 0.5 / SCALE
            for code, score in zip(found[found != PAD], points, strict=False):
                right = case.expected["scores"][name][ids[code]]
                assert abs(score / SCALE - right) <= rounding + 1e-9


def bm25_scores(case: Case, folder: Path) -> None:
    """Scores before they are rounded, with and without the factor k1 + 1."""
    rows = _in_code_order(case.given["corpus"])
    flat, offsets, vocabulary = _vectors(rows)
    frequency = term_frequency(flat, offsets, len(vocabulary))
    for variant, values in (("lucene", "scores"), ("lucene8", "scores_lucene")):
        parts = contributions(frequency, variant=variant)
        table = scipy.sparse.csc_array(
            (parts, frequency.indices, frequency.indptr), frequency.shape
        )
        for name, text in case.given["queries"].items():
            known = [vocabulary[word] for word in _words(text) if word in vocabulary]
            scores = table.toarray()[:, known].sum(axis=1)
            for row, score in zip(rows, scores, strict=True):
                right = case.expected[values][name][row["passage_id"]]
                assert score == pytest.approx(right, rel=1e-6, abs=1e-9)


def bm25_of_degenerate_corpora(case: Case, folder: Path) -> None:
    texts = [_spelled(text) for text in case.given["queries"].values()]
    for name, corpus in case.given["degenerate_corpora"].items():
        rows = _in_code_order(corpus)
        for variant in ("okapi", "lucene", "lucene8"):
            codes, scores = _index(rows, variant).bm25(texts, None, case.given["k"])
            for found, points in zip(codes, scores, strict=True):
                ids = [rows[code]["passage_id"] for code in found if code != PAD]
                right = case.expected["degenerate"][name]
                assert ids == right["top_k"]
                assert [p / SCALE for p in points[found != PAD]] == [
                    right["scores"][i] for i in ids
                ]


def lexical_ties(case: Case, folder: Path) -> None:
    for order in ORDERS:
        rows = _in_code_order(order(case.given["lexical_passages"]))
        flat, offsets, vocabulary = _vectors(rows)
        index = build_lexical(term_frequency(flat, offsets, len(vocabulary)))
        nothing = np.full((1, 1), PAD, np.int32)
        for name, text in case.given["lexical_queries"].items():
            words = _words(text)
            ids = np.array([[vocabulary.get(word, PAD) for word in words] or [PAD]], np.int32)
            # The case ranks passages that share nothing as well: lowest score 0.
            codes, scores = lexical_topk(index, ids, nothing, k=case.given["k"], least=0)
            found = [rows[code]["passage_id"] for code in codes[0].tolist() if code != PAD]
            assert found == case.expected["lexical_order"][name]
            distinct = max(1, len(set(words)))
            for passage_id, score in zip(found, scores[0].tolist(), strict=False):
                share = case.expected["lexical"][name][passage_id]
                assert Fraction(score, distinct) == exact(share)


def signed_zeros(case: Case, folder: Path) -> None:
    """Scores enter as integers, here millionths: there is one zero."""
    given = case.given["given_scores"]
    ids = sorted(given)
    width = -(-len(ids) // BLOCK) * BLOCK
    scores = np.full((1, width), NO_SCORE, np.int32)
    scores[0, : len(ids)] = np.rint([1e6 * given[name] for name in ids])
    codes, _ = topk(scores, k=len(ids))
    assert [ids[code] for code in codes[0].tolist()] == case.expected["given_scores_order"]
