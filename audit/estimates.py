"""From sums per question to the cells of a report: rates, means, intervals, exact bounds.

The sampling unit is the question (SPEC section 7). Every estimate of a table comes from the same
clusters; each is given its own interval, and columns need not share draws.
"""

import hashlib
from collections.abc import Sequence
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
        # Columns that saw the same rows share their clusters: all of them,
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
        parts = ((tally.successes, 1.0), (tally.totals, self.scale))
        sums = [(table[column], unit) for table, unit in parts for column in columns]
        both, which = distinct_columns(sums, seen)
        by_row = self.statistics.weighting == "row"
        if not by_row:
            both /= rows[:, None]
        weights = rows if by_row else None
        # Rounded once: the very number at which an interval without spread has both its ends.
        points = point_estimates(both, weights)[which]
        of_distinct = self._intervals(both, weights)
        intervals = [of_distinct[at] for at in which]
        half, level = len(columns), self.statistics.level
        out = []
        for i, column in enumerate(columns):
            any_success = int(np.count_nonzero(tally.successes[column, seen]))
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


def distinct_columns(
    columns: Sequence[tuple[npt.NDArray[np.integer[Any]], float]], seen: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.float64], list[int]]:
    """Columns of numbers, those that are equal once: many contracts have the same sums.

    Args:
        columns: D columns of integers [g], each with its units per 1.
        seen: int [n], the questions that count.

    Returns:
        float64 [n, U], and for each of the D columns which of the U it is.
    """
    numbers: dict[tuple[float, str, bytes], int] = {}
    kept: list[tuple[npt.NDArray[np.integer[Any]], float]] = []
    which = []
    for values, unit in columns:
        part = np.ascontiguousarray(values[seen])
        key = (unit, part.dtype.str, hashlib.sha256(part.data).digest())
        if key not in numbers:
            numbers[key] = len(kept)
            kept.append((values, unit))
        which.append(numbers[key])
    out = np.empty((len(seen), len(kept)), order="F")
    for at, (values, unit) in enumerate(kept):
        np.divide(values[seen], unit, out=out[:, at])
    return out, which
