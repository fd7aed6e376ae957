"""Encoded rows written as Parquet: scalars, lists of integers, names of models and pools.

A row group is one chunk of a store: at most `CHUNK_ROWS` rows, sorted by question.
"""

from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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


def _column(names: Names) -> pa.Array:
    return pa.array(names.all, pa.string())
