"""A few rows of a file, read once more: the worst examples that a report shows."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

from herald_jax.data.jsonl import read_lines, without_bom
from herald_jax.data.parquet import read_part, wanted_columns
from herald_jax.data.records import Trajectory
from herald_jax.data.sources import open_input
from herald_jax.data.tables import is_parquet


def read_places(path: Path | str, lines: Sequence[int]) -> dict[int, Trajectory]:
    """Read these lines of JSON Lines, or these rows of Parquet, and no others.

    Args:
        path: a file that was read before.
        lines: numbers of lines or rows, from 1, in any order.

    Returns:
        The trajectory of each line. One that the file does not have, or that holds a fault, is
        missing.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is not a Parquet file.
    """
    wanted = sorted(set(lines))
    found = _parquet(path, wanted) if is_parquet(path) else _jsonl(path, wanted)
    return dict(found)


def _jsonl(path: Path | str, wanted: list[int]) -> Iterator[tuple[int, Trajectory]]:
    with open_input(path) as file:
        rest = without_bom(file)
        at = 0
        for line in wanted:
            content = list(islice(rest, line - at - 1, line - at))
            at = line
            batch = read_lines(str(path), [(line, one) for one in content], Trajectory)
            yield from zip(batch.lines, batch.records, strict=True)


def _parquet(path: Path | str, wanted: list[int]) -> Iterator[tuple[int, Trajectory]]:
    with open_input(path) as source, pq.ParquetFile(source) as file:
        columns = wanted_columns(file.schema_arrow, Trajectory)
        first = 1
        for group in range(file.num_row_groups):
            end = first + file.metadata.row_group(group).num_rows
            if any(first <= row < end for row in wanted):
                for part in file.iter_batches(row_groups=[group], columns=columns):
                    for row in wanted:
                        if first <= row < first + part.num_rows:
                            one = read_part(str(path), row, part.slice(row - first, 1), Trajectory)
                            yield from zip(one.lines, one.records, strict=True)
                    first += part.num_rows
            first = end
