"""What the rollouts are worth that each contract likes best, worked out by hand."""

import pytest
import tiny_audits as tiny

# One of two support ids, a stray passage, an id outside the corpus.
WELL = tiny.log("well", rollout=0, searches=[["a", "c"], ["d"]], citations=["a", "c", "a", "zz"])
# It answers right without a search or a citation.
BLIND = tiny.log("blind", rollout=1, searches=[], citations=[])


def utility(logs, **pool):
    return tiny.run(tiny.pool(logs, **pool), sections={"utility": True}).data["utility"]


def test_the_metrics_of_the_one_rollout_that_is_liked():
    # outcome_only ties, and a tie goes to the lowest rollout; outcome_cost takes 0.04 a search off.
    found = utility([WELL, BLIND])
    assert found["outcome_only"] == {
        "em": 1.0,
        "f1": 1.0,
        "citation_precision": pytest.approx(1 / 3, abs=1e-15),  # a of a, c, zz
        "support_recall": 0.5,  # a of a, b
        "unsupported_rate": pytest.approx(2 / 3, abs=1e-15),  # c and zz, the latter no passage
        "valid_final": 1.0,
        "searches": 2.0,
    }
    assert found["outcome_cost"] == {
        "em": 1.0,
        "f1": 1.0,
        "citation_precision": 0.0,  # of nothing: 0
        "support_recall": 0.0,
        "unsupported_rate": 0.0,  # of nothing: 0
        "valid_final": 1.0,
        "searches": 0.0,
    }
    # R[U] takes 1.6 off the blind one, whatever else R0 thinks of the two.
    assert found["R[U]"] == found["outcome_only"]


def test_means_are_over_questions():
    silent = tiny.log("silent", "r", answer="  ", citations=[])
    found = utility([WELL, BLIND, silent], answers=["Ada Lovelace"])["outcome_cost"]
    # q: F1 of Ada against Ada Lovelace is 2 · 1 · 1/2 / (1 + 1/2) = 2/3, EM 0; r: no final.
    assert found["em"] == 0.0
    assert found["f1"] == pytest.approx((2 / 3 + 0) / 2, abs=1e-12)
    assert found["valid_final"] == 0.5
    assert found["searches"] == 0.5


def test_a_question_without_support_counts_0():
    found = utility([tiny.log("t")], support={"q": []})["R0"]
    assert (found["support_recall"], found["citation_precision"]) == (0.0, 0.0)
    assert found["unsupported_rate"] == 1.0


def test_without_a_question_there_is_none():
    of = tiny.pool([tiny.log("t", citations=None)])
    assert "utility" not in tiny.run(of, sections={"utility": True}).data
