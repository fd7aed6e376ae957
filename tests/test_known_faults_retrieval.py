"""Faults that people met in retrieval, each through the project's own functions.

Of the case of ties and NaN, `cosine`, `top_k` of vectors and shards concern dense retrieval, an
optional extra that is not part of the package yet; its lexical and signed-zero parts are here.
"""

import json
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

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is not here")

ORDERS = {"as filed": lambda rows: rows, "reversed": lambda rows: rows[::-1]}


def case(name):
    content = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    return content["input"], content["expected"]["values"]


def in_code_order(rows):
    return sorted(rows, key=lambda row: row["passage_id"])


def vectors(rows):
    """Tokens by the rule of the cases: lower case, split on white space."""
    words = [row["text"].lower().split() for row in rows]
    vocabulary = {word: i for i, word in enumerate(sorted({w for ws in words for w in ws}))}
    flat = np.array([vocabulary[word] for ws in words for word in ws], np.int32)
    return flat, np.cumsum([0, *map(len, words)], dtype=np.int64), vocabulary


@pytest.mark.parametrize("order", ORDERS)
def test_bm25_order(order):
    given, expected = case("bm25-open")
    rows = in_code_order(ORDERS[order](given["corpus"]))
    ids = [row["passage_id"] for row in rows]
    index = CorpusIndex([(row["title"], row["text"]) for row in rows], variant="lucene")
    names = list(given["queries"])
    codes, scores = index.bm25([given["queries"][name] for name in names], None, given["k"])
    for name, found, points in zip(names, codes, scores, strict=True):
        assert [ids[code] for code in found if code != PAD] == expected["top_k"][name]
        for code, score in zip(found[found != PAD], points, strict=False):
            # At most four contributions, each rounded by at most half a unit.
            assert abs(score / SCALE - expected["scores"][name][ids[code]]) <= 4 * 0.5 / SCALE


@pytest.mark.parametrize(
    ("variant", "values"), [("lucene", "scores"), ("lucene8", "scores_lucene")]
)
def test_bm25_scores_before_rounding(variant, values):
    given, expected = case("bm25-open")
    rows = in_code_order(given["corpus"])
    flat, offsets, vocabulary = vectors(rows)
    frequency = term_frequency(flat, offsets, len(vocabulary))
    parts = contributions(frequency, variant=variant)
    table = scipy.sparse.csc_array((parts, frequency.indices, frequency.indptr), frequency.shape)
    for name, text in given["queries"].items():
        known = [vocabulary[word] for word in text.lower().split() if word in vocabulary]
        scores = table.toarray()[:, known].sum(axis=1)
        for row, score in zip(rows, scores, strict=True):
            assert score == pytest.approx(expected[values][name][row["passage_id"]], rel=1e-6)


@pytest.mark.parametrize("variant", ["okapi", "lucene", "lucene8"])
def test_bm25_of_degenerate_corpora(variant):
    given, expected = case("bm25-open")
    for name, corpus in given["degenerate_corpora"].items():
        rows = in_code_order(corpus)
        index = CorpusIndex([(row["title"], row["text"]) for row in rows], variant=variant)
        codes, scores = index.bm25(list(given["queries"].values()), None, given["k"])
        for found, points in zip(codes, scores, strict=True):
            ids = [rows[code]["passage_id"] for code in found if code != PAD]
            assert ids == expected["degenerate"][name]["top_k"]
            assert (points[found != PAD] == 0).all()


@pytest.mark.parametrize("order", ORDERS)
def test_lexical_order_with_ties_and_without_matches(order):
    given, expected = case("ranking-ties-nan-open")
    rows = in_code_order(ORDERS[order](given["lexical_passages"]))
    flat, offsets, vocabulary = vectors(rows)
    index = build_lexical(flat, offsets, len(vocabulary))
    nothing = np.full((1, 1), PAD, np.int32)
    for name, text in given["lexical_queries"].items():
        words = text.lower().split()
        ids = np.array([[vocabulary.get(word, PAD) for word in words] or [PAD]], np.int32)
        # The case ranks passages that share nothing as well: lowest score 0.
        codes, scores = lexical_topk(index, ids, nothing, k=given["k"], least=0)
        found = [rows[code]["passage_id"] for code in codes[0].tolist() if code != PAD]
        assert found == expected["lexical_order"][name]
        distinct = max(1, len(set(words)))
        for passage_id, score in zip(found, scores[0].tolist(), strict=True):
            share = expected["lexical"][name][passage_id]["frac"]
            assert Fraction(score, distinct) == Fraction(share)


def test_minus_zero_is_zero():
    given, expected = case("ranking-ties-nan-open")
    ids = sorted(given["given_scores"])
    scores = np.full((1, BLOCK), NO_SCORE, np.int32)
    scores[0, : len(ids)] = [given["given_scores"][name] for name in ids]
    codes, _ = topk(scores, k=len(ids))
    assert [ids[code] for code in codes[0].tolist()] == expected["given_scores_order"]
