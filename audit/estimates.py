"""From sums per question to the cells of a report: rates, means, intervals, exact bounds.

The sampling unit is the question (SPEC section 7). Every estimate of a table comes from the same
clusters and the same bootstrap draws.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from herald_jax.kernels.bootstrap import bootstrap_intervals, point_estimates
from herald_jax.kernels.bounds import clopper_pearson_upper
from herald_jax.kernels.sums import QuestionSums, margin_totals
from herald_jax.manifest import Statistics

Cell = dict[str, Any]
EMPTY: Cell = {"questions": 0}


class Tally:
    """Sums per question of one table, over the columns of its contracts and selectors."""

    def __init__(self, columns: int, questions: int) -> None:
        self.rows = np.zeros((columns, questions), np.int32)
        self.successes = np.zeros((columns, questions), np.int32)
        self.totals = np.zeros((columns, questions), np.int64)
        self.largest = np.full(columns, -np.inf)

    def add(self, groups: npt.NDArray[np.int32], sums: QuestionSums) -> None:
        """Add the sums of a block; `groups`: question of each group, negative for padding."""
        count = int((groups >= 0).sum())  # padding stands behind
        if count == 0:
            return
        at: slice | npt.NDArray[np.int32] = groups[:count]
        if groups[count - 1] - groups[0] == count - 1:
            # Questions of one width mostly follow one another: a slice adds in place.
            at = slice(int(groups[0]), int(groups[0]) + count)
        self.rows[:, at] += np.asarray(sums.rows)[:, :count]
        self.successes[:, at] += np.asarray(sums.successes)[:, :count]
        self.totals[:, at] += margin_totals(np.asarray(sums.high), np.asarray(sums.low))[:, :count]
        largest = np.asarray(sums.largest)[:, :count].max(axis=1, initial=-np.inf)
        self.largest = np.maximum(self.largest, largest.astype(np.float64))


@dataclass(frozen=True)
class Estimator:
    """Turns tallies into cells.

    Attributes:
        statistics: settings.
        scale: fixed point of the margins, units per 1.
    """

    statistics: Statistics
    scale: float

    def cells(self, tally: Tally) -> list[Cell]:
        """One cell for each column of a tally; columns without a question are `questions: 0`."""
        cells: list[Cell] = [EMPTY] * len(tally.rows)
        # Columns that saw the same rows share their clusters and so their draws: all of them,
        # unless some margins were not finite.
        alike: dict[bytes, list[int]] = {}
        for column, rows in enumerate(tally.rows):
            alike.setdefault(rows.tobytes(), []).append(column)
        for columns in alike.values():
            for column, cell in zip(columns, self._alike(tally, columns), strict=True):
                cells[column] = cell
        return cells

    def _alike(self, tally: Tally, columns: list[int]) -> list[Cell]:
        seen = np.flatnonzero(tally.rows[columns[0]])
        if len(seen) == 0:
            return [EMPTY] * len(columns)
        rows = tally.rows[columns[0], seen].astype(np.float64)
        at = np.ix_(np.array(columns), seen)
        successes = tally.successes[at].T.astype(np.float64)
        totals = tally.totals[at].T / self.scale
        both = np.concatenate([successes, totals], axis=1)
        by_row = self.statistics.weighting == "row"
        if not by_row:
            both = both / rows[:, None]
        weights = rows if by_row else None
        # Rounded once: the very number at which an interval without spread has both its ends.
        points = point_estimates(both, weights)
        intervals = self._intervals(both, weights)
        half, level = len(columns), self.statistics.level
        out = []
        for i, column in enumerate(columns):
            any_success = int(np.count_nonzero(successes[:, i]))
            out.append(
                {
                    "rows": int(rows.sum()),
                    "questions": len(seen),
                    "asr": float(points[i]),
                    "asr_interval": intervals[i] if any_success else None,
                    "mean_margin": float(points[half + i]),
                    "mean_margin_interval": intervals[half + i],
                    "max_margin": float(tally.largest[column]),
                    "any_success": any_success,
                    "upper": clopper_pearson_upper(any_success, len(seen), level=level),
                }
            )
        return out

    def _intervals(
        self, values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64] | None
    ) -> list[list[float] | None]:
        if len(values) < 2:
            return [None] * values.shape[1]
        ends = bootstrap_intervals(
            values,
            weights,
            seed=self.statistics.seed,
            replicates=self.statistics.replicates,
            level=self.statistics.level,
        )
        return [[float(low), float(high)] for low, high in ends]
