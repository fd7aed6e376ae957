"""Sums per question of every table of one section, as small as they can be kept.

A question's rollouts stand in one block, so what a block gives for it is final: it is taken in the
smallest integers that hold it and never touched again until the table is estimated.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from herald_jax.audit.keys import LARGEST_ONLY, SELECTORS, Key, key_name
from herald_jax.audit.staging import Block, Codes, Mask, Setup
from herald_jax.audit.trials import Kinds, Trial
from herald_jax.kernels import programs
from herald_jax.kernels.sums import QuestionSums, margin_totals

# Sums that the device may still be working on while the host hands it the next.
MOST_WAITING = 64
PARTS = ("questions", "rows", "successes", "totals")

Array = npt.NDArray[Any]


@dataclass
class _Parts:
    """What the blocks gave for one table."""

    largest: npt.NDArray[np.float64]  # [J]
    blocks: list[tuple[Array, ...]] = field(default_factory=list)  # arrays of `PARTS`


class BlockTables:
    """The tables of a section; blocks may come in any order."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._parts: dict[Key, _Parts] = {}
        self._waiting: deque[tuple[Key, Codes, Kinds, QuestionSums]] = deque()

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
            self.add_values((*key, selector), trial.block, values, trial.alike, rows)

    def add_values(
        self, key: Key, block: Block, values: jax.Array, alike: Kinds, rows: Mask
    ) -> None:
        """Count margins of a block's rows.

        Args:
            key: the table.
            block: trajectories.
            values: [D, B].
            alike: int [J], which of the values each column of the table has.
            rows: bool [B] rows of the table.
        """
        if key not in self._parts:
            self._parts[key] = _Parts(np.full(len(alike), -np.inf))
        if not rows.any():
            return
        sums = programs.sum_questions(
            values,
            rows,
            np.float32(self._setup.scale),
            np.float32(self._setup.tie_tolerance),
            width=block.place.width,
        )
        self._waiting.append((key, block.place.groups, alike, sums))
        if len(self._waiting) > MOST_WAITING:
            self._collect(MOST_WAITING // 2)

    def _collect(self, left: int) -> None:
        """Take in the oldest sums, waiting for the device where it is not done with them."""
        while len(self._waiting) > left:
            key, groups, alike, sums = self._waiting.popleft()
            rows = np.asarray(sums.rows)
            counted = np.flatnonzero(rows.any(axis=0) & (groups >= 0))
            if len(counted) == 0:
                continue
            parts = self._parts[key]
            largest = np.asarray(sums.largest)[:, counted].max(axis=1)[alike]
            parts.largest = np.maximum(parts.largest, largest.astype(np.float64))
            if key[0] in LARGEST_ONLY:
                continue
            rows = rows[:, counted]
            # The same for all columns, unless a margin was not finite.
            rows = rows[:1] if (rows == rows[0]).all() else rows[alike]
            successes = np.asarray(sums.successes)[:, counted]
            totals = margin_totals(
                np.asarray(sums.high)[:, counted], np.asarray(sums.low)[:, counted]
            )
            parts.blocks.append(
                (
                    groups[counted],
                    _small(rows),
                    _small(successes)[alike],
                    _small(totals)[alike],
                )
            )

    def finish(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and of every table the largest margin of each column (null: none).

        Of the table with name n: `n.questions` int [g] ascending, `n.rows` [J or 1, g],
        `n.successes` and `n.totals` [J, g], in units of 1 / scale.
        """
        self._collect(0)
        arrays: dict[str, Array] = {}
        largest: dict[str, Any] = {}
        for key, parts in self._parts.items():
            name = key_name(key)
            largest[name] = [float(x) if np.isfinite(x) else None for x in parts.largest]
            if not parts.blocks:
                continue
            questions = np.concatenate([block[0] for block in parts.blocks])
            order = np.argsort(questions)
            wide = max(len(block[1]) for block in parts.blocks)
            rows = [np.broadcast_to(b[1], (wide, b[1].shape[1])) for b in parts.blocks]
            joined = (
                rows,
                [block[2] for block in parts.blocks],
                [block[3] for block in parts.blocks],
            )
            arrays[f"{name}.questions"] = questions[order]
            for part, of_blocks in zip(PARTS[1:], joined, strict=True):
                arrays[f"{name}.{part}"] = np.concatenate(of_blocks, axis=1)[:, order]
        return arrays, largest


def _small(values: npt.NDArray[np.integer[Any]]) -> Array:
    """The same integers in the narrowest type that holds them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kinds = (np.uint8, np.uint16, np.uint32) if low >= 0 else (np.int8, np.int16, np.int32)
    for kind in kinds:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.int64)
