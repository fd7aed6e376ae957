"""What a report calls things: operators in plain words, contracts in the order of the lattice."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from herald_jax.types import SYMBOLS

OPERATORS = {
    "same_final_deletion": "all searches are deleted; answer and citations stay, to the byte",
    "citation_laundering": "a retrieved citation is replaced by a passage that was not retrieved",
    "fake_id": "a retrieved citation is replaced by an id that is not in the corpus",
    "repeated_query": "the last search is appended once more, with its results",
    "citation_drop": "all citations are removed",
    "unsupported_citation": "cited support passages are replaced by retrieved ones that are not",
    "support_id_laundering": "a retrieved citation is replaced by a gold support id",
    "gold_stress": "no search; the gold answer and the gold support ids are written down",
}

BASE = "R0"
FULL = "R_full"
LEADING = ("outcome_only", "outcome_cost")
SUBSET = re.compile(r"R\[(.+)\]", re.DOTALL)


def words(name: str) -> str:
    """A name of the code as words, `same final deletion`."""
    return name.replace("_", " ")


def operator_order(names: Iterable[str]) -> list[str]:
    """Operators in the order of this page: the primary three, then the others as documented."""
    known = list(OPERATORS)
    return sorted(names, key=lambda name: (known.index(name) if name in known else 99, name))


@dataclass(frozen=True, slots=True)
class Lattice:
    """The subsets of the penalties that an audit combined.

    Attributes:
        detectors: names in the order in which subset names list them.
        symbols: what subset names call them.
        sufficient: names of the contracts observed sufficient.
        minimal: names of those that are inclusion-minimal too.
    """

    detectors: tuple[str, ...]
    symbols: tuple[str, ...]
    sufficient: tuple[str, ...]
    minimal: tuple[str, ...]

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> "Lattice":
        """The lattice of a report; its detectors are read off the longest name if not listed."""
        section = report.get("lattice") or {}
        longest = max((members(name) for name in contracts(report)), key=len, default=())
        letters = {symbol: name for name, symbol in SYMBOLS.items()}
        detectors = section.get("detectors") or [letters.get(name, name) for name in longest]
        symbols = [SYMBOLS.get(name, name) for name in detectors]
        made = cls(tuple(detectors), tuple(symbols), (), ())
        return cls(
            made.detectors,
            made.symbols,
            tuple(made.ordered(section.get("sufficient") or ())),
            tuple(made.ordered(section.get("minimal") or ())),
        )

    def added(self, contract: str) -> tuple[str, ...]:
        """Detectors whose penalties `contract` adds to the base reward."""
        named = dict(zip(self.symbols, self.detectors, strict=True))
        return tuple(named.get(symbol, symbol) for symbol in members(contract))

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Contracts in reading order: outcome rewards, subsets by size, `R_full`, then others."""
        place = {symbol: position for position, symbol in enumerate(self.symbols)}

        def key(name: str) -> tuple[int, int, tuple[int, ...], str]:
            if name in LEADING:
                return 0, LEADING.index(name), (), name
            if is_subset(name):
                letters = members(name)
                return 1, len(letters), tuple(place.get(letter, 99) for letter in letters), name
            return (2 if name == FULL else 3), 0, (), name

        return sorted(names, key=key)


def is_subset(contract: str) -> bool:
    """Whether a contract is a point of the lattice: `R0` or `R[...]`."""
    return contract == BASE or SUBSET.fullmatch(contract) is not None


def is_built_in(contract: str) -> bool:
    """Whether every audit has the contract, rather than the user's manifest."""
    return contract in (*LEADING, FULL) or is_subset(contract)


def members(contract: str) -> tuple[str, ...]:
    """Symbols in the name of a subset, none for anything else."""
    match = SUBSET.fullmatch(contract)
    return tuple(match[1].split("+")) if match else ()


def contracts(report: Mapping[str, Any]) -> list[str]:
    """Names of all contracts that the report has figures for."""
    found: dict[str, None] = dict.fromkeys(report.get("mean_reward") or {})
    for section in ("primary", "operators"):
        for selections in (report.get(section) or {}).values():
            found.update(dict.fromkeys(selections.get("oracle_worst") or {}))
    found.update(dict.fromkeys(report.get("contracts") or {}))
    return list(found)
