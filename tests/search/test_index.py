import chex
import jax
import numpy as np
import pyarrow as pa
import pytest
from reference.retrieval import bm25_scores, lexical_scores, ranking
from reference.text import tokens

import herald_jax.search.index
from herald_jax.data.ragged import Ragged
from herald_jax.kernels.bm25 import bm25_topk
from herald_jax.kernels.topk import MAX_SCORE, NO_SCORE
from herald_jax.search import CorpusIndex
from herald_jax.types import PAD

PASSAGES = [
    ("Harbour", "Lights over Dunmore, and more lights."),
    ("", "Straße und Café 2024 Straße"),
    ("Fair", "The fair moved to DUNMORE."),
    ("", ""),
    ("Mill", "A mill by the tarn; the mill wheel."),
]
TEXTS = ["dunmore FAIR fair", "Who wrote STRASSE? café", "", "zebra", "the mill wheel the harbour"]
WORDS = [tokens(f"{title} {text}") for title, text in PASSAGES]


@pytest.fixture(scope="module")
def index():
    return CorpusIndex(PASSAGES)


def filled(codes, k):
    return codes + [PAD] * (k - len(codes))


def test_encode_keeps_order_and_repeats_and_drops_unknown_tokens(index):
    ids = index.encode(["the zebra Mill the", "", "fair"])
    the, mill, fair = (index.vocabulary[word] for word in ("the", "mill", "fair"))
    assert ids.dtype == np.int32
    assert ids[0, :4].tolist() == [the, mill, the, PAD]
    assert (ids[1] == PAD).all()
    assert ids[2, :2].tolist() == [fair, PAD]


def test_title_and_text_are_searched(index):
    codes, scores = index.lexical(["harbour lights"], None, 1)
    assert (codes.tolist(), scores.tolist()) == ([[0]], [[2]])


def test_bm25_equals_the_reference_from_text_to_ranking(index):
    exclude = Ragged.of_lists([[2], [], [0, 3], [PAD, 99], [4, 4]])
    codes, scores = index.bm25(TEXTS, exclude, 6)
    for row, text in enumerate(TEXTS):
        expected_scores = bm25_scores(WORDS, tokens(text))
        expected = ranking(expected_scores, exclude[row].tolist(), 6)
        assert codes[row].tolist() == filled(expected, 6)
        assert scores[row, : len(expected)].tolist() == [expected_scores[i] for i in expected]
        assert (scores[row, len(expected) :] == NO_SCORE).all()


def test_lexical_equals_the_reference_from_text_to_ranking(index):
    codes, scores = index.lexical(TEXTS, None, 6)
    for row, text in enumerate(TEXTS):
        expected_scores = lexical_scores(WORDS, tokens(text))
        unmatched = [i for i, score in enumerate(expected_scores) if score == 0]
        expected = ranking(expected_scores, unmatched, 6)
        assert codes[row].tolist() == filled(expected, 6)
        assert scores[row, : len(expected)].tolist() == [expected_scores[i] for i in expected]


