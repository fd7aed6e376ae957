"""The tables of a report as values that a template can walk through.

Contracts with the same figures share a row: a lattice of 2^n subsets stays readable, and the row
shows which penalties make no difference.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from herald_jax.audit.report_cells import Cell, cell_at
from herald_jax.audit.report_names import Lattice, is_subset, operator_order

SELECTIONS = {
    "first_visible": "First-visible (a blind attacker)",
    "oracle_worst": "Oracle-worst (an upper bound that reads gold labels)",
}


@dataclass(frozen=True, slots=True)
class CellRow:
    """Contracts that share one cell."""

    contracts: tuple[str, ...]
    cell: Cell


@dataclass(frozen=True, slots=True)
class CellTable:
    """Cells of every contract, one block of rows a selection of the candidate."""

    name: str
    blocks: tuple[tuple[str, tuple[CellRow, ...]], ...]


def shared(table: Mapping[str, Any], lattice: Lattice) -> list[tuple[tuple[str, ...], Any]]:
    """Contracts in reading order, those of equal value together at the place of the first."""
    groups: dict[str, tuple[list[str], Any]] = {}
    for name in lattice.ordered(table):
        groups.setdefault(json.dumps(table[name], sort_keys=True), ([], table[name]))[0].append(
            name
        )
    return [(tuple(names), value) for names, value in groups.values()]


def cell_table(name: str, selections: Mapping[str, Any], lattice: Lattice) -> CellTable:
    """The cells of `{selection: {contract: CELL}}`; other keys of `selections` are ignored."""
    blocks = tuple(
        (
            label,
            tuple(
                CellRow(names, Cell.of(cell)) for names, cell in shared(selections[key], lattice)
            ),
        )
        for key, label in SELECTIONS.items()
        if selections.get(key)
    )
    return CellTable(name, blocks)


def primary_tables(report: Mapping[str, Any], lattice: Lattice) -> list[CellTable]:
    """One table a primary operator."""
    primary = report.get("primary") or {}
    return [cell_table(name, primary[name], lattice) for name in operator_order(primary)]


def cell_tables(section: Mapping[str, Any] | None, lattice: Lattice) -> list[CellTable]:
    """One table a model, pool or selection, in the order of the report; `*`, all, first."""
    names = sorted(section or {}, key=lambda name: name != "*")
    return [cell_table(label_of(name), (section or {})[name], lattice) for name in names]


def label_of(name: str) -> str:
    """Name of a model or pool; the two that are no names of the user's are put in words."""
    if name == "*":
        return "all, weighted by question"
    return name or "(no name)"


def budget_tables(report: Mapping[str, Any], lattice: Lattice) -> list[CellTable]:
    """One table a generator and budget."""
    return [
        cell_table(f"{generator}, K = {size}", sizes[size], lattice)
        for generator, sizes in (report.get("budgets") or {}).items()
        for size in budget_order(sizes)
    ]


def budget_order(sizes: Iterable[str]) -> list[str]:
    """Budgets from small to large, `all` last."""
    return sorted(sizes, key=lambda size: (0, int(size)) if size.isdigit() else (1, 0))


@dataclass(frozen=True, slots=True)
class LatticeRow:
    """Subsets with the same outcome: one cell a primary operator."""

    contracts: tuple[str, ...]
    cells: tuple[Cell, ...]
    mark: str


def lattice_rows(report: Mapping[str, Any], lattice: Lattice) -> list[LatticeRow]:
    """Oracle-worst cells of every subset on the common set, equal ones together."""
    primary = report.get("primary") or {}
    operators = operator_order(primary)
    names = {name for table in primary.values() for name in table.get("oracle_worst") or {}}
    table = {
        name: {
            "cells": [
                without_margins((primary[op].get("oracle_worst") or {}).get(name))
                for op in operators
            ],
            "mark": mark(name, lattice),
        }
        for name in names
        if is_subset(name)
    }
    return [
        LatticeRow(contracts, tuple(Cell.of(cell) for cell in value["cells"]), value["mark"])
        for contracts, value in shared(table, lattice)
    ]


def without_margins(cell: Mapping[str, Any] | None) -> dict[str, Any]:
    """The cell less its margins, which are all that tells many subsets apart."""
    margins = {"mean_margin", "mean_margin_interval", "max_margin"}
    return {key: value for key, value in (cell or {}).items() if key not in margins}


def mark(contract: str, lattice: Lattice) -> str:
    """What a subset was observed to be."""
    if contract in lattice.minimal:
        return "minimal"
    return "sufficient" if contract in lattice.sufficient else ""


def worst_cell(report: Mapping[str, Any], contract: str) -> Cell | None:
    """The primary oracle-worst cell of highest ASR, None unless every operator was measured."""
    tables = (report.get("primary") or {}).values()
    cells = [cell_at(table, "oracle_worst", contract) for table in tables]
    if not cells or not all(cell.measured for cell in cells):
        return None
    return max(cells, key=lambda cell: (cell.asr or 0.0, cell.attackable))


@dataclass(frozen=True, slots=True)
class Stratum:
    """ASR under the fuller contract, apart for originals with the detector on and off."""

    detector: str
    active: Mapping[str, Cell]
    inactive: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Cancellation:
    """Pairs that fail under one contract and succeed under a fuller one."""

    lower: str
    upper: str
    operator: str
    pairs: int
    readmitted: int
    paid_by: tuple[tuple[str, int], ...]
    strata: tuple[Stratum, ...]


def cancellations(report: Mapping[str, Any]) -> tuple[list[Cancellation], int]:
    """Steps that re-admit pairs, most first, and the number of steps looked at."""
    entries = report.get("cancellation") or []
    found = [read_cancellation(entry) for entry in entries if entry["readmitted"]]
    found.sort(key=lambda c: (-c.readmitted, c.upper, len(c.lower), c.lower, c.operator))
    return found, len(entries)


def read_cancellation(entry: Mapping[str, Any]) -> Cancellation:
    """One entry; strata of the detectors that paid come first."""
    paid = sorted((entry.get("paid_by") or {}).items(), key=lambda item: (-item[1], item[0]))
    payers = [name for name, _ in paid]
    strata = entry.get("strata") or {}
    order = [n for n in payers if n in strata] + sorted(n for n in strata if n not in payers)
    return Cancellation(
        lower=entry["from"],
        upper=entry["to"],
        operator=entry["operator"],
        pairs=entry["pairs"],
        readmitted=entry["readmitted"],
        paid_by=tuple(paid),
        strata=tuple(
            Stratum(
                name,
                {key: Cell.of((strata[name].get("active") or {}).get(key)) for key in SELECTIONS},
                {key: Cell.of((strata[name].get("inactive") or {}).get(key)) for key in SELECTIONS},
            )
            for name in order
        ),
    )


def natural_splits(report: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, int]]]:
    """(kind, name, counts) of every model and pool for which incidence was counted."""
    by = report.get("natural_by") or {}
    return [
        (kind, label_of(name), counts)
        for kind in ("model", "pool")
        for name, counts in (by.get(kind) or {}).items()
    ]


def signals(report: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """(label, diagnostics) of the whole log, then of every model and pool."""
    signal = report.get("signal") or {}
    found = [("All groups", signal["all"])] if signal.get("all") else []
    for kind in ("model", "pool"):
        for name, diagnostics in (signal.get(kind) or {}).items():
            found.append((f"{kind} {label_of(name)}", diagnostics))
    return found


def flatten(tree: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys and JSON values of nested settings."""
    if isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from flatten(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, json.dumps(tree, ensure_ascii=False)
