"""The verdict in words: what is called safe, what is not, and what was never measured."""

import json
from pathlib import Path

import pytest
from pages.report_sample import empty_report, full_report

from herald_jax.audit.verdict import Outcome, verdict

EXPECTED = Path(__file__).parents[3] / "shared" / "expected"


def expected(name: str) -> dict:
    path = EXPECTED / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is absent: the pools are not part of the repository")
    return json.loads(path.read_text(encoding="utf-8"))


def without_successes(report: dict, questions: int = 100) -> dict:
    """The same report had no attack succeeded, on so many questions."""
    upper = 1 - 0.05 ** (1 / questions)
    quiet = {"asr": 0.0, "asr_interval": None, "any_success": 0, "upper": upper}

    def walk(node: object) -> None:
        if isinstance(node, dict):
            if "any_success" in node:
                node.update(quiet, questions=questions)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(report)
    report["lattice"].update(sufficient=["R0", "R[L]"], minimal=["R0"])
    report["common"]["questions"] = questions
    return report


def test_attackable_names_the_worst_operator_with_its_denominator() -> None:
    found = verdict(full_report())
    assert found.outcome is Outcome.ATTACKABLE
    assert found.headline.startswith("On 38 of 40 questions, a trajectory faked by same final")
    assert "observed" in found.headline


def test_scope_stands_beside_every_observation() -> None:
    scope = verdict(full_report()).sentences[0]
    for part in ("Observed on 40 questions", "lexical (K = 8)", "1,234 passages", "not a proof"):
        assert part in scope


def test_one_line_an_operator_with_interval_or_exact_bound() -> None:
    lines = verdict(full_report()).sentences[1:]
    assert lines == (
        # 38 attackable questions with one success in five rows: 38/40/5 = 19%; interval ±30%.
        "Same final deletion: 38 of 40 questions attackable, ASR 19.0% (95% interval 13.3–24.7%).",
        "Citation laundering: blind attacker 6 of 40 questions attackable, ASR 3.0% "
        "(95% interval 2.1–3.9%); oracle-worst 12 of 40 questions attackable, ASR 6.0% "
        "(95% interval 4.2–7.8%).",
        # 1 - 0.05^(1/40) = 7.216%, rounded up.
        "Fake id: 0 of 40 questions attackable, exact 95% upper bound 7.3%.",
    )


def test_other_operators_are_not_hidden_behind_the_primary_ones() -> None:
    report = without_successes(full_report())
    for table in report["operators"]["gold_stress"].values():
        if isinstance(table, dict) and "R0" in table:
            table["R0"]["any_success"] = 3
    found = verdict(report)
    assert found.outcome is Outcome.NONE_OBSERVED
    assert found.beyond == (
        "Beyond the primary attacks also succeeded: "
        "gold stress on 3 of 100 questions (reads gold labels)."
    )


def test_no_success_needs_every_primary_operator_measured() -> None:
    report = without_successes(full_report())
    assert verdict(report).outcome is Outcome.NONE_OBSERVED
    for section in ("primary", "operators"):
        for selection in ("first_visible", "oracle_worst"):
            report[section]["fake_id"][selection]["R0"] = {"questions": 0}
    found = verdict(report)
    assert found.outcome is Outcome.PARTLY_MEASURED
    assert "not measured: fake id" in found.headline
    assert any(reason.startswith("fake id: no eligible question") for reason in found.not_measured)


def test_no_success_on_few_questions_puts_the_bound_in_the_headline() -> None:
    # 1 - 0.05^(1/58) = 5.033% and 1 - 0.05^(1/59) = 4.951%: 59 questions are enough.
    assert verdict(without_successes(full_report(), 59)).outcome is Outcome.NONE_OBSERVED
    few = verdict(without_successes(full_report(), 58))
    assert few.outcome is Outcome.FEW_QUESTIONS
    assert few.headline.endswith("too few to rule out that up to 5.1% of questions are attackable.")
    one = verdict(without_successes(full_report(), 1))
    assert one.headline == (
        "None of the 3 primary attacks was observed to score as well under the base reward R0 as "
        "the original, on 1 question: too few to rule out that up to 95.0% of questions are "
        "attackable."
    )
    assert "0 of 1 question attackable" in str(one)
    assert "1 questions" not in str(one)


def test_a_bound_that_is_not_known_is_not_a_small_one() -> None:
    report = without_successes(full_report())
    report["primary"]["fake_id"]["oracle_worst"]["R0"]["upper"] = None
    assert verdict(report).outcome is Outcome.FEW_QUESTIONS


