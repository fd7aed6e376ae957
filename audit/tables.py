"""The tables of a report: which rows each is over, and their cells (SPEC sections 9 and 12)."""

from collections import deque
from typing import Any

import jax
import numpy as np

from herald_jax.audit.estimates import EMPTY, Cell, Estimator, Tally
from herald_jax.audit.staging import Block, Codes, Mask, Setup
from herald_jax.audit.trials import Trial
from herald_jax.kernels import programs
from herald_jax.kernels.sums import QuestionSums

# The kind of a table, then what tells it from others of its kind.
Key = tuple[str, ...]
FIRST_VISIBLE, ORACLE_WORST = "first_visible", "oracle_worst"
# Kinds of table of which only the largest margin is wanted.
CERTIFICATE, CLOSED_CORPUS = "certificate", "closed_corpus"
# Sums that the device may still be working on while the host hands it the next.
MOST_WAITING = 64
SELECTORS = (FIRST_VISIBLE, ORACLE_WORST)


class Tables:
    """Sums per question of every table, by key; blocks may come in any order."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._tallies: dict[Key, Tally] = {}
        self._cells: dict[Key, list[Cell]] = {}
        self._waiting: deque[tuple[Key, Codes, QuestionSums]] = deque()
        self._estimator = Estimator(setup.manifest.statistics, setup.scale)

    def add(self, key: Key, trial: Trial, rows: Mask) -> None:
        """Count some rows of a block in a table, under both selectors and all contracts.

        Args:
            key: the table.
            trial: an operator's outcome on a block.
            rows: bool [B] rows of the table; those without an isolated pair have no margin and
                never count.
        """
        picked = trial.selected
        for selector, values in zip(
            SELECTORS, (picked.first_visible, picked.oracle_worst), strict=True
        ):
            self.add_values((*key, selector), trial.block, values, rows)

    def add_values(self, key: Key, block: Block, values: jax.Array, rows: Mask) -> None:
        """Count margins of a block's rows: values [columns, B]."""
        if key not in self._tallies:
            self._tallies[key] = Tally(len(values), len(self._setup.pool.question_ids))
        if not rows.any():
            return
        sums = programs.sum_questions(
            values,
            rows,
            np.float32(self._setup.scale),
            np.float32(self._setup.tie_tolerance),
            width=block.place.width,
        )
        self._waiting.append((key, block.place.groups, sums))
        if len(self._waiting) > MOST_WAITING:
            self._collect(MOST_WAITING // 2)

    def _collect(self, left: int) -> None:
        """Take in the oldest sums, waiting for the device where it is not done with them."""
        while len(self._waiting) > left:
            key, groups, sums = self._waiting.popleft()
            self._tallies[key].add(groups, sums)

    def keys(self) -> list[Key]:
        """Every table whose cells a report shows, and its selector."""
        return [key for key in self._tallies if key[0] not in (CERTIFICATE, CLOSED_CORPUS)]

    def values_of(self, kind: str) -> list[str]:
        """The second parts of the keys of one kind of table, sorted."""
        return sorted({key[1] for key in self._tallies if key[0] == kind})

    def tally(self, key: Key) -> Tally:
        """The sums of a table: the kind, what tells it apart, the selector.

        Raises:
            KeyError: no rows were ever offered to it.
        """
        self._collect(0)
        return self._tallies[key]

    def largest(self, key: Key, selector: str, contract: str) -> float | None:
        """The largest margin of a table, without the estimates of a cell; None without rows."""
        self._collect(0)
        tally = self._tallies.get((*key, selector))
        if tally is None:
            return None
        margin = float(tally.largest[self._setup.contracts.index(contract)])
        return margin if np.isfinite(margin) else None

    def columns(self, key: Key) -> list[Cell]:
        """Cells of a table, one a column; computed once."""
        self._collect(0)
        if key not in self._cells:
            tally = self._tallies.get(key)
            self._cells[key] = [] if tally is None else self._estimator.cells(tally)
        return self._cells[key]

    def table(self, key: Key, selectors: tuple[str, ...] = SELECTORS) -> dict[str, dict[str, Cell]]:
        """`{selector: {contract: CELL}}` of a table."""
        names = self._setup.contracts.names
        found = {}
        for selector in selectors:
            cells = self.columns((*key, selector)) or [EMPTY] * len(names)
            found[selector] = dict(zip(names, cells, strict=True))
        return found

    def cell(self, key: Key, selector: str, contract: str) -> dict[str, Any]:
        """One cell."""
        return self.table(key, (selector,))[selector][contract]
