"""Lists of strings of different lengths, as Arrow strings and offsets."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from herald_jax.data import arrow_values

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StringLists:
    """k lists of strings.

    Attributes:
        values: the strings of all lists in order, plain or dictionary encoded, none of them null.
        offsets: int64 [k + 1] where each list begins, from 0.
        logged: bool [k] false for a list that was not logged; it is empty then.
    """

    values: pa.Array
    offsets: Int64
    logged: Bool

    def __len__(self) -> int:
        return len(self.logged)

    @classmethod
    def of(cls, lists: Sequence[list[str] | None]) -> "StringLists":
        """The same lists, None for one that was not logged."""
        lengths = np.array([len(items) if items else 0 for items in lists], np.int64)
        return cls(
            ids_of(list(chain.from_iterable([items for items in lists if items]))),
            starts(lengths),
            np.array([items is not None for items in lists], bool),
        )

    @classmethod
    def of_arrow(cls, array: pa.Array) -> "StringLists":
        """An Arrow column of lists of ids.

        Raises:
            IrregularError: it is of another kind.
        """
        items, offsets, logged = arrow_values.lists(array)
        return cls(arrow_values.ids(items), offsets, logged)

    @classmethod
    def joined(cls, parts: Sequence["StringLists"]) -> "StringLists":
        """All lists of the parts."""
        return cls(
            arrow_values.joined([part.values for part in parts]),
            join_offsets([part.offsets for part in parts]),
            np.concatenate([part.logged for part in parts]),
        )

    def take(self, rows: Int64) -> "StringLists":
        """Some lists, in the order given."""
        lengths = np.diff(self.offsets)[rows]
        places = spread(self.offsets[:-1][rows], lengths)
        return StringLists(
            arrow_values.taken(self.values, places), starts(lengths), self.logged[rows]
        )


def ids_of(names: list[str]) -> pa.Array:
    """Arrow strings of ids; one that is an integer stands for its digits."""
    try:
        return pa.array(names, pa.string())
    except pa.ArrowTypeError:
        return pa.array(list(map(str, names)), pa.string())


def starts(lengths: Int64) -> Int64:
    """int64 [k + 1]: where each of k lists begins."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def join_offsets(parts: Sequence[Int64]) -> Int64:
    """Offsets of lists that are laid one after the other."""
    return starts(np.concatenate([np.diff(part) for part in parts]))


def spread(begins: Int64, lengths: Int64) -> Int64:
    """int64 [total]: the places of all entries of lists that begin at `begins`."""
    offsets = starts(lengths)
    return np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