@pytest.mark.parametrize("variant", ["okapi", "lucene"])
def test_many_searches_at_once_equal_the_reference(variant):
    """Several batches a call, calls at the same time, three widths of what is excluded."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(40)])
    # Word 0 is in almost every passage: its idf is negative, and okapi puts a floor there.
    odds = 1 / np.arange(1, 41)
    passages = [
        " ".join(rng.choice(words, n, p=odds / odds.sum())) for n in rng.integers(0, 14, 300)
    ]
    texts = [" ".join(rng.choice([*words, "zebra"], n)) for n in rng.integers(0, 9, 150)]
    lists = [rng.integers(-1, 310, n).tolist() for n in rng.choice([0, 3, 90, 300], 150)]
    lists[7] = list(range(300))
    rows = [*range(150), 3, 3, 149, 0]  # some ask again

    index = CorpusIndex([("", text) for text in passages], variant=variant)
    exclude = Ragged.of_lists([lists[row] for row in rows])
    steps = []
    codes, scores = index.bm25(
        [texts[row] for row in rows], exclude, 305, progress=lambda *step: steps.append(step)
    )
    assert steps[-1][0] == steps[-1][1] <= 150
    split = [tokens(text) for text in passages]
    for position, row in enumerate(rows):
        expected_scores = bm25_scores(split, tokens(texts[row]), variant=variant)
        expected = ranking(expected_scores, lists[row], 305)
        assert codes[position].tolist() == filled(expected, 305)
        found = scores[position, : len(expected)].tolist()
        assert found == [expected_scores[i] for i in expected]
    assert (codes[7] == PAD).all()


def test_texts_columns_and_terms_ask_the_same(index):
    expected = index.bm25(TEXTS, None, 4)
    for queries in (
        pa.array(TEXTS),
        pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
        index.vocabulary.encode(TEXTS),
    ):
        codes, scores = index.rank(bm25_topk, "bm25_index", queries, None, 4)
        assert np.array_equal(codes, expected[0]) and np.array_equal(scores, expected[1])


def test_row_order_and_company_change_nothing(index):
    codes, scores = index.bm25(TEXTS, None, 3)
    for row, text in enumerate(TEXTS):
        alone = index.bm25([text], None, 3)
        assert np.array_equal(alone[0][0], codes[row]) and np.array_equal(alone[1][0], scores[row])


def test_equal_searches_run_once_and_unequal_ones_apart(index):
    done = []
    texts = ["fair", "fair", "mill", "fair"]
    exclude = Ragged.of_lists([[2, 0, 77], [0, 2, 2], [], []])
    codes, _ = index.bm25(texts, exclude, 1, progress=lambda *step: done.append(step))
    assert done == [(3, 3)]
    assert codes[:, 0].tolist() == [1, 1, 4, 2]


def test_progress_reaches_the_end(index):
    steps = []
    index.lexical(
        ["mill " * (i + 1) for i in range(20)], None, 2, progress=lambda *s: steps.append(s)
    )
    assert steps[-1] == (20, 20)
    assert [done for done, _ in steps] == sorted({done for done, _ in steps})


def test_few_programs_whatever_the_lengths(index, monkeypatch):
    traced = jax.jit(chex.assert_max_traces(bm25_topk.__wrapped__, n=4), static_argnames="k")
    monkeypatch.setattr(herald_jax.search.index, "bm25_topk", traced)
    rng = np.random.default_rng(0)
    texts = ["mill " * int(length) for length in rng.integers(0, 257, 60)]
    exclude = Ragged.of_lists([range(n) for n in rng.integers(0, 5, 60)])
    index.bm25(texts, exclude, 2)  # widths 64 and 256 of the query, 64 of the excluded codes


@pytest.mark.parametrize("passages", [[], [("", "")], [("", " ;"), ("", "")]])
def test_nothing_to_find(passages):
    index = CorpusIndex(passages)
    everything = filled(list(range(len(passages))), 3)
    codes, scores = index.bm25(["mill", ""], None, 3)
    assert codes.tolist() == [everything, everything]
    assert (scores[codes != PAD] == 0).all()
    assert index.lexical(["mill", ""], None, 3)[0].tolist() == [[PAD] * 3] * 2


def test_no_text_no_row(index):
    codes, scores = index.bm25([], Ragged.of_lists([]), 4)
    assert codes.shape == scores.shape == (0, 4)
    assert index.encode([]).shape[0] == 0


def test_a_score_beyond_int32_is_exact():
    passages = [("", "zebra zebra zebra"), ("", "zebra " * 3 + "mill"), *[("", "mill")] * 7]
    words = [tokens(text) for _, text in passages]
    index = CorpusIndex(passages)
    text = "zebra " * 30_000 + "mill"
    expected_scores = [30_000 * zebra + mill for zebra, mill in zip(
        bm25_scores(words, ["zebra"]), bm25_scores(words, ["mill"]), strict=True
    )]  # fmt: skip
    assert max(expected_scores) > MAX_SCORE
    codes, scores = index.bm25([text, "zebra mill"], Ragged.of_lists([[1], [1]]), 9)
    expected = ranking(expected_scores, [1], 9)
    assert codes[0].tolist() == [*expected, PAD]
    assert scores[0].tolist() == [*(expected_scores[i] for i in expected), NO_SCORE]
    assert codes[1].tolist() == codes[0].tolist()


def test_faults_are_refused(index):
    with pytest.raises(ValueError, match="k must"):
        index.bm25([], None, 0)
    with pytest.raises(ValueError, match="2 queries but 1"):
        index.lexical(["a", "b"], Ragged.of_lists([[0]]), 1)
    with pytest.raises(ValueError, match="variant"):
        CorpusIndex(PASSAGES, variant="bm25l")
