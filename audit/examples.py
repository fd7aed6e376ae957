"""The worst attacks themselves: a few for each primary operator and contract, before and after.

Only their place is kept while blocks go by; at the end the few trajectories are staged once more,
their edit is made again and its margin is split by reward term. One edit is often the worst under
many contracts: it is written down once, with its margin under each.
"""

import heapq
from typing import Any

import numpy as np

from herald_jax.audit.excerpts import Side, excerpt, sides
from herald_jax.audit.operators import OPERATORS, Operator
from herald_jax.audit.staging import Mask, Setup, stage_block
from herald_jax.audit.tables import ORACLE_WORST
from herald_jax.audit.trials import FAKE_CODE, Trial, attempt
from herald_jax.data.blocks import GroupBlock
from herald_jax.data.pool import Pool
from herald_jax.data.records import Step, Trajectory
from herald_jax.kernels import rewards
from herald_jax.kernels.programs import Edited
from herald_jax.kernels.rewards import COLUMNS
from herald_jax.types import PAD


class Examples:
    """Places of the worst attacks, by operator and contract."""

    def __init__(self, setup: Setup) -> None:
        """Start at nothing; `sections.worst_examples` of the manifest says how many are kept."""
        self._setup = setup
        self._keep = setup.manifest.sections.worst_examples
        self._worst: dict[tuple[str, str], list[tuple[float, int]]] = {}

    def add(self, operator: str, trial: Trial, rows: Mask) -> None:
        """Look at some rows of a block."""
        if not self._keep:
            return
        place, margins = trial.block.place.rows, trial.worst
        for j, contract in enumerate(self._setup.contracts.names):
            counted = np.flatnonzero(rows & np.isfinite(margins[j]))
            # Of equal margins the lowest row stands first, so that block order does not matter.
            order = np.lexsort((place[counted], -margins[j, counted]))[: self._keep]
            new = [(-float(margins[j, at]), int(place[at])) for at in counted[order]]
            so_far = self._worst.get((operator, contract), [])
            self._worst[operator, contract] = heapq.nsmallest(self._keep, so_far + new)

    def report(self, candidates_of: Any) -> list[dict[str, Any]]:
        """The attacks: one entry a trajectory and edit, with every contract that kept the pair.

        Args:
            candidates_of: gives the candidates of a block, `[K, B]`, as when they were found.
        """
        found: list[dict[str, Any]] = []
        for operator in self._setup.manifest.operators.primary:
            kept = [
                (contract, -loss, row)
                for contract in self._setup.contracts.names
                for loss, row in self._worst.get((operator, contract), [])
            ]
            if kept:
                found += self._pairs(OPERATORS[operator], kept, candidates_of)
        return found

    def _pairs(
        self, operator: Operator, kept: list[tuple[str, float, int]], candidates_of: Any
    ) -> list[dict[str, Any]]:
        """The pairs behind (contract, margin, row), in the order in which they first occur."""
        places = sorted({row for _, _, row in kept})
        column = {row: at for at, row in enumerate(places)}
        trial = self._again(operator, places, candidates_of)
        edited = trial.written_out()
        pairs: dict[tuple[int, int], dict[str, Any]] = {}
        for contract, margin, row in kept:
            edit = _worst_edit(trial, self._setup.contracts.index(contract), column[row])
            if (row, edit) not in pairs:
                pairs[row, edit] = {
                    "operator": operator.name,
                    "selection": ORACLE_WORST,
                    **_pair(self._setup.pool, edited, row, column[row], edit),
                    "contracts": {},
                }
            pairs[row, edit]["contracts"][contract] = {
                "margin": margin,
                "terms": self._terms(trial, contract, column[row], edit),
            }
        return list(pairs.values())

    def _again(self, operator: Operator, places: list[int], candidates_of: Any) -> Trial:
        rows = np.full(max(self._setup.block_rows, len(places)), PAD, np.int32)
        rows[: len(places)] = places
        block = stage_block(
            self._setup, GroupBlock(rows=rows, groups=np.full(len(rows), PAD, np.int32), width=1)
        )
        return attempt(block, operator, candidates_of(block))

    def _terms(self, trial: Trial, contract: str, column: int, edit: int) -> dict[str, float]:
        """The margin, term by term; they sum to it."""
        contracts = self._setup.contracts
        row = contracts.index(contract)
        external = trial.base_margin is not None
        weights = dict(zip(COLUMNS, contracts.weights(external)[row], strict=True))
        terms = {}
        for name in trial.moved:
            after = float(np.asarray(trial.moved[name])[edit, column])
            before = float(np.asarray(rewards.column(trial.block.originals, name))[column])
            if weights[name] and after != before:
                terms[name] = float(weights[name]) * (after - before)
        if trial.base_margin is not None and contracts.base[row]:
            terms["base"] = float(np.asarray(trial.base_margin)[edit, column])
        return terms


def _worst_edit(trial: Trial, contract: int, column: int) -> int:
    """The isolated edit of largest margin, the first among equals."""
    margins = np.asarray(trial.margins)[contract, :, column]
    counts = np.asarray(trial.verdicts.isolated)[:, column] & np.isfinite(margins)
    return int(np.where(counts, margins, -np.inf).argmax())


def _pair(pool: Pool, edited: Edited, row: int, column: int, edit: int) -> dict[str, Any]:
    """A trajectory and its edit, as people read them, long texts and lists cut."""
    record = pool.rows.records[row]
    state = edited.state
    ids = np.asarray(state.ids)[edit, :, column]
    citations = [
        fake_name(pool, row) if code == FAKE_CODE else pool.ids.decode(int(code))
        for code in ids[ids != PAD]
    ]
    answer = record.answer
    if np.asarray(edited.gold)[edit, column]:
        answer = pool.oracle[int(pool.rows.question[row])].answers[0]
    steps = _steps_after(
        record.steps,
        searches=int(np.asarray(state.searches)[edit, column]),
        invalid=int(np.asarray(state.invalid)[edit, column]),
    )
    return {
        "trajectory_id": record.trajectory_id,
        "question_id": record.question_id,
        **excerpt("question", record.question),
        **sides(
            Side(record.answer, record.citations or [], record.steps),
            Side(answer, citations, steps),
        ),
    }


def _steps_after(steps: list[Step], *, searches: int, invalid: int) -> list[Step]:
    """Steps with so many searches and invalid actions: all, none, or the last search twice."""
    executed = [step for step in steps if step.executed]
    if searches > len(executed):
        return [*steps, executed[-1]]
    return steps if searches + invalid else []


def fake_name(pool: Pool, row: int) -> str:
    """The id that `fake_id` writes: outside P, E, C and S (SPEC section 13.3)."""
    record: Trajectory = pool.rows.records[row]
    codes = np.concatenate(
        [
            pool.rows.retrieved[row],
            pool.rows.citations[row],
            pool.support[int(pool.rows.question[row])],
        ]
    )
    taken = {pool.ids.decode(int(code)) for code in codes}
    name = f"fake:{record.trajectory_id}"
    while name in taken or _in_corpus(pool, name):
        name += "_"
    return name


def _in_corpus(pool: Pool, name: str) -> bool:
    return name in pool.ids and int(pool.ids.encode([name])[0]) < len(pool.passages)
