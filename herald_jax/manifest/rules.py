"""What a setting may hold: one small rule object per kind of value.

A rule turns what a TOML file or a caller gave into the value that is stored (`1` into `1.0`, a list
into a tuple), or raises `RuleError` with every problem it found: what was expected, what came, what
to do. Rules know nothing of sections; `config` attaches them to fields.
"""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from herald_jax.types import Fault

SHOWN_CHARACTERS = 60


class Problem(NamedTuple):
    """One setting that is wrong: its dotted key below the place that reports it."""

    key: str
    code: str
    expected: str
    got: str
    remedy: str

    def under(self, owner: str) -> "Problem":
        """The same problem seen from the table that holds `owner`."""
        joint = "." if self.key and not self.key.startswith("[") else ""
        return self._replace(key=f"{owner}{joint}{self.key}")

    def in_file(self, path: str) -> Fault:
        """The problem as a fault of the file `path`."""
        return Fault(path, 0, self.key, self.code, self.expected, self.got, self.remedy)


class RuleError(Exception):
    """A value that breaks its rule, with everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]):
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{p.expected}, got {p.got}" for p in self.problems))


def broken(code: str, expected: str, value: object, remedy: str = "correct the value") -> RuleError:
    """The error of one value that breaks one rule."""
    return RuleError([Problem("", code, expected, shown(value), remedy)])


class Rule(Protocol):
    """Reads a raw value or raises `RuleError`."""

    def read(self, value: object) -> object:
        """Return the value as it is stored."""


def read_all(
    values: Mapping[str, tuple[Rule, object]], problems: Sequence[Problem] = ()
) -> dict[str, Any]:
    """Each value through its own rule.

    Raises:
        RuleError: with `problems` and those of all values, each under its key.
    """
    found = list(problems)
    made = {}
    for key, (rule, value) in values.items():
        try:
            made[key] = rule.read(value)
        except RuleError as error:
            found.extend(problem.under(key) for problem in error.problems)
    if found:
        raise RuleError(found)
    return made


def shown(value: object) -> str:
    """`value` as a user would recognise it, on one line and shortened."""
    text = repr(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice most like `name`, or None when nothing is near."""
    folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def suggestion(name: str, choices: Sequence[str], otherwise: str) -> str:
    """A remedy that names the nearest choice when there is one."""
    close = nearest(name, choices)
    return f"did you mean `{close}`?" if close else otherwise


def listed(names: Iterable[str]) -> str:
    """Names in a sentence."""
    return ", ".join(f"`{name}`" for name in names)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A finite float in [low, high], or in (low, high) when `open_ended`; integers are accepted."""

    low: float
    high: float
    open_ended: bool = False

    def read(self, value: object) -> float:
        """Return the number as a float; a minus sign before zero is dropped."""
        left, right = ("(", ")") if self.open_ended else ("[", "]")
        expected = f"a number in {left}{self.low:g}, {self.high:g}{right}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise broken("wrong_type", expected, value)
        if isinstance(value, float) and not math.isfinite(value):
            raise broken("not_finite", expected, value)
        inside = self.low < value < self.high if self.open_ended else self.low <= value <= self.high
        if not inside:
            raise broken("out_of_range", expected, value)
        return float(value) + 0.0


@dataclass(frozen=True, kw_only=True)
class Integer:
    """A whole number in [low, high]; neither a float nor a boolean passes for one."""

    low: int
    high: int

    def read(self, value: object) -> int:
        """Return the integer."""
        expected = f"a whole number from {self.low} to {self.high}"
        if isinstance(value, bool) or not isinstance(value, int):
            raise broken("wrong_type", expected, value)
        if not self.low <= value <= self.high:
            raise broken("out_of_range", expected, value)
        return value


@dataclass(frozen=True)
class Flag:
    """true or false."""

    def read(self, value: object) -> bool:
        """Return the boolean."""
        if not isinstance(value, bool):
            raise broken("wrong_type", "true or false", value)
        return value


@dataclass(frozen=True)
class Choice:
    """One of a fixed set of names."""

    choices: tuple[str, ...]

    def read(self, value: object) -> str:
        """Return the name."""
        expected = f"one of {listed(self.choices)}"
        if not isinstance(value, str):
            raise broken("wrong_type", expected, value)
        if value not in self.choices:
            remedy = suggestion(value, self.choices, "use one of the names")
            raise broken("unknown_name", expected, value, remedy)
        return value


@dataclass(frozen=True, kw_only=True)
class Items:
    """A list of distinct items, each of which follows `item`; `increasing` fixes their order."""

    item: Rule
    low: int = 1
    high: int = 64
    increasing: bool = False

    def read(self, value: object) -> tuple[object, ...]:
        """Return the items as a tuple."""
        size = f"{self.low} to {self.high}" if self.low else f"at most {self.high}"
        expected = f"a list of {size} distinct items"
        if not isinstance(value, list | tuple):
            raise broken("wrong_type", expected, value, "write a list in square brackets")
        items = tuple(
            read_all({f"[{i}]": (self.item, item) for i, item in enumerate(value)}).values()
        )
        if not self.low <= len(items) <= self.high:
            raise broken("out_of_range", expected, value)
        if len(set(items)) < len(items):
            raise broken("repeated_item", expected, value, "name each item once")
        if self.increasing and list(items) != sorted(items):
            raise broken("not_increasing", "items in increasing order", value, "sort the list")
        return items


@dataclass(frozen=True)
class Table:
    """Known names mapped to values that follow `value`; stored in the order of `names`."""

    names: tuple[str, ...]
    value: Rule

    def read(self, value: object) -> dict[str, object]:
        """Return a new dictionary."""
        expected = f"a table with keys among {listed(self.names)}"
        if not isinstance(value, Mapping):
            raise broken("wrong_type", expected, value)
        problems = [
            Problem(
                str(name),
                "unknown_key",
                expected,
                shown(name),
                suggestion(str(name), self.names, "use one of the names"),
            )
            for name in value
            if name not in self.names
        ]
        known = {name: (self.value, value[name]) for name in self.names if name in value}
        return read_all(known, problems)
