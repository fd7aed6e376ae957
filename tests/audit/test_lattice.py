"""Which subsets suffice, and what certifies it, on tables written by hand."""

from itertools import chain

import pytest
import tiny_audits as tiny

from herald_jax.audit import lattice
from herald_jax.audit.keys import ORACLE_WORST

MANIFEST = tiny.manifest()
U, L, F = "no_search", "cited_not_retrieved", "fake_citation"
SUBSETS = ("R0", "R[U]", "R[L]", "R[F]", "R[U+L]", "R[U+F]", "R[L+F]", "R[U+L+F]")
DELETION, LAUNDERING, FAKE = tiny.PRIMARY


class Cells:
    """Tables whose cells are written down: how many questions, how many with a success."""

    def __init__(self, questions=5, successes=None, margins=None):
        self._questions = questions
        self._successes = successes or {}
        self._margins = margins or {}

    def cell(self, key, selector, contract):
        assert selector == ORACLE_WORST
        kind, operator = key
        assert kind == "primary"
        questions = self._questions
        if isinstance(questions, dict):
            questions = questions[operator]
        if not questions:
            return {"questions": 0}
        any_success = self._successes.get((operator, contract), 0)
        return {"questions": questions, "any_success": any_success}

    def largest(self, key, selector, contract):
        assert (selector, contract) == (ORACLE_WORST, "R0")
        return self._margins.get(key)


def beaten(**contracts):
    """Successes by operator: the contracts that its attack beats."""
    names = {"deletion": DELETION, "laundering": LAUNDERING, "fake": FAKE}
    return dict(
        chain.from_iterable(
            (((names[key], contract), 1) for contract in listed)
            for key, listed in contracts.items()
        )
    )


def test_sufficient_means_no_success_of_any_primary_operator():
    # Every attack beats what does not name its detector.
    successes = beaten(
        deletion=[name for name in SUBSETS if "U" not in name],
        laundering=[name for name in SUBSETS if "L" not in name],
    )
    assert lattice.walk(Cells(successes=successes), MANIFEST) == {
        "detectors": [U, L, F],
        "sufficient": ["R[U+L]", "R[U+L+F]"],
        "minimal": ["R[U+L]"],
    }


def test_a_superset_of_a_sufficient_set_need_not_suffice():
    # L alone holds; with U besides, the attack is paid for and succeeds again.
    successes = beaten(laundering=["R0", "R[U]", "R[F]", "R[U+L]", "R[U+F]"], deletion=["R[L+F]"])
    found = lattice.walk(Cells(successes=successes), MANIFEST)
    assert found["sufficient"] == ["R[L]", "R[U+L+F]"]
    # The whole is sufficient, but its proper subset L is, too, whatever lies between.
    assert found["minimal"] == ["R[L]"]


def test_two_minimal_sets_that_do_not_hold_each_other():
    successes = beaten(fake=["R0", "R[F]"])
    found = lattice.walk(Cells(successes=successes), MANIFEST)
    assert found["sufficient"] == ["R[U]", "R[L]", "R[U+L]", "R[U+F]", "R[L+F]", "R[U+L+F]"]
    assert found["minimal"] == ["R[U]", "R[L]"]


def test_the_base_reward_itself_can_suffice():
    assert lattice.walk(Cells(), MANIFEST)["minimal"] == ["R0"]


@pytest.mark.parametrize("questions", [0, {DELETION: 5, LAUNDERING: 0, FAKE: 5}])
def test_without_a_question_nothing_suffices(questions):
    found = lattice.walk(Cells(questions=questions), MANIFEST)
    assert found["sufficient"] == found["minimal"] == []


def test_a_pool_without_a_common_row_says_nothing_suffices():
    # Nothing cited, so no slot: laundering and fake_id have no edit, and no row is common.
    of = tiny.pool([tiny.log("t", citations=[]), tiny.log("u", "r", citations=[])])
    report = tiny.run(of).data
    assert report["common"] == {"rows": 0, "questions": 0}
    assert report["lattice"]["sufficient"] == report["lattice"]["minimal"] == []
    assert report["certificate"] == {}
    assert report["primary"][LAUNDERING]["oracle_worst"]["R0"] == {"questions": 0}
    # One by one, deletion has its rows.
    assert report["operators"][DELETION]["oracle_worst"]["R0"]["questions"] == 2


def test_each_detector_is_certified_by_the_first_operator_that_switches_it_on():
    assert lattice.certified_by(MANIFEST) == {U: DELETION, L: LAUNDERING, F: FAKE}
    names = ["gold_stress", "support_id_laundering", "fake_id"]
    other = tiny.manifest(
        operators={"names": names, "primary": ["fake_id"]},
        lattice={"detectors": [U, L, "over_retrieval"]},
    )
    # No operator aims at over_retrieval.
    assert lattice.certified_by(other) == {U: "gold_stress", L: "support_id_laundering"}


def test_a_penalty_above_the_largest_gain_holds_by_its_slack():
    margins = {
        ("certificate", DELETION): 0.25,
        ("certificate", LAUNDERING): 1.2,
        ("certificate", FAKE): 1.5,
        ("closed_corpus", LAUNDERING): 1.3,
    }
    found = lattice.certificate(Cells(margins=margins), MANIFEST)
    assert found[U] == {
        "operator": DELETION,
        "candidates": "generator",
        "lambda": 1.6,
        "max_base_gain": 0.25,
        "slack": 1.35,
        "holds": True,
    }
    # A gain of just λ leaves a margin of 0, and ties are successes.
    assert (found[L]["slack"], found[L]["holds"]) == (0.0, False)
    # 1.2 - 1.3: within the closed corpus there is a worse replacement.
    assert found[L]["closed_corpus"]["slack"] == pytest.approx(-0.1)
    assert found[L]["closed_corpus"]["holds"] is False
    assert (found[F]["slack"], found[F]["holds"]) == (-0.5, False)
    assert "closed_corpus" not in found[F]


@pytest.mark.parametrize(("gain", "holds"), [(1.2 - 2e-6, True), (1.2 - 5e-7, False)])
def test_slack_counts_beyond_the_tolerance_of_ties(gain, holds):
    margins = {("certificate", LAUNDERING): gain}
    assert lattice.certificate(Cells(margins=margins), MANIFEST)[L]["holds"] is holds


def test_a_detector_without_a_pair_has_no_certificate():
    margins = {("certificate", LAUNDERING): 0.5}
    assert set(lattice.certificate(Cells(margins=margins), MANIFEST)) == {L}