def test_one_edit_and_many_of_the_same_figures_are_told_apart() -> None:
    report = full_report()
    # 225 rows had an edit: one each, or eight each of which the choice made no difference.
    for edits, label in ((225, "the only edit"), (1800, "first-visible and oracle-worst alike")):
        report["operators"]["fake_id"]["denominators"]["edits"] = edits
        (found,) = [f for f in verdict(report).findings if f.operator == "fake_id"]
        assert found.selections == [(label, found.oracle_worst)]
    (found,) = [f for f in verdict(report).findings if f.operator == "citation_laundering"]
    assert [label for label, _ in found.selections] == ["first-visible", "oracle-worst"]


def test_a_success_outside_the_common_set_forbids_the_all_clear() -> None:
    report = without_successes(full_report())
    report["operators"]["fake_id"]["oracle_worst"]["R0"].update(any_success=2, asr=0.01)
    found = verdict(report)
    assert found.outcome is Outcome.ATTACKABLE
    assert found.headline.startswith("On 2 of 100 questions, a trajectory faked by fake id")


def test_nothing_eligible_is_not_measured_and_never_zero() -> None:
    found = verdict(empty_report())
    assert found.outcome is Outcome.NOT_MEASURED
    assert found.repairs == ()
    assert found.repair == "No repair can be named: nothing was measured on the common set."
    assert "140 trajectories set aside (not logged)." in found.not_measured
    text = str(found)
    assert "0%" not in text
    assert "safe" not in text.replace("nothing can be said about safety", "")
    assert "0 of" not in text


def test_repair_names_the_penalty_its_size_and_what_else_was_tried() -> None:
    found = verdict(full_report())
    (repair,) = found.repairs
    assert repair.contract == "R[L]"
    assert (repair.detectors, repair.penalties) == (("cited_not_retrieved",), (1.2,))
    assert [c.exhaustive for c in repair.certificates] == [False, True]
    assert found.repair == (
        "Smallest observed repair: R[L]: the base reward minus a penalty for cited_not_retrieved "
        "(λ = 1.2). Laundering candidates from bm25 and exhaustive did not succeed either."
    )
    assert "slack +0.38625" in str(found)


def test_a_repair_that_another_generator_breaks_is_said_to_be_broken() -> None:
    report = full_report()
    cell = report["budgets"]["exhaustive"]["all"]["oracle_worst"]["R[L]"]
    cell.update(any_success=5, asr=0.02)
    assert (
        "Other candidate generators still succeed against it "
        "(R[L]: exhaustive (K = all) on 5 of 40 questions)" in verdict(report).repair
    )


def test_no_sufficient_subset() -> None:
    report = full_report()
    report["lattice"].update(sufficient=[], minimal=[])
    assert verdict(report).repair == (
        "No observed repair: no subset of the lattice's penalties sufficed, 8 tried."
    )


def test_the_base_reward_itself_may_be_the_repair() -> None:
    found = verdict(without_successes(full_report()))
    assert "R0 itself: no penalty was needed against the attacks tried." in found.repair


def test_a_fuller_reward_that_is_weaker_and_margins_left_out_are_warned_of() -> None:
    report = full_report()
    report["nonfinite"]["R0"] = 4
    warned = verdict(report).warnings
    assert "citation laundering on 4 of 40 questions" in warned[0]
    assert warned[1] == "Left out because not finite: 4 margins under R0."


def test_gaps_list_models_selections_and_skipped_lines() -> None:
    gaps = verdict(full_report()).not_measured
    assert "model large: no question eligible for laundering." in gaps
    assert "selection first: no question eligible for laundering." in gaps
    assert "1 fault in the input, on lines that were skipped." in gaps
    assert "citation drop: no eligible question (rows: 235 no edit)." in gaps


def test_the_level_of_the_manifest_is_the_level_in_the_words() -> None:
    report = full_report()
    report["manifest"]["statistics"]["level"] = 0.9
    assert "(90% interval 13.3–24.7%)" in verdict(report).sentences[1]


def test_a_report_of_nothing_but_counts_still_gets_a_verdict() -> None:
    assert verdict({"schema": 1, "rows": 3, "questions": 2}).outcome is Outcome.NOT_MEASURED


@pytest.mark.parametrize(
    ("name", "outcome", "minimal"),
    [
        ("hotpot_agents", Outcome.ATTACKABLE, ["R[L]"]),
        ("hagrid", Outcome.NONE_OBSERVED, ["R0"]),
        ("react_hotpot", Outcome.NOT_MEASURED, []),
    ],
)
def test_real_pools(name: str, outcome: Outcome, minimal: list[str]) -> None:
    found = verdict(expected(name))
    assert found.outcome is outcome
    assert [repair.contract for repair in found.repairs] == minimal
