"""The two checks of retrieval credit: orders that a bonus reverses, evidence that is reached."""

import math

import numpy as np
import pytest
from searched_rollouts import searched

from herald_jax.train.credit_report import CreditReport

NAN = np.nan
# Two questions of three rollouts. The events add up to the coverage.
EVENTS = np.array([[1, NAN], [0, 0.5], [0, 0], [0, NAN], [0, 0], [NAN, NAN]], float)
F1 = np.float32([0.1, 0.2, 0.0, 1.0, 0.5, 0.0])
ANSWERED = np.array([True, True, False, True, True, False])


def added(report, f1=F1, answered=ANSWERED, found=None, weight=0.25):
    found = searched(EVENTS) if found is None else found
    return report.add(f1, answered, found, group=3, weight=weight)


def test_by_hand():
    report = CreditReport()
    numbers = added(report)
    # Question 1: F1 0.1, 0.2, 0 with bonus 0.25, 0.125, 0. Of its three unequal pairs the first is
    # reversed: 0.35 above 0.325. Question 2 has no bonus, and three unequal pairs.
    assert (numbers["credit/pairs"], numbers["credit/reversed"]) == (6, 1)
    # Coverage 1, 1/2, 0 and 0, 0, 0: one question reached all, one nothing.
    assert numbers["evidence/coverage"] == pytest.approx(0.25)
    assert (numbers["evidence/zero"], numbers["evidence/complete"]) == (1, 1)
    found = report.summary()
    assert (found["unequal_pairs"], found["reversed_pairs"], found["tied_pairs"]) == (6, 1, 0)
    assert found["reversed_share"] == pytest.approx(1 / 6)
    assert found["mean_gap_of_reversed"] == pytest.approx(0.1)
    assert found["gaps_of_reversed"] == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert found["rollouts_by_coverage"] == {"none": 4, "some": 1, "all": 1}
    # None covered: 0 (unanswered), 1, 0.5 and 0 (unanswered).
    assert found["f1_by_coverage"] == pytest.approx({"none": 1.5 / 4, "some": 0.2, "all": 0.1})
    # Searches (1 + 2 + 2) / 3 and (1 + 2 + 0) / 3 a question.
    assert found["searches_per_question"] == pytest.approx((5 / 3 + 1) / 2)
    assert found["mean_coverage"] == pytest.approx(0.25)


def test_missing_answers_stay_in_every_denominator():
    report = CreditReport()
    # Whatever stands in F1 of a rollout without an answer, it counts as 0.
    added(report, f1=np.float32([0.1, 0.2, 0.15, 1.0, 0.5, 0.9]))
    plain = CreditReport()
    added(plain)
    assert report.summary() == plain.summary()


def test_updates_add_up():
    report, once = CreditReport(), CreditReport()
    for _ in range(3):
        added(report)
    added(once)
    three, one = report.summary(), once.summary()
    assert three["unequal_pairs"] == 3 * one["unequal_pairs"]
    assert three["questions"] == 6
    for name in ("reversed_share", "mean_coverage", "searches_per_question"):
        assert three[name] == pytest.approx(one[name])


def test_sums_are_plain_values_that_another_report_can_go_on_from():
    import json

    report = CreditReport()
    added(report)
    other = CreditReport()
    other.sums.update(json.loads(json.dumps(report.sums)))
    assert other.summary() == report.summary()
    added(other)
    assert other.sums["pairs"] == 12


def test_equal_up_to_rounding_is_equal():
    found = searched(np.array([[0.5], [0.0], [NAN]]))
    report = CreditReport()
    # 0.5 and 0.5 + 5e-7 are one score; with 0.125 on the lower, 0.625 ties with 0.625.
    added(report, np.float32([0.5, 0.5 + 5e-7, 0.625]), np.ones(3, bool), found)
    found = report.summary()
    assert (found["unequal_pairs"], found["reversed_pairs"], found["tied_pairs"]) == (2, 0, 1)


def test_questions_without_evidence_are_not_measured():
    import dataclasses

    import jax.numpy as jnp

    found = dataclasses.replace(searched(EVENTS), has_nodes=jnp.zeros(6, bool))
    report = CreditReport()
    numbers = added(report, found=found)
    assert math.isnan(numbers["evidence/coverage"])
    told = report.summary()
    assert (told["questions"], told["questions_with_evidence"]) == (2, 0)
    assert (told["zero_coverage"], told["complete_coverage"]) == (0, 0)
    assert told["mean_coverage"] is None and told["searches_per_question"] is None
    assert told["f1_by_coverage"] == {"none": None, "some": None, "all": None}


def test_a_report_of_nothing():
    told = CreditReport().summary()
    assert told["reversed_share"] is None and told["mean_gap_of_reversed"] is None
    assert told["unequal_pairs"] == 0
