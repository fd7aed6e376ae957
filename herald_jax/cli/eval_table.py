"""Evaluations of a policy as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from herald_jax.cli.bench_table import printed
from herald_jax.train.evaluate import paired_difference

SHOWN = (
    "em",
    "f1",
    "citation_precision",
    "support_recall",
    "unsupported_citation_rate",
    "cites",
    "searches",
    "invalid",
    "unanswered",
    "truncated",
    "tokens",
    "reward",
)
COMPARED = ("em", "f1", "citation_precision", "support_recall", "searches", "reward")


def evaluation_table(summary: Mapping[str, Any]) -> str:
    """Every figure: of all rollouts, the greedy ones, the samples."""
    figures = summary["figures"]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column("Held-out")
    for part in figures:
        grid.add_column(part, justify="right", no_wrap=True)
    others = [name for name in figures["all"] if name not in SHOWN]
    for name in (*SHOWN, *others):
        grid.add_row(name.replace("_", " "), *(cell(figures[part][name]) for part in figures))
    head = (
        f"{summary['checkpoint']}, {summary['updates']:,} updates: {summary['questions']:,} "
        f"questions, {summary['rollouts']:,} rollouts; intervals of {summary['level']:.0%} over "
        "questions\n"
    )
    return head + printed(grid)


def difference_table(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What differs between two policies, paired by question."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column(f"{after['checkpoint']} less {before['checkpoint']}")
    grid.add_column("Difference", justify="right", no_wrap=True)
    for name in COMPARED:
        moved = paired_difference(before, after, name, level=before["level"])
        grid.add_row(name.replace("_", " "), cell(moved, sign="+"))
    return printed(grid)


def cell(figure: Mapping[str, Any], sign: str = "") -> str:
    """A mean and its interval."""
    if figure["mean"] is None:
        return "not measured"
    text = f"{figure['mean']:{sign}.3f}"
    if figure["interval"] is not None:
        low, high = figure["interval"]
        text += f"  [{low:{sign}.3f}, {high:{sign}.3f}]"
    return text
