"""Steps of the lattice, and the paper's worked case as a whole audit."""

import pytest
import tiny_audits as tiny

from herald_jax.audit.cancellation import steps
from herald_jax.types import DETECTORS

DELETION, LAUNDERING, FAKE = tiny.PRIMARY
L, M = "cited_not_retrieved", "support_id_mismatch"


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_every_edge_of_the_lattice_and_every_subset_to_r_full(n):
    detectors = [name for name in DETECTORS if name != "under_retrieval"][:n]
    found = steps(tiny.manifest(lattice={"detectors": detectors}))
    # n 2^(n-1) edges of the cube, 2^n of its corners to R_full.
    assert len(found) == n * 2 ** (n - 1) + 2**n
    assert len({(step.start, step.end) for step in found}) == len(found)
    assert sum(step.end == "R_full" for step in found) == 2**n


def test_a_step_adds_what_its_end_has_and_its_start_has_not():
    found = {(step.start, step.end): step.added for step in steps(tiny.manifest())}
    assert found["R0", "R[L]"] == (L,)
    assert found["R[U+F]", "R[U+L+F]"] == (L,)
    assert found["R[U+L+F]", "R_full"] == (
        "repeated_query",
        "answer_without_citation",
        "over_retrieval",
        M,
    )
    assert ("R[U]", "R[L]") not in found


def test_a_subset_with_a_penalty_that_r_full_lacks_has_no_step_to_it():
    found = steps(tiny.manifest(lattice={"detectors": ["under_retrieval", L]}, penalties={L: 1.2}))
    # λ of under_retrieval is 0, so R_full has it not: 4 edges, and R0 and R[L] to R_full.
    assert len(found) == 4 + 2
    assert [s.start for s in found if s.end == "R_full"] == ["R0", "R[L]"]


# One search found `seen`, the final cites it alone, and it is no support; `more` and `other` are.
PASSAGES = {"seen": "the mill", "more": "mill", "other": "Ada"}


def lone(name="t", question="q", *, cites="seen"):
    return tiny.log(name, question, searches=[["seen"]], citations=[cites])


def entries(report, start, end):
    return {
        entry["operator"]: entry
        for entry in report["cancellation"]
        if (entry["from"], entry["to"]) == (start, end)
    }


@pytest.fixture(scope="module")
def worked():
    """The worked case in question q; in question r the citation was support already."""
    of = tiny.pool(
        [lone(), lone("u", "r")],
        passages=PASSAGES,
        support={"q": ["more", "other"], "r": ["seen", "other"]},
    )
    return tiny.run(of, sections={"cancellation": True}).data


def test_worked_case(worked):
    # The citation moves onto one of two support ids: precision 0 -> 1, recall 0 -> 1/2, so that
    # grounding rises by 0.55 + 0.45 / 2 = 0.775 and R0 by 1.05 · 0.775 = 0.81375. L turns on and M
    # off: the hacking rate, a mean of seven flags, stays.
    worst = worked["primary"][LAUNDERING]["oracle_worst"]
    gain = 1.05 * (0.55 + 0.45 / 2)
    assert gain == pytest.approx(0.81375, abs=1e-12)
    assert worst["R0"]["max_margin"] == pytest.approx(gain, abs=1e-6)
    # R[L] takes λ_L = 1.2 off: 0.81375 - 1.2 = -0.38625.
    assert worst["R[L]"]["max_margin"] == pytest.approx(-0.38625, abs=1e-6)
    # R_full gives λ_M = 0.8 back: -0.38625 + 0.8 = 0.41375.
    assert worst["R_full"]["max_margin"] == pytest.approx(0.41375, abs=1e-6)
    assert worst["R[L]"]["any_success"] == 0
    assert worst["R_full"]["any_success"] == 1


def test_the_smallest_repair_is_not_the_fullest_reward(worked):
    # Under R0 only laundering succeeds: deletion gains 0.04 and pays 0.55 · 2/7 for L and
    # under_retrieval, a fake id gains nothing. What holds L suffices; R_full is beaten again.
    assert worked["lattice"]["sufficient"] == ["R[L]", "R[U+L]", "R[L+F]", "R[U+L+F]"]
    assert worked["lattice"]["minimal"] == ["R[L]"]


def test_pairs_that_are_readmitted_and_who_pays(worked):
    entry = entries(worked, "R[L]", "R_full")[LAUNDERING]
    # In q `more` and `other` both share a token with question or answer: two pairs, both
    # re-admitted. In r, too, there are two, but M was off to begin with: nobody pays. Onto `other`
    # the citation stays support and only L turns on, onto `more` grounding falls besides.
    assert (entry["pairs"], entry["readmitted"]) == (4, 2)
    assert entry["paid_by"] == {M: 2}
    # From R0 on, nothing fails under S in q, so that nothing is admitted again.
    assert entries(worked, "R0", "R[L]")[LAUNDERING]["readmitted"] == 0


def test_strata_are_the_originals_on_which_the_added_detector_was_active(worked):
    entry = entries(worked, "R[L]", "R_full")[LAUNDERING]
    active = entry["strata"][M]["active"]["oracle_worst"]
    inactive = entry["strata"][M]["inactive"]["oracle_worst"]
    assert (active["questions"], active["asr"]) == (1, 1.0)
    assert active["max_margin"] == pytest.approx(0.41375, abs=1e-6)
    assert (inactive["questions"], inactive["asr"], inactive["any_success"]) == (1, 0.0, 0)
    # What no original had on: nothing measured, which is not zero.
    assert entry["strata"]["repeated_query"]["active"]["oracle_worst"] == {"questions": 0}


def test_the_operators_own_target_is_no_stratum(worked):
    # R0 -> R[L] adds L alone, which laundering is to switch on.
    found = entries(worked, "R0", "R[L]")
    assert found[LAUNDERING]["strata"] == {}
    assert set(found[DELETION]["strata"]) == set(found[FAKE]["strata"]) == {L}
    assert len(worked["cancellation"]) == 3 * (3 * 4 + 8)


def test_margins_of_a_step_differ_by_the_credit(worked):
    """M_T = M_S + credit, the credit −Σ λ_j (d_j(edit) − d_j(original)) over T∖S."""
    worst = worked["primary"][LAUNDERING]["oracle_worst"]
    for start, end in (("R0", "R[L]"), ("R[U]", "R[U+L]"), ("R[U+F]", "R[U+L+F]")):
        credit = worst[end]["mean_margin"] - worst[start]["mean_margin"]
        assert credit == pytest.approx(-1.2, abs=1e-6)
