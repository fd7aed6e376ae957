"""The strings of trajectories beside their integers: written by columns, read a few rows at a time.

A file is one of trajectories like any other (SPEC section 1), with the line that each row had. Its
row groups are small, since a report asks for a handful of rows from all over it. `generated_tokens`
is not kept: nothing here reads it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from herald_jax.data.flat import Flat
from herald_jax.data.parquet import arrow_schema, read_part
from herald_jax.data.records import Trajectory
from herald_jax.data.string_lists import StringLists
from herald_jax.data.strings import plain
from herald_jax.pool.logs import Log

GROUP_ROWS = 512
_LINE = "line"
_RECORD = arrow_schema(Trajectory)
_SCHEMA = _RECORD.insert(0, pa.field(_LINE, pa.int64(), nullable=False))


def write_strings(path: Path, log: Log) -> Iterator[int]:
    """Write the rows of a log that can be read.

    Args:
        path: the file.
        log: where they come from.

    Yields:
        Rows of the log that are done, as they are.

    Raises:
        OSError: the log cannot be read or the file cannot be written.
        pa.ArrowException: the log is not what its name says.
    """
    done = 0
    with pq.ParquetWriter(
        path, _SCHEMA, compression="zstd", use_dictionary=False, write_statistics=[_LINE]
    ) as file:
        for batch in log.batches():
            file.write_table(_table(batch.flat), row_group_size=GROUP_ROWS)
            done += batch.rows
            yield done


class EncodedLog:
    """A trajectory file that was encoded: its name, and its rows for those who ask for some."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path

    def read(self, lines: Sequence[int]) -> dict[int, Trajectory]:
        """The records of some lines of the original.

        Raises:
            OSError: the strings cannot be read.
            pa.ArrowInvalid: the file is not a Parquet file.
        """
        wanted = np.unique(np.asarray(lines, np.int64))
        found: dict[int, Trajectory] = {}
        with pq.ParquetFile(self._path) as file:
            for group in _groups(file.metadata, wanted):
                table = file.read_row_group(group)
                here = table[_LINE].to_numpy()
                for row in np.flatnonzero(np.isin(here, wanted)).tolist():
                    (part,) = table.slice(row, 1).select(_RECORD.names).to_batches()
                    batch = read_part(str(self._path), row, part, Trajectory)
                    found[int(here[row])] = batch.records[0]
        return found


def _groups(file: pq.FileMetaData, wanted: np.ndarray) -> list[int]:
    """Row groups that may hold some of these lines."""
    found = []
    for group in range(file.num_row_groups):
        lines = file.row_group(group).column(0).statistics
        first, end = np.searchsorted(wanted, [lines.min, lines.max + 1])
        if end > first:
            found.append(group)
    return found


def _table(flat: Flat) -> pa.Table:
    """Columns of strings as a table of trajectories."""
    steps = pa.StructArray.from_arrays(
        [plain(flat.query), _lists(flat.retrieved), pa.array(flat.valid)],
        fields=list(_RECORD.field("steps").type.value_type),
    )
    columns = {
        _LINE: pa.array(flat.line),
        "trajectory_id": plain(flat.trajectory_id),
        "question_id": plain(flat.question_id),
        "question": plain(flat.question),
        "steps": pa.ListArray.from_arrays(
            pa.array(flat.steps.astype(np.int32)), steps, type=_RECORD.field("steps").type
        ),
        "answer": plain(flat.answer),
        "citations": _lists(flat.citations),
        "model": plain(flat.model),
        "pool": plain(flat.pool),
        "rollout": pa.array(flat.rollout),
        "selected": pa.array(flat.selected),
        "malformed_citations": pa.array(flat.malformed.astype(np.int64)),
        "generated_tokens": pa.nulls(len(flat), pa.int64()),
        "candidates": _lists(flat.candidates),
    }
    return pa.table([columns[name] for name in _SCHEMA.names], schema=_SCHEMA)


def _lists(lists: StringLists) -> pa.ListArray:
    """Lists of strings, null for one that was not logged."""
    return pa.ListArray.from_arrays(
        pa.array(lists.offsets.astype(np.int32)),
        plain(lists.values),
        type=_RECORD.field("citations").type,
        mask=None if lists.logged.all() else pa.array(~lists.logged),
    )
