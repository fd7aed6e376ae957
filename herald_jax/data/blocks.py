"""Padded blocks of fixed shapes.

A compiled program belongs to one shape, so the shapes are few: every block has the same number of
trajectories, groups are as wide as a power of two, and lists are padded to a power of two. All
rollouts of a question stand in one block, so that sums per question and per group are made there.
Padding is `PAD` or a neutral value and never a row of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herald_jax.data.ragged import Int32
from herald_jax.types import PAD


def bucket(n: int, buckets: Sequence[int]) -> int:
    """The padded size for n: the smallest bucket that holds it.

    Beyond the largest bucket it is the next power of two, so that the number of sizes stays
    logarithmic whatever the data.

    Raises:
        ValueError: n is negative, or there are no buckets.
    """
    if n < 0 or not buckets:
        raise ValueError("a size from 0 and at least one bucket are needed")
    return min((size for size in buckets if size >= n), default=power_of_two(n))


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least n, and at least 1."""
    return 1 << max(n - 1, 0).bit_length()


@dataclass(frozen=True, eq=False)
class GroupBlock:
    """B = G * M trajectories: the rollouts of G questions, M places for each.

    Attributes:
        rows: int32 [B] row numbers, `PAD` where a group has fewer than M rollouts.
        groups: int32 [G] question numbers, ascending, `PAD` at the end.
        width: M, a power of two.
    """

    rows: Int32
    groups: Int32
    width: int


def group_blocks(question: NDArray[np.int32], block_rows: int) -> list[GroupBlock]:
    """Cut sorted rows into blocks that never divide a question.

    Args:
        question: int32 [n] question number of each row, ascending.
        block_rows: the most trajectories of a block; a multiple of 64 gives one shape to all
            questions of up to 64 rollouts. A question with more rows gets a block of its own.

    Returns:
        Blocks ordered by width, then by question. Each question is in exactly one of them.

    Raises:
        ValueError: `question` is not ascending or `block_rows` is not positive.
    """
    if block_rows < 1:
        raise ValueError(f"a block holds at least one row, not {block_rows}")
    if np.any(np.diff(question) < 0):
        raise ValueError("rows must be sorted by question")
    numbers, first, count = np.unique(question, return_index=True, return_counts=True)
    widths = np.array([power_of_two(int(size)) for size in count], np.int64)
    blocks = []
    for width in np.unique(widths):
        chosen = np.flatnonzero(widths == width)
        per_block = max(block_rows // int(width), 1)
        place = np.arange(width)
        for start in range(0, len(chosen), per_block):
            part = chosen[start : start + per_block]
            rows = np.full((per_block, width), PAD, np.int32)
            rows[: len(part)] = np.where(place < count[part, None], first[part, None] + place, PAD)
            groups = np.full(per_block, PAD, np.int32)
            groups[: len(part)] = numbers[part]
            blocks.append(GroupBlock(rows.reshape(-1), groups, int(width)))
    return blocks


@dataclass(frozen=True)
class Widths:
    """Padded lengths of the lists of a block: R, C and S of `herald_jax.types.arrays`."""

    retrieved: int
    citations: int
    support: int
