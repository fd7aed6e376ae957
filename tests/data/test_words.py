"""Words by whole columns against one string at a time."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.golds import Golds
from herald_jax.data.text import RULES, normalise
from herald_jax.data.words import ARTICLES, is_plain, normal_words, without_articles, word_counts

LETTERS = "aAntThe b-_'$.,\t\n\x0b\x1c\x1f\x00\x7f\x85é\u0301\u3000ßİ\ufb01"
TEXTS = st.lists(st.text(st.sampled_from(LETTERS), max_size=9), max_size=8)


def normal_forms(strings, rules):
    words = normal_words(strings, rules)
    names = [*ARTICLES, *sorted(set(words.words.to_pylist()) - set(ARTICLES))]
    codes = np.array([names.index(word) for word in words.words.to_pylist()], np.int32)
    codes, offsets = without_articles(codes, words.offsets, unless_all=rules == "unicode")
    ends = offsets.tolist()
    return [" ".join(names[code] for code in codes[start:end]) for start, end in pairwise(ends)]


@given(TEXTS, st.sampled_from(RULES), st.integers(0, 3))
def test_words_are_those_of_the_normal_form(texts, rules, before):
    strings = pa.array(["x,"] * before + texts, pa.string()).slice(before)
    assert normal_forms(strings, rules) == [normalise(text, rules) for text in texts]


@given(TEXTS)
def test_words_are_counted_as_split_finds_them(texts):
    strings = pa.array(texts, pa.string())
    assert word_counts(strings).tolist() == [len(text.split()) for text in texts]
    assert is_plain(strings).tolist() == [text.isascii() and text.isprintable() for text in texts]


@pytest.mark.parametrize("rules", RULES)
def test_every_character_alone(rules):
    texts = [f"a{chr(code)}B" for code in range(0x3100) if not 0xD800 <= code < 0xE000]
    assert normal_forms(pa.array(texts), rules) == [normalise(text, rules) for text in texts]
    assert word_counts(pa.array(texts)).tolist() == [len(text.split()) for text in texts]


def test_pairs_that_are_scored_more_than_once_and_in_parts(monkeypatch):
    golds = Golds([["Oslo", "the Oslo of it"], [], ["?"]], "unicode")
    answers = pa.array(["oslo", "of it", "!"])
    answer = np.array([0, 1, 2, -1, 0, 1, 0, 0], np.int32)
    question = np.array([0, 0, 2, 0, 1, 0, 2, 0], np.int32)
    expected = ([1, 0, 0, 0, 0, 0, 0, 1], [1, 4 / 5, 0, 0, 0, 4 / 5, 0, 1])
    for pairs in (1, 2, 1 << 18):
        monkeypatch.setattr("herald_jax.data.golds._PAIRS", pairs)
        em, f1 = golds.scores(answers, answer, question)
        assert (em.tolist(), f1.tolist()) == expected
