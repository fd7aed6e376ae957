"""`--fail-on`: conditions on a report that make `herald audit` exit with code 1.

Two forms:

- `[CONTRACT.]insufficient`: the contract (R0 when none is named) is not observed sufficient, that
  is, some primary attack succeeded against it or was not measured.
- `CONTRACT.OPERATOR.SELECTION.FIELD OP NUMBER`, for example
  `R0.citation_laundering.oracle_worst.upper>0.05`. SELECTION is `first_visible` or `oracle_worst`,
  FIELD a number of a report cell, OP one of `<`, `<=`, `>`, `>=`. Primary operators are read on the
  common set of rows, the others on the rows that are isolated-eligible for them.

What was not measured trips a condition: an audit without eligible questions never passes a gate.
"""

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from herald_jax.manifest import Manifest
from herald_jax.manifest.contracts import build_contracts
from herald_jax.manifest.rules import listed, suggestion
from herald_jax.types import HeraldError

SELECTIONS = ("first_visible", "oracle_worst")
FIELDS = ("asr", "upper", "mean_margin", "max_margin", "any_success", "questions", "rows")
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

NAME = r"[^.\s<>=]+"
INSUFFICIENT = re.compile(rf"(?:({NAME})\.)?insufficient")
COMPARISON = re.compile(rf"({NAME})\.({NAME})\.({NAME})\.({NAME})\s*(<=|>=|<|>)\s*(\S+)")


class Condition(Protocol):
    """One `--fail-on`."""

    def tripped(self, report: Mapping[str, Any]) -> str | None:
        """Why the report trips the condition, or None when it does not."""


@dataclass(frozen=True)
class Insufficient:
    """The contract is not observed sufficient."""

    contract: str

    def tripped(self, report: Mapping[str, Any]) -> str | None:
        """The first primary operator that succeeded or was not measured."""
        tables = report.get("primary") or {}
        if not tables:
            return f"{self.contract} is not shown sufficient: no primary attack was measured"
        for name, table in tables.items():
            cell = cell_of(table, "oracle_worst", self.contract)
            if not cell:
                return f"{self.contract} is not shown sufficient: {name} was not measured"
            if cell["any_success"]:
                return (
                    f"{self.contract} is not sufficient: {name} succeeded on "
                    f"{cell['any_success']} of {cell['questions']} questions"
                )
        return None


@dataclass(frozen=True)
class Comparison:
    """A figure of one cell is on the wrong side of a limit."""

    contract: str
    operator: str
    selection: str
    figure: str
    sign: str
    limit: float

    def tripped(self, report: Mapping[str, Any]) -> str | None:
        """The figure, when it is past the limit or was not measured."""
        tables = {**(report.get("operators") or {}), **(report.get("primary") or {})}
        cell = cell_of(tables.get(self.operator) or {}, self.selection, self.contract)
        value = cell.get(self.figure)
        place = f"{self.contract}.{self.operator}.{self.selection}.{self.figure}"
        if value is None:
            return f"{place} was not measured"
        if not SIGNS[self.sign](value, self.limit):
            return None
        return f"{place} = {value:g} {self.sign} {self.limit:g}"


def cell_of(table: Mapping[str, Any], selection: str, contract: str) -> Mapping[str, Any]:
    """A cell with at least one question; empty when there is none such."""
    cell: Mapping[str, Any] = (table.get(selection) or {}).get(contract) or {}
    return cell if cell.get("questions") else {}


def parse_condition(text: str, manifest: Manifest) -> Condition:
    """Read one condition; its names must be among what an audit by `manifest` reports.

    Raises:
        HeraldError: neither form, or a name that the report will not have.
    """
    if match := INSUFFICIENT.fullmatch(text.strip()):
        contract = match[1] or "R0"
        check_name(text, contract, build_contracts(manifest).names, "a contract")
        return Insufficient(contract)
    match = COMPARISON.fullmatch(text.strip())
    if match is None:
        raise HeraldError(
            f"--fail-on {text!r}: expected `insufficient`, `CONTRACT.insufficient` or "
            "`CONTRACT.OPERATOR.SELECTION.FIELD>NUMBER`, for example "
            "`R0.citation_laundering.oracle_worst.upper>0.05`"
        )
    contract, name, selection, figure, sign, number = match.groups()
    check_name(text, contract, build_contracts(manifest).names, "a contract")
    check_name(text, name, manifest.operators.names, "an operator")
    check_name(text, selection, SELECTIONS, "a selection")
    check_name(text, figure, FIELDS, "a field")
    return Comparison(contract, name, selection, figure, sign, read_limit(text, number))


def check_name(text: str, name: str, known: tuple[str, ...], kind: str) -> None:
    """Refuse a name that is not among `known`."""
    if name not in known:
        shown = listed(known[:12]) + (", …" if len(known) > 12 else "")
        remedy = suggestion(name, known, "use one of them")
        raise HeraldError(f"--fail-on {text!r}: `{name}` is not {kind} ({shown}); {remedy}")


def read_limit(text: str, number: str) -> float:
    """The number of a comparison; it must be finite, or the comparison could never trip."""
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise HeraldError(f"--fail-on {text!r}: `{number}` is not a finite number")
    return limit
