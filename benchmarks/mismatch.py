"""Whether two ways to the same figures agree: exactly for counts, closely for margins."""

import sys
from typing import Any

import numpy as np
import synthetic
from kernel_engine import SELECTORS, Block, Engine, Sums
from numpy.typing import NDArray

# Margins are float32 sums of five terms, in different orders.
TOLERANCE = 2e-6

Array = NDArray[Any]


class Mismatch:
    """Largest difference of numbers met so far; anything that must be equal and is not ends it."""

    def __init__(self, of: str) -> None:
        self._of = of
        self.largest = 0.0
        self.numbers = 0

    def equal(self, what: str, ours: Any, theirs: Any) -> None:
        """Refuse any difference."""
        self.numbers += np.size(ours)
        if not np.array_equal(ours, theirs):
            sys.exit(f"{self._of}: {what} differ")

    def close(self, what: str, ours: Array, theirs: Array, within: float) -> None:
        """Refuse a difference beyond `within`, and any NaN."""
        self.numbers += np.size(ours)
        apart = float(np.max(np.abs(ours - theirs), initial=0.0))
        if not apart <= within:
            sys.exit(f"{self._of}: {what} differ by {apart:.2g}, more than {within:.2g}")
        self.largest = max(self.largest, apart)

    def __str__(self) -> str:
        return (
            f"{self.numbers:,} numbers equal, margins within {self.largest:.1g}"
            if self.largest
            else f"{self.numbers:,} numbers equal"
        )


def compare_block(
    found: Mismatch, engine: Engine, block: Block, isolated: Array, margins: Array, selected: Array
) -> None:
    """Every pair of a block: isolated [E, b], margins [J, E, b], selected [2, J, b] of theirs."""
    known = engine.describe(engine.place(block))
    trial = engine.attempt(known)
    count = block.rows.stop - block.rows.start
    ours = np.asarray(trial.verdicts.isolated)[:, :count]
    found.equal("isolated pairs", ours, isolated)
    values = np.asarray(engine.margins(known))[engine.alike, :, :count]
    found.close("margins", values[:, ours], margins[:, ours], TOLERANCE)
    some = ours.any(axis=0)
    for name, theirs in zip(SELECTORS, selected, strict=True):
        picked = np.asarray(getattr(trial.selected, name))[engine.alike, :count]
        found.close(name, picked[:, some], theirs[:, some], TOLERANCE)


def compare_sums(
    found: Mismatch,
    engine: Engine,
    ours: dict[str, Sums],
    counted: Array,
    successes: Array,
    totals: Array,
) -> None:
    """Every sum: counted [Q] rows, successes and totals [2, J, Q] of theirs."""
    for s, name in enumerate(SELECTORS):
        sums = ours[name]
        found.equal("rows of questions", sums.rows, np.broadcast_to(counted, sums.rows.shape))
        found.equal("successes", sums.successes, successes[s])
        within = TOLERANCE * synthetic.ROLLOUTS
        found.close("sums", sums.totals / engine.scale, totals[s], within)
