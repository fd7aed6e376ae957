"""Encoded rows out of Parquet: decoded when a section asks for them, while another is audited.

Rows lie sorted by question, so that a section is in one chunk or in a few neighbours, and sections
are asked for in their order: the last few chunks are kept, and nothing else.
"""

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from herald_jax.data.ragged import Int32, Ragged
from herald_jax.pool.encoded_parquet import NAMED, SCALARS, SCHEMA
from herald_jax.pool.rows import LISTS, ROW, Rows
from herald_jax.pool.sections import Names

_KEPT = 4  # chunks
Arrays = dict[str, NDArray[Any]]


class ParquetChunks:
    """The chunks of a pool's files of rows, as entries of a store that only reads.

    Args:
        models: names of models of the pool.
        pools: names of its pools.
        terms: whether term ids are wanted; else the lists are empty.
    """

    def __init__(self, models: Names, pools: Names, terms: bool) -> None:
        names = {"model": models, "pool": pools}
        columns = [name for name in SCHEMA.names if terms or name != "terms"]
        self._decode = lru_cache(_KEPT)(partial(_decoded, names=names, columns=columns))

    def of(self, path: Path) -> list["Chunk"]:
        """The chunks of a file that `ParquetRows` wrote.

        Raises:
            OSError: it cannot be read.
            pa.ArrowInvalid: it is not a Parquet file.
        """
        file = pq.read_metadata(path)
        return [Chunk(self, path, group) for group in range(file.num_row_groups)]

    def decode(self, path: Path, group: int) -> Arrays:
        """The arrays of one chunk (`Rows.packed`); `model` and `pool` index those of the pool."""
        return self._decode(path, group)


class Chunk:
    """One chunk; `pool.store.Entry`."""

    def __init__(self, chunks: ParquetChunks, path: Path, group: int) -> None:
        self.meta: dict[str, Any] = {}
        self._chunks = chunks
        self._path = path
        self._group = group

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return ["rows", "names", "question", *LISTS]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def length(self, name: str) -> int:
        """Size of an array."""
        return len(self.read(name))

    def read(self, name: str) -> NDArray[Any]:
        """A whole array.

        Raises:
            OSError: the file cannot be read any more.
        """
        if name == "question":  # asked for of all chunks, before their rows are
            with pq.ParquetFile(self._path) as file:
                column = file.read_row_group(self._group, [name])[name]
            return np.asarray(column.to_numpy(), np.int32)
        return self._chunks.decode(self._path, self._group)[name]

    def part(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Items first .. last - 1 of an array; errors as `read`."""
        return self.read(name)[first:last]


def _decoded(path: Path, group: int, *, names: dict[str, Names], columns: list[str]) -> Arrays:
    with pq.ParquetFile(path) as file:
        table = file.read_row_group(group, columns)
    return _rows(table, names).packed()


def _rows(group: pa.Table, names: dict[str, Names]) -> Rows:
    columns = {name: group[name].combine_chunks() for name in group.column_names}
    table = np.zeros(len(group), ROW)
    for name in NAMED:
        column = columns[name]
        numbers = names[name].numbers(column.dictionary.to_pylist())
        table[name] = numbers[column.indices.to_numpy()]
    for name in SCALARS:
        table[name] = columns[name].to_numpy(zero_copy_only=False)
    ids = columns["trajectory_id"].cast(pa.large_string()).cast(pa.large_binary())
    none = Ragged(np.zeros(0, np.int32), np.zeros(len(group) + 1, np.int64))
    lists = (_lists(columns[name]) if name in columns else none for name in LISTS)
    return Rows(table, ids, *lists)


def _lists(column: pa.ListArray) -> Ragged:
    offsets: NDArray[np.int64] = column.offsets.to_numpy().astype(np.int64)
    values: Int32 = column.values.to_numpy()
    return Ragged(values[offsets[0] : offsets[-1]], offsets - offsets[0])
