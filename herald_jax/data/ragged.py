"""Lists of different lengths as two arrays, and their padding into blocks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herald_jax.data.aligned import aligned
from herald_jax.types import PAD

Int32 = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Ragged:
    """n lists of int32, one after the other.

    Attributes:
        values: int32 [total] all lists in order.
        offsets: int64 [n + 1] where each list begins; the last is the total.
    """

    values: Int32
    offsets: NDArray[np.int64]

    @classmethod
    def of_lengths(cls, values: Int32, lengths: Sequence[int] | NDArray[np.integer]) -> "Ragged":
        """Cut `values` into lists of the given lengths."""
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(np.asarray(values, np.int32), offsets)

    @classmethod
    def of_lists(cls, lists: Sequence[Sequence[int]]) -> "Ragged":
        """The same lists, as arrays."""
        values = np.array([value for items in lists for value in items], np.int32)
        return cls.of_lengths(values, [len(items) for items in lists])

    @classmethod
    def joined(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """All lists, one part after the other."""
        ends = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
        values = [part.values for part in parts]
        return cls(np.concatenate(values), np.concatenate([*offsets, ends[-1:]]))

    @classmethod
    def side_by_side(cls, left: "Ragged", right: "Ragged") -> "Ragged":
        """n lists: each of `left` with the one of `right` behind it."""
        n = len(left)
        both = cls.joined([left, right])
        pairs = np.stack([np.arange(n), np.arange(n) + n], axis=1).reshape(-1)
        return both.take(pairs).concatenated(np.arange(0, 2 * n + 1, 2))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Int32:
        """The list of one row, int32 [its length]."""
        if not 0 <= row < len(self):
            raise IndexError(f"no row {row} of {len(self)}")
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64 [n]."""
        return np.diff(self.offsets)

    def take(self, rows: Sequence[int] | NDArray[np.integer]) -> "Ragged":
        """The lists of the given rows, in that order; a row may be taken more than once.

        Raises:
            IndexError: a row is not in 0 .. n-1. There is no row `PAD`.
        """
        rows = np.asarray(rows, np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < len(self)):
            raise IndexError(f"rows must be in 0 .. {len(self) - 1}")
        lengths = self.lengths[rows]
        out = Ragged.of_lengths(np.empty(0, np.int32), lengths)
        within = np.arange(out.offsets[-1]) - np.repeat(out.offsets[:-1], lengths)
        return Ragged(
            self.values[np.repeat(self.offsets[:-1][rows], lengths) + within], out.offsets
        )

    def concatenated(self, outer: NDArray[np.int64]) -> "Ragged":
        """Join neighbouring lists: outer int64 [m + 1] says where each run of lists begins."""
        return Ragged(self.values, self.offsets[outer])

    def to_padded(self, rows: Sequence[int] | NDArray[np.integer], width: int) -> Int32:
        """Lists of rows as a block, rows along the last axis.

        Args:
            rows: [B] row numbers; `PAD` stands for no row and gives a column of `PAD`.
            width: W, at least the longest of the lists.

        Returns:
            int32 [W, B], `PAD` beyond the end of each list.

        Raises:
            IndexError: a row is neither `PAD` nor in 0 .. n-1.
            ValueError: a list is longer than `width`.
        """
        rows = np.asarray(rows, np.int64)
        real = np.flatnonzero(rows != PAD)
        lists = self.take(rows[real])
        lengths = lists.lengths
        if lengths.size and lengths.max() > width:
            raise ValueError(f"a list of {lengths.max()} does not fit in {width}")
        counts = np.zeros(len(rows), np.int64)
        counts[real] = lengths
        by_row = np.full((len(rows), width), PAD, np.int32)
        by_row[np.arange(width) < counts[:, None]] = lists.values
        out = aligned((width, len(rows)), np.int32)
        out[...] = by_row.T
        return out
