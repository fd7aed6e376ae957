"""The worst attacks of a report: what the edit changed, and which terms of the reward moved."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from herald_jax.audit.report_names import BASE, Lattice, operator_order
from herald_jax.audit.report_tables import shared
from herald_jax.pages.numbers import count

# What the terms of a split may miss of the margin before the rest is shown as a term of its own.
ROUNDING = 1e-5

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Text:
    """The start of a text of the log; `text` is None where there was none."""

    text: str | None
    length: int

    @property
    def cut(self) -> str:
        """How much is shown, "" when that is all."""
        shown = len(self.text or "")
        if shown >= self.length:
            return ""
        return f"cut: the first {count(shown)} of {count(self.length)} characters"


@dataclass(frozen=True, slots=True)
class Step:
    """A search with what it returned, `more` passages beyond those listed."""

    query: Text
    retrieved: tuple[str, ...]
    more: int
    valid: bool


@dataclass(frozen=True, slots=True)
class Earned:
    """The margin of an edit under some contracts, which agree on it term by term.

    Attributes:
        contracts: their names.
        margin: reward of the edit minus reward of the original.
        succeeds: whether that is at least zero up to the tie tolerance.
        terms: (reward term, its part of the margin), largest first, zeros left out.
    """

    contracts: tuple[str, ...]
    margin: float
    succeeds: bool
    terms: tuple[tuple[str, float], ...]

    @property
    def extent(self) -> float:
        """The largest part of the margin, to scale bars by."""
        return max((abs(value) for _, value in self.terms), default=1.0)


@dataclass(frozen=True, slots=True)
class Attack:
    """One edit of one trajectory and what it earned.

    Attributes:
        operator: that made the edit.
        selection: how the candidate was chosen.
        trajectory_id: of the original.
        question_id: of its question.
        question: its text.
        answers: before and after; a text of None is no final.
        citations: (mark, id): kept " ", removed "-", added "+".
        citations_cut: which part of the citations that is, "" when all are there.
        steps: (mark, step), marked as the citations are.
        steps_cut: which part of the steps that is.
        earned: under every contract for which it is among the worst, the base reward first.
    """

    operator: str
    selection: str
    trajectory_id: str
    question_id: str
    question: Text
    answers: tuple[Text, Text]
    citations: tuple[tuple[str, str], ...]
    citations_cut: str
    steps: tuple[tuple[str, Step], ...]
    steps_cut: str
    earned: tuple[Earned, ...]

    @property
    def contract(self) -> str:
        """The contract that stands for the others: the base reward where it is one of them."""
        return self.earned[0].contracts[0]

    @property
    def contracts(self) -> list[str]:
        """All its contracts."""
        return [contract for earned in self.earned for contract in earned.contracts]

    @property
    def same_steps(self) -> bool:
        """Whether the edit left the steps alone."""
        return all(mark == " " for mark, _ in self.steps)


def attacks(
    report: Mapping[str, Any], lattice: Lattice, tie: float, first: Sequence[str], limit: int
) -> list[Attack]:
    """The worst attacks, operators and contracts in reading order, the base reward first.

    Where there are more than `limit`, those under the contracts `first` are kept before others.
    """
    read = [read_attack(entry, lattice, tie) for entry in report.get("worst") or []]
    operators = operator_order({attack.operator for attack in read})
    contracts = lattice.ordered({attack.contract for attack in read})

    def key(attack: Attack) -> tuple[int, bool, int, float]:
        return (
            operators.index(attack.operator),
            attack.contract != BASE,
            contracts.index(attack.contract),
            -attack.earned[0].margin,
        )

    if len(read) > limit:
        read = sorted(read, key=lambda attack: not set(first) & set(attack.contracts))[:limit]
    return sorted(read, key=key)


def by_operator(found: Sequence[Attack]) -> list[tuple[str, list[Attack]]]:
    """Attacks of each operator, the order kept."""
    groups: dict[str, list[Attack]] = {}
    for attack in found:
        groups.setdefault(attack.operator, []).append(attack)
    return list(groups.items())


def read_attack(entry: Mapping[str, Any], lattice: Lattice, tie: float) -> Attack:
    """One entry of `worst`."""
    before, after = entry["before"], entry["after"]
    earned = [read_earned(*group, tie) for group in shared(entry["contracts"], lattice)]
    return Attack(
        operator=entry["operator"],
        selection=entry["selection"],
        trajectory_id=entry["trajectory_id"],
        question_id=entry["question_id"],
        question=read_text(entry, "question"),
        answers=(read_text(before, "answer"), read_text(after, "answer")),
        citations=tuple(changes(before["citations"], after["citations"])),
        citations_cut=cut(before, after, "citations"),
        steps=tuple(changes(steps(before), steps(after))),
        steps_cut=cut(before, after, "steps"),
        earned=tuple(sorted(earned, key=lambda one: one.contracts[0] != BASE)),
    )


def read_earned(contracts: Sequence[str], entry: Mapping[str, Any], tie: float) -> Earned:
    """The margin that an entry holds for contracts of equal figures."""
    terms = {name: value for name, value in entry["terms"].items() if value}
    rest = entry["margin"] - sum(terms.values())
    if abs(rest) > ROUNDING:
        terms["(not split)"] = rest
    return Earned(
        contracts=tuple(sorted(contracts, key=lambda name: name != BASE)),
        margin=entry["margin"],
        succeeds=entry["margin"] >= -tie,
        terms=tuple(sorted(terms.items(), key=lambda item: (-abs(item[1]), item[0]))),
    )


def read_text(entry: Mapping[str, Any], name: str) -> Text:
    """A text with its whole length."""
    return Text(entry[name], entry[f"{name}_length"] or 0)


def cut(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> str:
    """Which items of a list are shown, "" when that is all of them."""
    if all(len(side[name]) == side[f"{name}_count"] for side in (before, after)):
        return ""
    shown = max(len(before[name]), len(after[name]))
    numbers = f"{count(before[f'{name}_from'] + 1)} to {count(before[f'{name}_from'] + shown)}"
    totals = [count(side[f"{name}_count"]) for side in (before, after)]
    return f"cut: numbers {numbers} are shown, of {totals[0]} before and {totals[1]} after"


def steps(side: Mapping[str, Any]) -> tuple[Step, ...]:
    """The steps of a trajectory."""
    return tuple(
        Step(
            read_text(step, "query"),
            tuple(step["retrieved"]),
            step["retrieved_count"] - len(step["retrieved"]),
            step["valid"],
        )
        for step in side["steps"]
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
