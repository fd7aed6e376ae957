"""Columns of tokens against the tokens of one text after another."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.text import tokens

from herald_jax.search.passages import read_tokens
from herald_jax.search.tokenise import as_column, split
from herald_jax.search.vocabulary import Vocabulary
from herald_jax.types import PAD

# What folding, composing and classes of characters can go wrong with, ASCII and not.
HOSTILE = "aZ09 _-.\n\t\x00\x7fßẞİıſÉé\u0301\u0345ﬁＡ①ªΣς中\u200b\u00a0٣𝒜\U0001f30a\ufffd"
TEXT = st.text(st.one_of(st.sampled_from(HOSTILE), st.characters(codec="utf-8")), max_size=12)
# In memory a string may hold half of a surrogate pair; no Arrow column can.
BROKEN = st.text(st.sampled_from([*HOSTILE, "\ud83d", "\udf0a"]), max_size=6)


def cut(column):
    lists = split(column)
    found = [token.decode() for token in lists.tokens.to_pylist()]
    return [found[first:last] for first, last in pairwise(lists.offsets.tolist())]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.one_of(TEXT, BROKEN), max_size=6))
def test_tokens_of_a_list_of_texts(texts):
    assert cut(as_column(texts)) == [tokens(text) for text in texts]


@settings(deadline=None, max_examples=300)
@given(st.lists(TEXT, max_size=6), st.integers(0, 3), st.sampled_from([pa.string, pa.large_string]))
def test_tokens_of_a_column(texts, first, kind):
    column = pa.array(texts, kind())
    expected = [tokens(text) for text in texts]
    assert cut(as_column(column)) == expected
    assert cut(as_column(column.slice(first))) == expected[first:]
    chunked = pa.chunked_array([column.slice(0, first), column.slice(first)], kind())
    assert cut(as_column(chunked)) == expected


def test_no_token_spans_two_texts():
    assert cut(as_column(["ab", "", "", "cd", " e", "f "])) == [
        ["ab"],
        [],
        [],
        ["cd"],
        ["e"],
        ["f"],
    ]


@pytest.mark.parametrize("texts", [[], [""], ["", ""], [" . "]])
def test_no_token_at_all(texts):
    assert cut(as_column(texts)) == [[] for _ in texts]


def test_nulls_are_refused():
    with pytest.raises(ValueError, match="1 of 2 texts are null"):
        as_column(pa.array(["a", None]))


WORDS = ["the", "mill", "straße", "2024", "Zoë", "b"]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.lists(st.sampled_from(WORDS[:4]), max_size=5).map(" ".join), max_size=4),
    st.lists(st.lists(st.sampled_from([*WORDS, "zebra"]), max_size=5).map(" ".join), max_size=5),
)
def test_terms_of_queries(passages, texts):
    """As a dictionary gives them: order and repeats kept, what no passage holds left out."""
    vocabulary, ids, offsets = read_tokens([("", passage) for passage in passages])
    expected: dict[str, int] = {}
    for passage in passages:
        for token in tokens(passage):
            expected.setdefault(token, len(expected))
    assert dict(vocabulary) == expected
    assert ids.tolist() == [expected[t] for passage in passages for t in tokens(passage)]
    assert np.diff(offsets).tolist() == [len(tokens(passage)) for passage in passages]
    for given_texts in (texts, pa.array(texts, pa.string())):
        lists = vocabulary.encode(given_texts)
        assert [lists[row].tolist() for row in range(len(texts))] == [
            [expected[token] for token in tokens(text) if token in expected] for text in texts
        ]


def test_parts_of_a_corpus_share_a_vocabulary(monkeypatch):
    passages = [("Mill", f"the mill {i % 3} by tarn {i % 5}") for i in range(40)]
    whole = read_tokens(passages)
    monkeypatch.setattr("herald_jax.search.passages._PART", 50)
    parts = read_tokens(passages)
    assert list(parts[0]) == list(whole[0])
    assert all(np.array_equal(a, b) for a, b in zip(parts[1:], whole[1:], strict=True))


@pytest.mark.parametrize("texts", [[], [""], ["mill", "straße mill 中"]])
def test_a_vocabulary_comes_back_from_its_arrays(texts):
    vocabulary, _, _ = read_tokens([("", text) for text in texts])
    again = Vocabulary.of_arrays(*vocabulary.to_arrays())
    assert dict(again) == dict(vocabulary)
    assert len(again) == len(vocabulary)


def test_one_token_is_looked_up():
    vocabulary, _, _ = read_tokens([("", "mill by")])
    assert (vocabulary["by"], vocabulary.get("tarn", PAD)) == (1, PAD)
    with pytest.raises(KeyError, match="tarn"):
        vocabulary["tarn"]
    assert "\ud83d" not in vocabulary
