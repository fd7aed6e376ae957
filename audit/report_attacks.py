"""The worst attacks of a report: what the edit changed, and which terms of the reward moved."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from herald_jax.audit.report_names import BASE, Lattice, operator_order

# What the terms of a split may miss of the margin before the rest is shown as a term of its own.
ROUNDING = 1e-5

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Step:
    """A search with what it returned."""

    query: str
    retrieved: tuple[str, ...]
    valid: bool


@dataclass(frozen=True, slots=True)
class Attack:
    """One edit and the margin it earned.

    Attributes:
        operator: that made the edit.
        contract: under which it earned the margin.
        selection: how the candidate was chosen.
        margin: reward of the edit minus reward of the original.
        succeeds: whether that is at least zero up to the tie tolerance.
        trajectory_id: of the original.
        question_id: of its question.
        question: its text.
        answers: before and after; None is no final.
        citations: (mark, id): kept " ", removed "-", added "+".
        steps: (mark, step), marked as the citations are.
        terms: (reward term, its part of the margin), largest first, zeros left out.
        unmoved: terms that the edit does not move.
        split: whether the report says how the margin is made up.
    """

    operator: str
    contract: str
    selection: str
    margin: float
    succeeds: bool
    trajectory_id: str
    question_id: str
    question: str
    answers: tuple[str | None, str | None]
    citations: tuple[tuple[str, str], ...]
    steps: tuple[tuple[str, Step], ...]
    terms: tuple[tuple[str, float], ...]
    unmoved: tuple[str, ...]
    split: bool

    @property
    def same_steps(self) -> bool:
        """Whether the edit left the steps alone."""
        return all(mark == " " for mark, _ in self.steps)

    @property
    def extent(self) -> float:
        """The largest part of the margin, to scale bars by."""
        return max((abs(value) for _, value in self.terms), default=1.0)


def attacks(
    report: Mapping[str, Any], lattice: Lattice, tie: float, first: Sequence[str], limit: int
) -> list[Attack]:
    """The worst attacks, operators and contracts in reading order, the base reward first.

    Where there are more than `limit`, those under the contracts `first` are kept before others.
    """
    read = [read_attack(entry, tie) for entry in report.get("worst") or []]
    operators = operator_order({attack.operator for attack in read})
    contracts = lattice.ordered({attack.contract for attack in read})

    def key(attack: Attack) -> tuple[int, bool, int, float]:
        return (
            operators.index(attack.operator),
            attack.contract != BASE,
            contracts.index(attack.contract),
            -attack.margin,
        )

    if len(read) > limit:
        read = sorted(read, key=lambda attack: attack.contract not in first)[:limit]
    return sorted(read, key=key)


def by_operator(found: Sequence[Attack]) -> list[tuple[str, list[Attack]]]:
    """Attacks of each operator, the order kept."""
    groups: dict[str, list[Attack]] = {}
    for attack in found:
        groups.setdefault(attack.operator, []).append(attack)
    return list(groups.items())


def read_attack(entry: Mapping[str, Any], tie: float) -> Attack:
    """One entry of `worst`."""
    before, after = entry.get("before") or {}, entry.get("after") or {}
    moved = {name: value for name, value in (entry.get("terms") or {}).items() if value}
    rest = entry["margin"] - sum(moved.values())
    split = "terms" in entry
    if split and abs(rest) > ROUNDING:
        moved["(not split)"] = rest
    return Attack(
        operator=entry["operator"],
        contract=entry["contract"],
        selection=entry.get("selection", ""),
        margin=entry["margin"],
        succeeds=entry["margin"] >= -tie,
        trajectory_id=entry.get("trajectory_id", ""),
        question_id=entry.get("question_id", ""),
        question=entry.get("question", ""),
        answers=(before.get("answer"), after.get("answer")),
        citations=tuple(changes(before.get("citations") or (), after.get("citations") or ())),
        steps=tuple(changes(steps(before), steps(after))),
        terms=tuple(sorted(moved.items(), key=lambda item: (-abs(item[1]), item[0]))),
        unmoved=tuple(name for name, value in (entry.get("terms") or {}).items() if not value),
        split=split,
    )


def steps(final: Mapping[str, Any]) -> tuple[Step, ...]:
    """The steps of a trajectory."""
    return tuple(
        Step(step.get("query", ""), tuple(step.get("retrieved") or ()), step.get("valid", True))
        for step in final.get("steps") or ()
    )


def changes(before: Sequence[Item], after: Sequence[Item]) -> list[tuple[str, Item]]:
    """Both lists as one, in order, each item marked as kept, removed or added."""
    merged: list[tuple[str, Item]] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            merged += [(" ", item) for item in before[start:end]]
        else:
            merged += [("-", item) for item in before[start:end]]
            merged += [("+", item) for item in after[new_start:new_end]]
    return merged
