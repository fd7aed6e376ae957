"""Files of trajectories as flat columns, stretch by stretch.

A regular stretch of a file never becomes Python objects. Any other goes through its records, so
that what is read and what is refused is the same either way. Id columns of Parquet are read with
the dictionaries that their writers made: an id that occurs a thousand times is looked up once.
"""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow.parquet as pq

from herald_jax.data.flat import Flat, FlatBatch
from herald_jax.data.json_columns import read_columns
from herald_jax.data.json_skeleton import Skeleton
from herald_jax.data.jsonl import not_blank, read_lines, without_bom
from herald_jax.data.parquet import read_part, schema_faults, wanted_columns
from herald_jax.data.records import Trajectory
from herald_jax.data.sources import open_input
from herald_jax.data.strict import StrictLines
from herald_jax.data.tables import is_parquet
from herald_jax.types import Fault

BATCH_ROWS = 65536
BATCH_BYTES = 1 << 28
BLOCK_BYTES = 1 << 21  # of JSON Lines at a time

_EXACT_LINES = 32
# Of JSON, which is most of its time read without the GIL; one core is for who takes the rows.
_THREADS = max(1, min((os.cpu_count() or 1) - 1, 4))
_REPEATING = ("question_id", "question", "model", "pool", "citations", "candidates")


def read_flat(path: Path | str, *, batch_rows: int = BATCH_ROWS) -> Iterator[FlatBatch]:
    """Stream the trajectories of a file that ends in `.parquet`, or of JSON Lines.

    Args:
        path: a file of this machine or an address; faults name it as given.
        batch_rows: rows in a batch at most; less where they would hold over `BATCH_BYTES`.

    Yields:
        Batches in the order of the file. Faults are those of `read_jsonl` and `read_parquet`.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is not a Parquet file.
    """
    parts = _parquet(path, batch_rows) if is_parquet(path) else _jsonl(path, batch_rows)
    waiting: list[FlatBatch] = []
    rows = size = 0
    for part in parts:
        if not (part.rows or part.faults):
            continue
        rows, size = rows + part.rows, size + part.flat.nbytes
        if waiting and (rows > batch_rows or size > BATCH_BYTES):
            yield _joined(waiting)
            waiting, rows, size = [], part.rows, part.flat.nbytes
        waiting.append(part)
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[FlatBatch]) -> FlatBatch:
    return FlatBatch(
        Flat.joined([part.flat for part in parts]),
        [fault for part in parts for fault in part.faults],
        sum(part.rows for part in parts),
    )


def _jsonl(path: Path | str, batch_rows: int) -> Iterator[FlatBatch]:
    skeleton, decoder = Skeleton(), StrictLines(Trajectory)
    begun: deque[Future[tuple[Flat, list[tuple[int, bytes]]]]] = deque()

    def finished() -> FlatBatch:
        flat, others = begun.popleft().result()
        return _with_others(str(path), flat, not_blank(others), decoder)

    with open_input(path) as file, ThreadPoolExecutor(_THREADS) as threads:
        for first, block in _blocks(without_bom(file), batch_rows):
            begun.append(threads.submit(read_columns, block, first, skeleton))
            if len(begun) > _THREADS:
                yield finished()
        while begun:
            yield finished()


def _blocks(file: IO[bytes], most: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines, `most` of them or about `BLOCK_BYTES`, with the number of the first."""
    number = 1
    while block := file.read(BLOCK_BYTES):
        block += file.readline()
        if not block.endswith(b"\n"):
            block += b"\n"
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
        begin = 0
        for end in [*ends[most - 1 : -1 : most].tolist(), len(block)]:
            yield number, block[begin:end]
            number += most
            begin = end
        number += len(ends) - -(-len(ends) // most) * most


def _with_others(
    file: str, flat: Flat, others: list[tuple[int, bytes]], decoder: StrictLines[Trajectory]
) -> FlatBatch:
    """The rows of a block, those among them that have to be decoded."""
    if not others:
        return FlatBatch(flat, [], len(flat))
    whole = _joined([FlatBatch(flat, [], len(flat)), *_decoded(file, others, decoder)])
    order = np.argsort(whole.flat.line, kind="stable")
    return FlatBatch(whole.flat.take(order), whole.faults, len(flat) + len(others))


def _decoded(
    file: str, lines: list[tuple[int, bytes]], decoder: StrictLines[Trajectory]
) -> Iterator[FlatBatch]:
    """Lines decoded at once; where any may hold a fault, halves, and in the end line by line."""
    records = decoder.decode([line for _, line in lines])
    if records is not None:
        yield FlatBatch(Flat.of_records(records, [at for at, _ in lines]), [], len(lines))
    elif len(lines) > _EXACT_LINES:
        half = len(lines) // 2
        yield from _decoded(file, lines[:half], decoder)
        yield from _decoded(file, lines[half:], decoder)
    else:
        batch = read_lines(file, lines, Trajectory)
        yield FlatBatch(Flat.of_records(batch.records, batch.lines), batch.faults, batch.rows)


def _parquet(path: Path | str, batch_rows: int) -> Iterator[FlatBatch]:
    with open_input(path) as source, pq.ParquetFile(source) as plain:
        faults = schema_faults(str(path), plain.schema_arrow, Trajectory)
        if faults:
            yield FlatBatch(Flat.of_records([], []), faults, plain.metadata.num_rows)
            return
        columns = wanted_columns(plain.schema_arrow, Trajectory)
        row = 1
        with pq.ParquetFile(
            source, read_dictionary=_dictionaries(plain), metadata=plain.metadata
        ) as file:
            for group in range(file.num_row_groups):  # each has dictionaries of its own
                size = plain.metadata.row_group(group)
                most = size.num_rows * BATCH_BYTES // max(size.total_byte_size, 1)
                # One thread outruns the rest of an audit by far, and leaves it the other cores.
                for batch in file.iter_batches(
                    min(batch_rows, max(most, 1)),
                    row_groups=[group],
                    columns=columns,
                    use_threads=False,
                ):
                    flat = Flat.of_batch(batch, row)
                    found: list[Fault] = []
                    if flat is None:
                        part = read_part(str(path), row, batch, Trajectory)
                        flat, found = Flat.of_records(part.records, part.lines), part.faults
                    yield FlatBatch(flat, found, batch.num_rows)
                    row += batch.num_rows


def _dictionaries(file: pq.ParquetFile) -> list[str]:
    """Paths of the columns whose strings are likely to come again and again."""
    paths = [file.schema.column(at).path for at in range(len(file.schema))]
    return [
        path
        for path in paths
        if path.split(".")[0] in _REPEATING
        or (path.startswith("steps.") and "retrieved" in path.split("."))
    ]
