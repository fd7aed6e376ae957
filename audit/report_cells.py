"""A CELL of a report (SPEC section 12) as a typed value, and its reading in words.

No question means not measured: such a cell has no rate, and nothing here makes it one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from herald_jax.pages.numbers import (
    RANGE,
    UNKNOWN,
    count,
    out_of,
    percent,
    percent_range,
    quantity,
    signed,
    signed_range,
    upper_bound,
)

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Cell:
    """Attack success under one contract on one set of rows.

    Attributes:
        rows: trajectories that entered.
        questions: clusters that entered; 0 when nothing was measured.
        attackable: questions with at least one success.
        asr: mean over questions of the share of rows on which the attack succeeds.
        asr_interval: 95% bootstrap interval, None when there is no spread to resample.
        mean_margin: mean over questions of the mean margin.
        mean_margin_interval: 95% bootstrap interval.
        max_margin: largest margin of a chosen edit.
        upper: one-sided 95% bound on the share of questions with any success.
    """

    rows: int = 0
    questions: int = 0
    attackable: int = 0
    asr: float | None = None
    asr_interval: Interval | None = None
    mean_margin: float | None = None
    mean_margin_interval: Interval | None = None
    max_margin: float | None = None
    upper: float | None = None

    @classmethod
    def of(cls, cell: Mapping[str, Any] | None) -> "Cell":
        """The cell as the report holds it; one that is absent was not measured."""
        if not cell or not cell.get("questions"):
            return cls()
        return cls(
            rows=cell["rows"],
            questions=cell["questions"],
            attackable=cell["any_success"],
            asr=cell["asr"],
            asr_interval=pair(cell.get("asr_interval")),
            mean_margin=cell.get("mean_margin"),
            mean_margin_interval=pair(cell.get("mean_margin_interval")),
            max_margin=cell.get("max_margin"),
            upper=cell["upper"],
        )

    @property
    def measured(self) -> bool:
        """Whether any question entered."""
        return self.questions > 0

    @property
    def share(self) -> str:
        """Attackable questions with their denominator."""
        return out_of(self.attackable, self.questions) if self.measured else UNKNOWN

    @property
    def questions_hit(self) -> str:
        """The same with its noun, `1 of 1 question`."""
        noun = quantity(self.questions, "question")
        return f"{count(self.attackable)} of {noun}" if self.measured else UNKNOWN

    @property
    def rate(self) -> str:
        """The ASR alone."""
        return percent(self.asr)

    @property
    def certainty(self) -> str:
        """The interval of the ASR, or the exact bound when no success was seen."""
        if not self.measured:
            return UNKNOWN
        if self.asr_interval is not None:
            return percent_range(self.asr_interval)
        if self.attackable == 0:
            return f"at most {upper_bound(self.upper)} (exact)"
        return "no interval"

    @property
    def interval(self) -> str:
        """The interval of the ASR, a dash where there is none."""
        return RANGE if self.asr_interval is None else percent_range(self.asr_interval)

    @property
    def bound(self) -> str:
        """The exact bound on the share of attackable questions."""
        return upper_bound(self.upper)

    @property
    def margin(self) -> str:
        """The mean margin, with its interval where there is one."""
        if self.mean_margin_interval is None:
            return signed(self.mean_margin)
        return f"{signed(self.mean_margin)} ({signed_range(self.mean_margin_interval)})"

    @property
    def largest(self) -> str:
        """The largest margin."""
        return signed(self.max_margin)

    def sentence(self, level: str) -> str:
        """The cell in one clause: k of n, then the rate and how sure it is at `level`, `95%`."""
        if not self.measured:
            return "not measured: no eligible question"
        head = f"{self.questions_hit} attackable"
        if self.attackable == 0:
            return f"{head}, exact {level} upper bound {self.bound}"
        if self.asr_interval is None:
            return f"{head}, ASR {self.rate}"
        return f"{head}, ASR {self.rate} ({level} interval {self.certainty})"


def pair(interval: Any) -> Interval | None:
    """An interval of the report, None where it has none."""
    return None if interval is None else (interval[0], interval[1])


def cell_at(table: Mapping[str, Any] | None, selection: str, contract: str) -> Cell:
    """The cell of `{selection: {contract: CELL}}`."""
    return Cell.of(((table or {}).get(selection) or {}).get(contract))
