"""Rows of small pools as the pytrees of the kernels, padded just as far as they need."""

import numpy as np

from herald_jax.data.blocks import Widths
from herald_jax.pool.blocks import oracle_block, visible_block
from herald_jax.pool.pool import Pool
from herald_jax.types import PAD, Oracle, Visible


def widths_of(pool: Pool, rows: np.ndarray | None = None) -> Widths:
    """The longest lists of some rows, at least 1; of all rows by default."""
    rows = np.arange(len(pool.rows)) if rows is None else rows[rows != PAD]
    lists = pool.rows.take(rows)

    def longest(lengths: np.ndarray) -> int:
        return int(lengths.max(initial=1))

    return Widths(
        retrieved=longest(lists.retrieved.lengths),
        citations=longest(lists.citations.lengths),
        support=longest(pool.questions.support.lengths[lists.question]),
    )


def visible_of(pool: Pool, rows: np.ndarray, widths: Widths | None = None) -> Visible:
    """The visible side of these rows."""
    return visible_block(pool.rows, rows, widths or widths_of(pool, rows))


def oracle_of(pool: Pool, rows: np.ndarray, widths: Widths | None = None) -> Oracle:
    """Their oracle side."""
    return oracle_block(pool.rows, pool.questions, rows, widths or widths_of(pool, rows))
