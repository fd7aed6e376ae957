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
from herald_jax.manifest import Statistics

Cell = dict[str, Any]
EMPTY: Cell = {"questions": 0}


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums per question of one table, over J columns (contracts) and g questions.

    Attributes:
        rows: integers [J, g], or [1, g] where all columns have the same rows.
        successes: integers [J, g].
        totals: integers [J, g] margins in units of 1 / scale.
        largest: float64 [J] largest margin, -inf without rows.
    """

    rows: npt.NDArray[np.integer[Any]]
    successes: npt.NDArray[np.integer[Any]]
    totals: npt.NDArray[np.integer[Any]]
    largest: npt.NDArray[np.float64]


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
        cells: list[Cell] = [EMPTY] * len(tally.successes)
        # Columns that saw the same rows share their clusters and so their draws: all of them,
        # unless some margins were not finite.
        alike: dict[bytes, list[int]] = {}
        for column in range(len(cells)):
            rows = tally.rows[column if len(tally.rows) > 1 else 0]
            alike.setdefault(rows.tobytes(), []).append(column)
        for columns in alike.values():
            for column, cell in zip(columns, self._alike(tally, columns), strict=True):
                cells[column] = cell
        return cells

    def _alike(self, tally: Tally, columns: list[int]) -> list[Cell]:
        of_column = tally.rows[columns[0] if len(tally.rows) > 1 else 0]
        seen = np.flatnonzero(of_column)
        if len(seen) == 0:
            return [EMPTY] * len(columns)
        rows = of_column[seen].astype(np.float64)
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
