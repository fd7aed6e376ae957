"""On what, with what and how surely a report measured: what stands beside every *observed*."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from herald_jax.pages.numbers import count, percent, quantity


@dataclass(frozen=True, slots=True)
class Scope:
    """The finite set that a report speaks of.

    Attributes:
        rows: trajectories after setting aside.
        questions: of these rows.
        common_rows: rows isolated-eligible for every primary operator.
        common_questions: of the common rows.
        passages: of the closed corpus, None when the report does not say.
        selection: which rows were audited, `all` unless the manifest names another.
        generators: each candidate generator with its budget, the primary one first.
        level: confidence of intervals and bounds, `95%`.
        by_row: whether rows, not questions, weigh alike.
        tie_tolerance: an attack succeeds at a margin of at least minus this.
    """

    rows: int
    questions: int
    common_rows: int
    common_questions: int
    passages: int | None
    selection: str
    generators: tuple[str, ...]
    level: str
    by_row: bool
    tie_tolerance: float

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> "Scope":
        """The scope of a report; settings that it does not hold are the defaults of the SPEC."""
        manifest = report.get("manifest") or {}
        statistics = manifest.get("statistics") or {}
        common = report.get("common") or {}
        return cls(
            rows=report.get("rows") or 0,
            questions=report.get("questions") or 0,
            common_rows=common.get("rows") or 0,
            common_questions=common.get("questions") or 0,
            passages=(report.get("corpus") or {}).get("passages"),
            selection=(manifest.get("data") or {}).get("selection", "all"),
            generators=tuple(generators(report)),
            level=percent(statistics.get("level", 0.95), 1).replace(".0%", "%"),
            by_row=statistics.get("weighting") == "row",
            tie_tolerance=statistics.get("tie_tolerance", 1e-6),
        )

    @property
    def corpus(self) -> str:
        """The corpus with its size, where it is known."""
        if self.passages is None:
            return "a closed corpus"
        return f"a closed corpus of {quantity(self.passages, 'passage')}"

    @property
    def primary_generator(self) -> str:
        """The generator of the primary tables."""
        return self.generators[0] if self.generators else "the primary generator"

    @property
    def sentence(self) -> str:
        """What the figures are about, in one sentence."""
        rows = "" if self.selection == "all" else f" (selection `{self.selection}`)"
        return (
            f"Observed on {quantity(self.common_questions, 'question')} "
            f"({quantity(self.common_rows, 'trajectory', 'trajectories')} eligible for every "
            f"primary attack, of {count(self.rows)} audited{rows}), with laundering candidates "
            f"from {self.primary_generator}, in {self.corpus}: a finite-set result, not a proof."
        )


def generators(report: Mapping[str, Any]) -> list[str]:
    """Each generator with its budget, the primary one first."""
    listed = report.get("generators") or {}
    budgets = report.get("budgets") or {}
    settings = (report.get("manifest") or {}).get("generators") or {}
    if not any(described.get("role") == "primary" for described in listed.values()):
        primary = settings.get("primary", "lexical")
        listed = {primary: {"role": "primary", "k": settings.get("primary_k", 8)}, **listed}
    named = sorted(listed, key=lambda name: listed[name].get("role") != "primary")
    named += [name for name in budgets if name not in listed]
    return [with_budget(name, listed.get(name) or {}, budgets.get(name) or {}) for name in named]


def with_budget(name: str, described: Mapping[str, Any], budgets: Mapping[str, Any]) -> str:
    """`lexical (K = 8)`, `bm25 (K = 1, 2, 4)` or `exhaustive (every passage)`."""
    sizes = sorted((key for key in budgets if key.isdigit()), key=int)
    if described.get("role") == "primary" and described.get("k") is not None:
        sizes = [str(described["k"]), *(size for size in sizes if size != str(described["k"]))]
    if sizes:
        return f"{name} (K = {', '.join(sizes)})"
    return f"{name} (every passage)" if "all" in budgets else name
