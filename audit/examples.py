"""The worst attacks themselves: a few for each primary operator and contract, before and after.

Only the few trajectories are kept while sections go by; at the end they are staged once more, their
edit is made again and its margin is split by reward term. One edit is often the worst under many
contracts: it is written down once, with its margin under each.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from herald_jax.audit.candidates import Candidates
from herald_jax.audit.excerpts import Side, excerpt, sides
from herald_jax.audit.keys import ORACLE_WORST
from herald_jax.audit.operators import GENERATOR, OPERATORS, Operator
from herald_jax.audit.staging import Mask, Setup, stage_block
from herald_jax.audit.trials import FAKE_CODE, Trial, attempt
from herald_jax.data.blocks import GroupBlock
from herald_jax.data.records import Step, Trajectory
from herald_jax.kernels import rewards
from herald_jax.kernels.programs import Edited
from herald_jax.kernels.rewards import COLUMNS
from herald_jax.pool.pool import Pool
from herald_jax.pool.rows import Rows, joined, unpacked
from herald_jax.pool.sections import Section
from herald_jax.pool.store import Entry
from herald_jax.types import PAD

# (minus the margin, number of the trajectory): of equal margins the lowest number stands first, so
# that the order of blocks and sections does not matter.
Attack = tuple[float, int]
ROWS = "worst."
Tree = dict[str, dict[str, list[Attack]]]


class Worst:
    """The worst attacks of one section, by operator and contract.

    Args:
        setup: `sections.worst_examples` of its manifest says how many are kept.
        section: the rows.
    """

    def __init__(self, setup: Setup, section: Section) -> None:
        self._contracts = setup.contracts.names
        self._keep = setup.manifest.sections.worst_examples
        self._section = section
        self._worst: Tree = {}

    def add(self, operator: str, trial: Trial, rows: Mask) -> None:
        """Look at some rows of a block."""
        if not self._keep:
            return
        numbers, margins = trial.block.numbers, trial.worst
        of_operator = self._worst.setdefault(operator, {})
        found = []
        for worst in margins:
            counted = np.flatnonzero(rows & np.isfinite(worst))
            kept = counted[largest(worst[counted], self._keep)]
            found.append([(-float(worst[at]), int(numbers[at])) for at in kept])
        for contract, kind in zip(self._contracts, trial.alike.tolist(), strict=True):
            new, so_far = found[kind], of_operator.get(contract, [])
            of_operator[contract] = heapq.nsmallest(self._keep, so_far + new)

    def finish(self) -> tuple[Tree, dict[str, npt.NDArray[Any]]]:
        """The attacks, and the trajectories that they are on."""
        numbers = _numbers(self._worst)
        rows = self._section.rows.take(np.searchsorted(self._section.numbers, numbers))
        arrays = {f"{ROWS}{name}": array for name, array in rows.packed().items()}
        return self._worst, arrays | {f"{ROWS}numbers": numbers}


def largest(values: npt.NDArray[np.float32], most: int) -> npt.NDArray[np.intp]:
    """Places of the largest values, the first among equals; in no particular order.

    A block's trajectories stand in the order of their numbers, so that the first of equal margins
    has the lowest number.
    """
    if len(values) <= most:
        return np.arange(len(values))
    least = np.partition(values, len(values) - most)[len(values) - most]
    above = np.flatnonzero(values > least)
    return np.concatenate([above, np.flatnonzero(values == least)[: most - len(above)]])


def report_worst(
    results: Sequence[Entry], setup: Setup, records: Mapping[tuple[int, int], Trajectory] | None
) -> list[dict[str, Any]]:
    """The attacks: one entry a trajectory and edit, with every contract that kept the pair.

    Args:
        results: of all sections.
        setup: of the audit.
        records: trajectories by place; None to read them from their files.
    """
    keep = setup.manifest.sections.worst_examples
    worst: Tree = {}
    for result in results:
        for operator, contracts in result.meta["examples"].items():
            for contract, attacks in contracts.items():
                so_far = worst.setdefault(operator, {}).get(contract, [])
                new = [(float(loss), int(number)) for loss, number in attacks]
                worst[operator][contract] = heapq.nsmallest(keep, so_far + new)
    wanted = _numbers(worst)
    if not len(wanted):
        return []
    section = Section(0, len(setup.pool.questions), wanted, _rows(results, wanted))
    if records is None:
        places = section.rows.table[["file", "line"]].tolist()
        records = setup.pool.records(places)
    return _Report(setup, section, records).of(worst)


def _numbers(worst: Tree) -> npt.NDArray[np.int64]:
    """Numbers of the trajectories, ascending."""
    numbers = {
        number
        for contracts in worst.values()
        for attacks in contracts.values()
        for _, number in attacks
    }
    return np.array(sorted(numbers), np.int64)


def _rows(results: Sequence[Entry], wanted: npt.NDArray[np.int64]) -> Rows:
    """The trajectories of these numbers, in their order."""
    parts, numbers = [], []
    for result in results:
        known = result.read(f"{ROWS}numbers")
        kept = np.flatnonzero(np.isin(known, wanted))
        if len(kept):
            parts.append(unpacked(_Prefixed(result), 0, len(known)).take(kept))
            numbers.append(known[kept])
    return joined(parts).take(np.argsort(np.concatenate(numbers)))


class _Prefixed:
    """The trajectories among the arrays of a result."""

    def __init__(self, result: Entry) -> None:
        self._result = result

    def part(self, name: str, first: int, last: int) -> npt.NDArray[Any]:
        return self._result.part(f"{ROWS}{name}", first, last)


class _Report:
    """Attacks on a few rows, written down."""

    def __init__(
        self,
        setup: Setup,
        section: Section,
        records: Mapping[tuple[int, int], Trajectory],
    ) -> None:
        self._setup = setup
        self._section = section
        self._row = {int(number): row for row, number in enumerate(section.numbers)}
        places = section.rows.table[["file", "line"]].tolist()
        self._records = [records[place] for place in places]

    def of(self, worst: Tree) -> list[dict[str, Any]]:
        """One entry a trajectory and edit."""
        found: list[dict[str, Any]] = []
        for operator in self._setup.manifest.operators.primary:
            kept = [
                (contract, -loss, self._row[number])
                for contract in self._setup.contracts.names
                for loss, number in worst.get(operator, {}).get(contract, [])
            ]
            if kept:
                found += self._pairs(OPERATORS[operator], kept)
        return found

    def _pairs(
        self, operator: Operator, kept: list[tuple[str, float, int]]
    ) -> list[dict[str, Any]]:
        """The pairs behind (contract, margin, row), in the order in which they first occur."""
        trial = self._again(operator)
        edited = trial.written_out()
        pairs: dict[tuple[int, int], dict[str, Any]] = {}
        for contract, margin, row in kept:
            edit = _worst_edit(trial, self._setup.contracts.index(contract), row)
            if (row, edit) not in pairs:
                pairs[row, edit] = {
                    "operator": operator.name,
                    "selection": ORACLE_WORST,
                    **self._pair(edited, row, edit),
                    "contracts": {},
                }
            pairs[row, edit]["contracts"][contract] = {
                "margin": margin,
                "terms": self._terms(trial, contract, row, edit),
            }
        return list(pairs.values())

    def _again(self, operator: Operator) -> Trial:
        setup, rows = self._setup, self._section.rows
        places = np.full(max(setup.block_rows, len(rows)), PAD, np.int32)
        places[: len(rows)] = np.arange(len(rows))
        nothing = np.full(len(places), PAD, np.int32)
        block = stage_block(setup, self._section, GroupBlock(places, nothing, width=1))
        candidates = None
        if operator.offers == GENERATOR:
            settings = setup.manifest.generators
            found = Candidates(
                rows,
                {settings.primary: settings.primary_k},
                setup.corpus,
                setup.pool.longest.candidates,
            )
            candidates = found.of_block(settings.primary, block, settings.primary_k)
        return attempt(block, operator, candidates)

    def _pair(self, edited: Edited, row: int, edit: int) -> dict[str, Any]:
        """A trajectory and its edit, as people read them, long texts and lists cut."""
        record, pool = self._records[row], self._setup.pool
        question = int(self._section.rows.question[row])
        state = edited.state
        codes = np.asarray(state.ids)[edit, :, row]
        name = self._names(row)
        answer = record.answer
        if np.asarray(edited.gold)[edit, row]:
            answer = pool.questions.golds[question][0]
        steps = _steps_after(
            record.steps,
            searches=int(np.asarray(state.searches)[edit, row]),
            invalid=int(np.asarray(state.invalid)[edit, row]),
        )
        citations = [name(int(code)) for code in codes[codes != PAD]]
        return {
            "trajectory_id": record.trajectory_id,
            "question_id": record.question_id,
            **excerpt("question", record.question),
            **sides(
                Side(record.answer, record.citations or [], record.steps),
                Side(answer, citations, steps),
            ),
        }

    def _names(self, row: int) -> Callable[[int], str]:
        """What ids the codes of a row stand for; those beyond the table are the row's own."""
        record, pool = self._records[row], self._setup.pool
        codes = self._section.rows.citations[row].tolist()
        own = dict(zip(codes, record.citations or [], strict=True))
        question = int(self._section.rows.question[row])
        support = [pool.ids.decode(int(code)) for code in pool.questions.support[question]]

        def name(code: int) -> str:
            if code == FAKE_CODE:
                return fake_name(record, support, pool)
            return own[code] if code in own else pool.ids.decode(code)

        return name

    def _terms(self, trial: Trial, contract: str, row: int, edit: int) -> dict[str, float]:
        """The margin, term by term; they sum to it."""
        contracts = self._setup.contracts
        at = contracts.index(contract)
        external = trial.base_margin is not None
        weights = dict(zip(COLUMNS, contracts.weights(external)[at], strict=True))
        terms = {}
        for name in trial.moved:
            after = float(np.asarray(trial.moved[name])[edit, row])
            before = float(np.asarray(rewards.column(trial.block.originals, name))[row])
            if weights[name] and after != before:
                terms[name] = float(weights[name]) * (after - before)
        if trial.base_margin is not None and contracts.base[at]:
            terms["base"] = float(np.asarray(trial.base_margin)[edit, row])
        return terms


def _worst_edit(trial: Trial, contract: int, column: int) -> int:
    """The isolated edit of largest margin, the first among equals."""
    margins = np.asarray(trial.margins)[contract, :, column]
    counts = np.asarray(trial.verdicts.isolated)[:, column] & np.isfinite(margins)
    return int(np.where(counts, margins, -np.inf).argmax())


def _steps_after(steps: list[Step], *, searches: int, invalid: int) -> list[Step]:
    """Steps with so many searches and invalid actions: all, none, or the last search twice."""
    executed = [step for step in steps if step.executed]
    if searches > len(executed):
        return [*steps, executed[-1]]
    return steps if searches + invalid else []


def fake_name(record: Trajectory, support: Sequence[str], pool: Pool) -> str:
    """The id that `fake_id` writes: outside P, E, C and S (SPEC section 13.3)."""
    taken = {*(record.citations or ()), *support}
    taken.update(*(step.retrieved or () for step in record.steps if step.executed))
    name = f"fake:{record.trajectory_id}"
    while name in taken or _in_corpus(pool, name):
        name += "_"
    return name


def _in_corpus(pool: Pool, name: str) -> bool:
    return name in pool.ids and int(pool.ids.encode([name])[0]) < len(pool.passages)
