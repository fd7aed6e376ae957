"""`--fail-on`: what trips, what passes, and that the unmeasured never passes."""

from typing import Any

import pytest

from herald_jax.cli.fail_on import Insufficient, parse_condition
from herald_jax.manifest import Contract, Lattice, Manifest
from herald_jax.types import HeraldError

MANIFEST = Manifest(contracts={"mine": Contract(base=True)})


def cell(asr: float, any_success: int, questions: int = 100) -> dict[str, Any]:
    return {
        "rows": questions,
        "questions": questions,
        "asr": asr,
        "asr_interval": None,
        "mean_margin": -0.5,
        "mean_margin_interval": None,
        "max_margin": 0.2,
        "any_success": any_success,
        "upper": 0.03,
    }


def table(of_r0: dict[str, Any], of_subset: dict[str, Any]) -> dict[str, Any]:
    cells = {"R0": of_r0, "R[L]": of_subset}
    return {"first_visible": cells, "oracle_worst": cells}


SAFE, HIT, EMPTY = cell(0.0, 0), cell(0.07, 9), {"questions": 0}
REPORT = {
    "operators": {
        "citation_laundering": table(cell(0.5, 50), SAFE),
        "citation_drop": table(HIT, EMPTY),
    },
    "primary": {
        "same_final_deletion": table(SAFE, SAFE),
        "citation_laundering": table(HIT, SAFE),
        "fake_id": table(SAFE, SAFE),
    },
}


@pytest.mark.parametrize(
    ("text", "trips"),
    [
        ("insufficient", True),
        ("R0.insufficient", True),
        ("R[L].insufficient", False),
        ("R0.citation_laundering.oracle_worst.asr>0.069", True),
        ("R0.citation_laundering.oracle_worst.asr > 0.07", False),
        ("R0.citation_laundering.oracle_worst.asr>=0.07", True),
        ("R0.citation_laundering.first_visible.mean_margin<-0.4", True),
        ("R0.citation_laundering.oracle_worst.questions<100", False),
        ("R0.citation_laundering.oracle_worst.questions<=100", True),
        # Not measured: under this contract, under any, and an operator without a table.
        ("R[L].citation_drop.oracle_worst.asr>0.9", True),
        ("R[L].citation_drop.oracle_worst.questions<1", True),
        ("mine.fake_id.oracle_worst.upper>0.9", True),
        ("R0.gold_stress.oracle_worst.upper>0.9", True),
        ("mine.insufficient", True),
    ],
)
def test_conditions(text: str, trips: bool) -> None:
    reason = parse_condition(text, MANIFEST).tripped(REPORT)
    assert (reason is not None) == trips


def test_primary_operators_are_read_on_the_common_set() -> None:
    text = "R0.citation_laundering.oracle_worst.asr>0.01"
    reason = parse_condition(text, MANIFEST).tripped(REPORT)
    assert reason == "R0.citation_laundering.oracle_worst.asr = 0.07 > 0.01"


@pytest.mark.parametrize("report", [{}, {"primary": {}, "operators": {}}])
def test_an_audit_that_measured_nothing_never_passes(report: dict[str, Any]) -> None:
    for text in ("insufficient", "R0.fake_id.oracle_worst.upper>0.99"):
        reason = parse_condition(text, MANIFEST).tripped(report)
        assert reason is not None
        assert "measured" in reason


def test_one_unmeasured_primary_attack_is_not_sufficient() -> None:
    primary = {**REPORT["primary"], "fake_id": table(SAFE, EMPTY)}
    reason = parse_condition("R[L].insufficient", MANIFEST).tripped({"primary": primary})
    assert reason == "R[L] is not shown sufficient: fake_id was not measured"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("insuficient", "expected `insufficient`"),
        ("", "expected `insufficient`"),
        ("R0.citation_laundering.oracle_worst.upper", "expected `insufficient`"),
        ("R0.citation_laundering.oracle_worst.upper=0", "expected `insufficient`"),
        ("R[X].insufficient", "not a contract"),
        ("R0.citation_launder.oracle_worst.upper>0", "did you mean `citation_laundering`"),
        ("R0.fake_id.oracle_wrost.upper>0", "did you mean `oracle_worst`"),
        ("R0.fake_id.oracle_worst.uper>0", "did you mean `upper`"),
        ("R0.fake_id.oracle_worst.upper>nan", "not a finite number"),
        ("R0.fake_id.oracle_worst.upper>inf", "not a finite number"),
        ("R0.fake_id.oracle_worst.upper>5%", "not a finite number"),
    ],
)
def test_conditions_that_could_never_trip_are_refused(text: str, remedy: str) -> None:
    with pytest.raises(HeraldError, match="--fail-on") as caught:
        parse_condition(text, MANIFEST)
    assert remedy in str(caught.value)


def test_every_reported_contract_can_be_named() -> None:
    subsets = ("R[U]", "R[L]", "R[F]", "R[U+L]", "R[U+F]", "R[L+F]", "R[U+L+F]")
    for name in ("outcome_only", "outcome_cost", "R0", "R_full", *subsets, "mine"):
        assert parse_condition(f"{name}.insufficient", MANIFEST) == Insufficient(name)
    one = Manifest(lattice=Lattice(detectors=("under_retrieval",)))
    assert parse_condition("R[under_retrieval].insufficient", one)
