"""Encoded trajectories as arrays: taken, joined, sorted, and packed for a store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from herald_jax.data.chunk import Chunk
from herald_jax.data.ragged import Int32, Ragged

# What every row has. The `*_end` fields say where its part of a list of lists ends in the arrays
# that are packed beside it.
ROW = np.dtype(
    [
        ("line", "<i8"),
        ("rollout", "<i8"),
        ("em", "<f8"),
        ("f1", "<f8"),
        ("file", "<i4"),
        ("question", "<i4"),
        ("model", "<i4"),
        ("pool", "<i4"),
        ("searches", "<i4"),
        ("invalid", "<i4"),
        ("answer_tokens", "<i4"),
        ("malformed", "<i4"),
        ("name_end", "<i4"),
        ("retrieved_end", "<i4"),
        ("citations_end", "<i4"),
        ("candidates_end", "<i4"),
        ("terms_end", "<i4"),
        ("candidates_logged", "?"),
        ("selected", "?"),
        ("repeated", "?"),
        ("is_gold", "?"),
    ],
    align=True,
)
LISTS = ("retrieved", "citations", "candidates", "terms")
Table = NDArray[Any]


class Stored(Protocol):
    """Named arrays that can be read in part."""

    def part(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Items first .. last - 1 of an array."""


@dataclass(frozen=True, eq=False)
class Rows:
    """n trajectories.

    Attributes:
        table: structured [n] of type `ROW`; `model` and `pool` index names, of the chunk in a
            store and of the pool in a section;
            `file` its trajectory files. Its `*_end` fields mean nothing but when packed.
        names: trajectory ids, UTF-8.
        retrieved: n lists of id codes that the executed searches returned, repeats kept.
        citations: n lists of id codes, repeats kept.
        candidates: n lists of id codes that the log proposes for laundering.
        terms: n lists of term ids of question and answer, for generators that search.
    """

    table: Table
    names: pa.LargeBinaryArray
    retrieved: Ragged
    citations: Ragged
    candidates: Ragged
    terms: Ragged

    def __len__(self) -> int:
        return len(self.table)

    @property
    def lists(self) -> tuple[Ragged, ...]:
        """The lists, in the order of `LISTS`."""
        return tuple(getattr(self, name) for name in LISTS)

    @property
    def question(self) -> Int32:
        """int32 [n] question numbers."""
        return self.table["question"]

    def name(self, row: int) -> str:
        """The trajectory id of a row."""
        return self.names[row].as_py().decode()

    def take(self, rows: NDArray[np.integer[Any]]) -> "Rows":
        """These rows, in this order."""
        return Rows(
            self.table[rows],
            self.names.take(pa.array(rows)),
            *(lists.take(rows) for lists in self.lists),
        )

    def sorted(self) -> "Rows":
        """By question, rollout and trajectory id in code-point order."""
        question, rollout = self.table["question"], self.table["rollout"]
        order = np.lexsort((rollout, question))
        same = (np.diff(question[order]) == 0) & (np.diff(rollout[order]) == 0)
        if same.any():
            # UTF-8 bytes have the order of code points.
            keys = {"question": question, "rollout": rollout, "name": self.names}
            by = [(name, "ascending") for name in keys]
            order = pc.sort_indices(pa.table(keys), sort_keys=by).to_numpy()
        if (np.diff(order) == 1).all() and len(order) and order[0] == 0:
            return self
        return self.take(order)

    def packed(self) -> dict[str, NDArray[Any]]:
        """Arrays from which `unpacked` makes the same rows again."""
        table = self.table.copy()
        offsets, values = _binary(self.names)
        table["name_end"] = offsets[1:]
        packed = {"rows": table, "names": values}
        for name in LISTS:
            lists: Ragged = getattr(self, name)
            table[f"{name}_end"] = lists.offsets[1:]
            packed[name] = lists.values
        return packed


def rows_of(chunk: Chunk, file: int, terms: Ragged) -> Rows:
    """The rows of a chunk in the order of the file.

    Args:
        chunk: m encoded trajectories.
        file: number of the file.
        terms: m lists of term ids.
    """
    table = np.zeros(len(chunk), ROW)
    for name in ROW.names or ():
        if not name.endswith("_end") and name != "file":
            table[name] = getattr(chunk, name)
    table["file"] = file
    offsets = np.concatenate([[0], chunk.name_ends]).astype(np.int64)
    names = _names(offsets, chunk.name_bytes)
    return Rows(table, names, chunk.retrieved, chunk.citations, chunk.candidates, terms)


def unpacked(stored: Stored, first: int, last: int) -> Rows:
    """Rows first .. last - 1 of those that were packed."""
    # A structured type comes back from a file as plain bytes.
    before = stored.part("rows", first - 1, first).view(ROW) if first else np.zeros(1, ROW)
    table = stored.part("rows", first, last).view(ROW)

    def offsets(name: str) -> tuple[NDArray[np.int64], int, int]:
        start = int(before[name][0]) if first else 0
        ends = table[name].astype(np.int64)
        return np.concatenate([[0], ends - start]), start, int(ends[-1]) if len(ends) else start

    lists = []
    for name in LISTS:
        places, start, end = offsets(f"{name}_end")
        lists.append(Ragged(stored.part(name, start, end), places))
    places, start, end = offsets("name_end")
    return Rows(table, _names(places, stored.part("names", start, end)), *lists)


def joined(parts: Sequence[Rows]) -> Rows:
    """All rows, one part after the other."""
    if not parts:
        nothing = Ragged.of_lists([])
        empty = pa.array([], pa.large_binary())
        return Rows(np.zeros(0, ROW), empty, nothing, nothing, nothing, nothing)
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.table for part in parts]),
        pa.concat_arrays([part.names for part in parts]),
        *(Ragged.joined([getattr(part, name) for part in parts]) for name in LISTS),
    )


def _names(offsets: NDArray[np.int64], values: NDArray[np.uint8]) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _binary(names: pa.LargeBinaryArray) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets from 0 and the bytes that they cut."""
    if len(names) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    _, places, values = names.buffers()
    offsets = np.frombuffer(places, np.int64, len(names) + 1, offset=8 * names.offset)
    data = np.frombuffer(values, np.uint8) if values else np.zeros(0, np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]
