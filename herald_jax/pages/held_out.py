"""A run's evaluations on held-out questions in words and as a table: first, last, difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from herald_jax.pages.numbers import (
    UNKNOWN,
    percent,
    percent_range,
    plain,
    quantity,
    signed,
    signed_range,
)

Data = Mapping[str, Any]
Interval = tuple[float, float]

SHARES: tuple[tuple[str, str], ...] = (
    ("em", "EM"),
    ("f1", "F1"),
    ("citation_precision", "Citation precision"),
    ("support_recall", "Support recall"),
    ("cites", "Answers that cite"),
    ("unsupported_citation_rate", "Citations without support"),
    ("unanswered", "Rollouts without an answer"),
    ("truncated", "Rollouts cut off"),
)
AMOUNTS: tuple[tuple[str, str], ...] = (
    ("reward", "Reward"),
    ("searches", "Searches"),
    ("invalid", "Invalid actions"),
    ("tokens", "Action tokens"),
)
MAIN = (("em", "EM"), ("citation_precision", "citation precision"))


@dataclass(frozen=True)
class HeldOut:
    """Evaluations of a run, in order, as `train.evaluate` writes them.

    Attributes:
        evaluations: update and summary of each.
        differences: figure -> paired difference of the last and the first: `mean`, `interval`;
            empty where there are not two evaluations of the same questions.
    """

    evaluations: Sequence[tuple[int, Data]] = ()
    differences: Mapping[str, Data] = field(default_factory=dict)

    @property
    def compared(self) -> bool:
        """Whether there is a before and an after."""
        return len(self.evaluations) > 1

    @property
    def level(self) -> str:
        """Of the intervals."""
        return percent(self.evaluations[-1][1]["level"], 0) if self.evaluations else ""

    def headline(self) -> str:
        """What came out, in a sentence; nothing without a before and an after."""
        if not self.compared:
            return ""
        em, precision = (moved(self.differences.get(name)) for name, _ in MAIN)
        if em == precision:
            return f"Held-out EM and citation precision {em}"
        return f"Held-out EM {em}, citation precision {precision}"

    def sentences(self) -> list[str]:
        """The result in plain words."""
        if not self.evaluations:
            return []
        first, (update, last) = self.evaluations[0][1], self.evaluations[-1]
        asked = quantity(last["questions"], "held-out question")
        if not self.compared:
            told = " and ".join(f"{name} is {figure(last, key)}" for key, name in MAIN)
            return [f"On {asked} after {quantity(update, 'update')}, {told}."]
        told = "; ".join(
            f"{name} went from {figure(first, key)} to {figure(last, key)}"
            f"{change(self.differences.get(key))}"
            for key, name in MAIN
        )
        return [f"On {asked}, {told}."]

    def table(self) -> list[tuple[str, list[list[str]]]]:
        """Blocks of rows: name, first, last, difference; name and figure without comparison."""
        if not self.evaluations:
            return []
        figures = self.evaluations[-1][1]["figures"]["all"]
        named = {name for name, _ in (*SHARES, *AMOUNTS)}
        detectors = [(name, name.replace("_", " ")) for name in figures if name not in named]
        blocks: tuple[tuple[str, Sequence[tuple[str, str]], bool], ...] = (
            ("Answers and citations", SHARES, True),
            ("Per rollout", AMOUNTS, False),
            ("Detectors, share of rollouts", detectors, True),
        )
        return [
            (title, [self._row(key, name, shares) for key, name in rows if key in figures])
            for title, rows, shares in blocks
        ]

    def _row(self, key: str, name: str, shares: bool) -> list[str]:
        ends = (self.evaluations[0], self.evaluations[-1]) if self.compared else self.evaluations
        cells = [summary["figures"]["all"].get(key) for _, summary in ends]
        row = [name, *(UNKNOWN if cell is None else cell_text(cell, shares) for cell in cells)]
        if self.compared:
            difference = self.differences.get(key)
            row.append("" if difference is None else difference_text(difference, shares))
        return row


def moved(difference: Data | None) -> str:
    """Which way a figure went, as far as its interval tells."""
    if difference is None or difference["interval"] is None:
        return "cannot be compared"
    low, high = difference["interval"]
    return "rose" if low > 0 else "fell" if high < 0 else "did not measurably change"


def figure(found: Data, key: str) -> str:
    """A share with its interval."""
    cell = found["figures"]["all"][key]
    text = percent(cell["mean"])
    if cell["interval"] is None:
        return text
    ends = percent_range(pair(cell["interval"]))
    return f"{text} ({percent(found['level'], 0)} interval {ends})"


def change(difference: Data | None) -> str:
    """A paired difference in percentage points, in words."""
    if difference is None:
        return ""
    text = f", {points(difference['mean'])} points paired by question"
    if difference["interval"] is None:
        return text
    low, high = difference["interval"]
    if low == high == 0:
        return ", the same on every question"
    sure = "" if low > 0 or high < 0 else ", which may be no change at all"
    return f"{text} ({points(low)} to {points(high)}){sure}"


def points(value: float) -> str:
    """A difference of shares in percentage points."""
    return signed(100 * value, 1)


def cell_text(cell: Data, shares: bool) -> str:
    """A figure with its interval in brackets."""
    text = percent(cell["mean"]) if shares else plain(cell["mean"], 2)
    if cell["mean"] is None or cell["interval"] is None:
        return text
    low, high = pair(cell["interval"])
    ends = percent_range((low, high)) if shares else f"{plain(low, 2)} to {plain(high, 2)}"
    return f"{text} ({ends})"


def difference_text(difference: Data, shares: bool) -> str:
    """A paired difference with its interval in brackets, of shares in points."""
    scale, digits = (100.0, 1) if shares else (1.0, 2)
    text = signed(scale * difference["mean"], digits)
    if difference["interval"] is None:
        return text
    low, high = pair(difference["interval"])
    return f"{text} ({signed_range((scale * low, scale * high), digits)})"


def pair(interval: Sequence[float]) -> Interval:
    """Both ends of an interval that was read from JSON."""
    return float(interval[0]), float(interval[1])
