"""Answer metrics against the plain definitions and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import metrics as plain

from herald_jax.data.metrics import answer_metrics, contains, exact_match, f1

WORDS = st.lists(
    st.sampled_from(
        ["yes", "no", "noanswer", "a", "the", "Oslo", "oslo", "?", "Élan", "1934", "a\u0301"]
    ),
    max_size=6,
).flatmap(
    lambda words: st.sampled_from([" ", "\t", "\x1f", "\x00", "\n", "-", "\u3000"]).map(
        lambda gap: gap.join(words)
    )
)
GOLDS = st.one_of(WORDS, st.lists(WORDS, max_size=3))
RULES = st.sampled_from(["unicode", "squad"])


@given(st.one_of(st.none(), WORDS), GOLDS, RULES)
def test_scores_are_the_plain_definition(answer, golds, rules):
    assert exact_match(answer, golds, rules) == plain.exact_match(answer, golds, rules)
    assert f1(answer, golds, rules) == plain.f1(answer, golds, rules)


@given(st.lists(st.tuples(st.one_of(st.none(), WORDS), GOLDS), max_size=20), RULES)
def test_many_at_once_are_bit_for_bit_the_same(pairs, rules):
    answers = [answer for answer, _ in pairs]
    golds = [gold for _, gold in pairs]
    em, score = answer_metrics(answers, golds, rules)
    assert em.dtype == score.dtype == np.float64
    assert em.tolist() == [plain.exact_match(*pair, rules) for pair in pairs]
    assert score.tolist() == [plain.f1(*pair, rules) for pair in pairs]


@given(WORDS, st.lists(WORDS, max_size=3))
def test_an_equal_answer_has_f1_of_one(answer, golds):
    if exact_match(answer, golds) == 1:
        assert f1(answer, golds) == 1


def test_by_hand():
    # "green green blue" and "green blue blue" share one green and one blue: 2*2 / (3+3).
    assert f1("green green blue", ["green blue blue"]) == 2 / 3
    assert f1("yes, it did", ["yes"]) == 0  # a closed answer is right or wrong
    assert f1("Oslo", ["Bergen", "Oslo, Norway"]) == 2 / 3  # the best gold counts
    assert (exact_match(None, ["x"]), f1(None, ["x"])) == (0, 0)
    assert (exact_match("x", []), f1("x", [])) == (0, 0)


def test_empty_answers():
    assert (exact_match("!", ["?"]), f1("!", ["?"])) == (0, 0)
    # As published: two empty strings are equal, and share no token.
    assert (exact_match("!", ["?"], "squad"), f1("!", ["?"], "squad")) == (1, 0)


def test_contains_runs_of_whole_tokens():
    assert contains("It was the Great Dunmore Fair", ["Dunmore Fair"])
    assert not contains("In 2014.", ["14"])
    assert not contains("fair Dunmore", ["Dunmore fair"])
    assert not contains("anything", ["?", ""])
    assert not contains("anything", [])


def test_rules_must_exist():
    with pytest.raises(ValueError, match="unicode, squad"):
        answer_metrics(["é"], ["x"], "loose")
    with pytest.raises(ValueError, match="unicode, squad"):
        answer_metrics([], [], "loose")


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="1 answers"):
        answer_metrics(["x"], [])
