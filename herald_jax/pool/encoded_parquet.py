"""Encoded rows as Parquet: scalars, lists of integers, names of models and pools.

A row group is one chunk of a store: at most `CHUNK_ROWS` rows, sorted by question.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from herald_jax.data.ragged import Int32, Ragged
from herald_jax.pool.rows import LISTS, ROW, Rows
from herald_jax.pool.sections import Names

CHUNK_ROWS = 1 << 16
PART_ROWS = 1 << 20  # of a file, so that several processes have something to share
NAMED = ("model", "pool")
SCALARS = tuple(name for name in ROW.names or () if not name.endswith("_end") and name not in NAMED)
_LIST = pa.list_(pa.field("item", pa.int32(), nullable=False))
_NAME = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("trajectory_id", pa.string(), nullable=False),
        *(pa.field(name, _NAME, nullable=False) for name in NAMED),
        *(pa.field(name, pa.from_numpy_dtype(ROW[name]), nullable=False) for name in SCALARS),
        *(pa.field(name, _LIST, nullable=False) for name in LISTS),
    ]
)


class ParquetRows:
    """Writes rows into files of a folder, `PART_ROWS` or a little more in each.

    Attributes:
        parts: rows of each file that was begun, by its name.
    """

    batch = CHUNK_ROWS  # rows that are best written at once

    def __init__(self, folder: Path, models: Names, pools: Names) -> None:
        self.parts: dict[str, int] = {}
        self._folder = folder
        self._names = {"model": _column(models), "pool": _column(pools)}
        self._file: pq.ParquetWriter | None = None

    def __enter__(self) -> "ParquetRows":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, rows: Rows) -> None:
        """Add rows, at most `CHUNK_ROWS`, as a chunk.

        Raises:
            OSError: they cannot be written.
        """
        name = next(reversed(self.parts), "")
        if self._file is None or self.parts[name] >= PART_ROWS:
            if self._file is not None:
                self._file.close()
            name = f"{len(self.parts):05d}.parquet"
            self._file = pq.ParquetWriter(
                self._folder / name, SCHEMA, compression="lz4", write_statistics=False
            )
            self.parts[name] = 0
        self._file.write_table(self._table(rows), row_group_size=CHUNK_ROWS)
        self.parts[name] += len(rows)

    def _table(self, rows: Rows) -> pa.Table:
        columns = {"trajectory_id": rows.names.cast(pa.large_string()).cast(pa.string())}
        for name in NAMED:
            codes = pa.array(np.ascontiguousarray(rows.table[name]))
            columns[name] = pa.DictionaryArray.from_arrays(codes, self._names[name])
        for name in SCALARS:
            columns[name] = pa.array(np.ascontiguousarray(rows.table[name]))
        for name, lists in zip(LISTS, rows.lists, strict=True):
            offsets = pa.array(lists.offsets.astype(np.int32))
            columns[name] = pa.ListArray.from_arrays(offsets, pa.array(lists.values), type=_LIST)
        return pa.table(columns, schema=SCHEMA)


def chunks_of(path: Path) -> int:
    """How many chunks a file of rows holds.

    Raises:
        OSError: it cannot be read.
        pa.ArrowInvalid: it is not a Parquet file.
    """
    return int(pq.read_metadata(path).num_row_groups)


def read_parquet_rows(
    path: Path, wanted: Sequence[int], models: Names, pools: Names, terms: bool
) -> Iterator[Rows]:
    """Some chunks of a file of rows.

    Args:
        path: what `ParquetRows` wrote.
        wanted: numbers of the chunks.
        models: names of models of the pool.
        pools: names of its pools.
        terms: whether term ids are wanted; else the lists are empty.

    Yields:
        The rows of each; `model` and `pool` index `models` and `pools`.

    Raises:
        OSError: it cannot be read.
        pa.ArrowInvalid: it is not a Parquet file.
    """
    names = {"model": models, "pool": pools}
    columns = [name for name in SCHEMA.names if terms or name != "terms"]
    with pq.ParquetFile(path) as file:
        for at in wanted:
            yield _rows(file.read_row_group(at, columns), names)


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


def _column(names: Names) -> pa.Array:
    return pa.array(names.all, pa.string())
