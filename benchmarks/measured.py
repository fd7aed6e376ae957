"""What every benchmark gives: rows, printed as lines and written as JSON of one layout.

A row compares a figure with a goal. Mostly the figure is how many times as long a peer took in the
same run; else it is in units of its own. `herald bench` reads the JSON.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure of a benchmark.

    Attributes:
        name: what was measured.
        seconds: the median of our rounds.
        detail: how, and what else was found; one line of words.
        against: the peer; empty when there is none.
        peer_seconds: the median of its rounds, for the same work.
        measured: the figure, where it is not how many times as long the peer took.
        unit: of the figure and of the goal; `x` is times as fast.
        goal: what the figure is to reach.
        at_most: the goal is the most that the figure may be, not the least.
        met: says whether the goal is met where no number does.
    """

    name: str
    seconds: float
    detail: str = ""
    against: str = ""
    peer_seconds: float | None = None
    measured: float | None = None
    unit: str = "x"
    goal: float | None = None
    at_most: bool = False
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        """The figure."""
        if self.measured is not None:
            return self.measured
        return None if self.peer_seconds is None else self.peer_seconds / self.seconds

    @property
    def reached(self) -> bool | None:
        """Whether the goal is met; None without one."""
        if self.met is not None or self.goal is None or self.ratio is None:
            return self.met
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal

    def fields(self) -> dict[str, Any]:
        """As in the JSON."""
        return {
            "name": self.name,
            "against": self.against,
            "ratio": self.ratio,
            "unit": self.unit,
            "goal": self.goal,
            "at_most": self.at_most,
            "met": self.reached,
            "seconds": self.seconds,
            "peer_seconds": self.peer_seconds,
            "detail": self.detail,
        }


def turns(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every round of ways that take turns, so that the load falls on all of them."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            spent[name].append(seconds(way))
    return spent


def seconds(work: Callable[[], Any]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def lowest(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The lowest ratio of a round."""
    return min(b / a for a, b in zip(ours, theirs, strict=True))


def medians(spent: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The median of every way's rounds."""
    return {name: statistics.median(rounds) for name, rounds in spent.items()}


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with what all benchmarks understand; the examples stand in the description."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small and short: a first look")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    return parser


def finish(
    options: argparse.Namespace,
    claim: str,
    machine: Mapping[str, Any],
    rows: Sequence[Row],
    **more: Any,
) -> None:
    """Print the rows, and write them where `--out` says, with what else was found."""
    for row in rows:
        print("\n".join(lines(row)))
    if options.out is None:
        return
    document = {
        "schema": SCHEMA,
        "claim": claim,
        "quick": options.quick,
        "machine": machine,
        "rows": [row.fields() for row in rows],
        **more,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def lines(row: Row) -> list[str]:
    """A row in words."""
    against = f" against {row.against}" if row.against else ""
    unit = row.unit if row.unit in ("x", "%") else f" {row.unit}"
    out = [f"{row.name}{against}: {row.seconds:.3f} s"]
    if row.ratio is not None:
        out[0] += f"  {row.ratio:,.{0 if abs(row.ratio) >= 100 else 2}f}{unit}"
    if row.goal is not None:
        out[0] += f", goal {'at most' if row.at_most else 'at least'} {row.goal:,g}{unit}"
    if row.reached is not None:
        out[0] += f": {'met' if row.reached else 'MISSED'}"
    if row.detail:
        out.append(f"    {row.detail}")
    return out
