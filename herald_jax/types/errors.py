"""Errors that a user can act on: each says where, what was expected, what came, what to do."""

from collections.abc import Sequence
from dataclasses import dataclass


class HeraldError(Exception):
    """Base of every error that is the input's fault, not the program's."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one place of one file.

    Attributes:
        file: path as the user gave it.
        line: physical line of a JSONL file or row of a Parquet file, from 1; 0 for the whole file.
        field: dotted path inside the record (`steps[2].query`); "" for the whole record.
        code: short stable name of the kind, e.g. `duplicate_key`.
        expected: what the field should hold.
        got: what it held, shortened.
        remedy: what the user can do.
        warning: True for what is legal but suspicious.
    """

    file: str
    line: int
    field: str
    code: str
    expected: str
    got: str
    remedy: str
    warning: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        where = f" {self.field}:" if self.field else ""
        kind = "warning: " if self.warning else ""
        return (
            f"{place}:{where} {kind}{self.code}: expected {self.expected}, got {self.got}; "
            f"{self.remedy}"
        )


class InputError(HeraldError):
    """Input files hold faults; `faults` lists all of them, not the first alone."""

    def __init__(self, faults: Sequence[Fault]):
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class ManifestError(HeraldError):
    """A manifest holds an unknown key, a wrong type or a value out of range."""


class BoundaryError(HeraldError):
    """A part that must see visible fields only can reach an oracle field."""
