"""Pools of a few trajectories, and manifests that leave out what a test does not look at."""

from collections.abc import Mapping, Sequence
from typing import Any

from herald_jax.audit import Report
from herald_jax.audit import run as run_audit
from herald_jax.audit.staging import Block, prepare, stage
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory
from herald_jax.manifest import Manifest, parse_manifest
from herald_jax.manifest.contracts import build_contracts
from herald_jax.pool.load import pool_from_records
from herald_jax.pool.pool import Pool

PRIMARY = ("same_final_deletion", "citation_laundering", "fake_id")
BARE: dict[str, dict[str, Any]] = {
    "statistics": {"replicates": 50},
    "operators": {"names": list(PRIMARY)},
    "sections": {
        "pools": [],
        "split_by_model": False,
        "split_by_pool": False,
        "cancellation": False,
        "scales": False,
        "budgets": False,
        "utility": False,
        "group_signal": False,
        "worst_examples": 0,
    },
}


def manifest(**tables: dict[str, Any]) -> Manifest:
    """Primary operators alone and no further section, but for what `tables` says."""
    names = BARE.keys() | tables.keys()
    merged = {name: {**BARE.get(name, {}), **tables.get(name, {})} for name in names}
    return parse_manifest(merged, "test")


def log(
    name: str,
    question: str = "q",
    *,
    searches: Sequence[Sequence[str]] = (("a",),),
    answer: str | None = "Ada",
    citations: Sequence[str] | None = ("a",),
    **further: Any,
) -> Trajectory:
    """A trajectory; `searches` gives the ids that each of its searches returned."""
    return Trajectory(
        trajectory_id=name,
        question_id=question,
        question="who built the mill",
        steps=[Step(f"search {i}", list(ids)) for i, ids in enumerate(searches)],
        answer=answer,
        citations=None if citations is None else list(citations),
        **further,
    )


def pool(
    logs: Sequence[Trajectory],
    *,
    passages: Mapping[str, str] | None = None,
    support: Mapping[str, Sequence[str]] | None = None,
    answers: Sequence[str] = ("Ada",),
) -> Pool:
    """A pool; passages a, b, c and d match every question unless others are given."""
    passages = dict.fromkeys("abcd", "the mill") if passages is None else passages
    questions = dict.fromkeys(row.question_id for row in logs)
    return pool_from_records(
        logs,
        [Passage(name, text) for name, text in passages.items()],
        [
            OracleRow(name, list(answers), list((support or {}).get(name, ["a", "b"])))
            for name in questions
        ],
    )


def blocks(of: Pool, settings: Manifest | None = None) -> list[Block]:
    """The blocks of a pool on the device."""
    settings = settings or manifest()
    return list(stage(prepare(of, settings, build_contracts(settings), None), of.whole))


def block(of: Pool, settings: Manifest | None = None) -> Block:
    """The one block of a pool whose questions have about as many rollouts each."""
    (found,) = blocks(of, settings)
    return found


def run(of: Pool, **tables: dict[str, Any]) -> Report:
    """The report on a pool, with the primary operators and what `tables` asks for."""
    return run_audit(of, manifest(**tables))
