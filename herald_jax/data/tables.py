"""All records of one kind, from all of their files, each with its place.

Faults that one record can have by itself are found by the readers; those between records (an id
that occurs twice, two texts of one question, dependencies that go in a circle) are found here.
"""

import gc
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import pyarrow as pa

from herald_jax.data.checks import Report, reporter, shown
from herald_jax.data.jsonl import Batch, read_jsonl
from herald_jax.data.parquet import read_parquet
from herald_jax.data.records import ID_FIELDS, OracleRow, Trajectory
from herald_jax.data.regular import IrregularFileError
from herald_jax.data.sources import open_input
from herald_jax.types import Fault

R = TypeVar("R", bound=msgspec.Struct)
Progress = Callable[[str, int], None]


@dataclass
class Table(Generic[R]):
    """Records in the order of the files.

    Attributes:
        records: those that could be read.
        files: file of each record, as given.
        lines: line or row of each record.
        faults: of the rows that could not be read, and of whole files.
        bad_rows: how many rows could not be read.
        inputs: file -> {"sha256": hex digest of the bytes, "rows": rows in it}.
    """

    records: list[R] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    bad_rows: int = 0
    inputs: dict[str, dict[str, str | int]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[R, str, int]]:
        """Each record with its file and line."""
        return zip(self.records, self.files, self.lines, strict=True)

    def place(self, row: int) -> str:
        """File and line of a record, for messages."""
        return f"{self.files[row]}:{self.lines[row]}"

    @classmethod
    def of_records(cls, records: Sequence[R], name: str) -> "Table[R]":
        """A table of objects; `name` stands for the file and 1, 2, … for the lines."""
        count = len(records)
        return cls(list(records), [name] * count, list(range(1, count + 1)))


def read_table(
    paths: Sequence[Path | str], kind: type[R], progress: Progress | None = None
) -> Table[R]:
    """Read all files of one kind; a file that cannot be read becomes a fault.

    Args:
        paths: files that end in `.parquet`, or JSON Lines.
        kind: class of the records.
        progress: called with a file's name and the number of its rows read so far.
    """
    table: Table[R] = Table()
    with _no_collection():
        _fill(table, paths, kind, progress)
    return table


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the cyclic collector: records hold no cycles, and it would visit them all each time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _fill(
    table: Table[R], paths: Sequence[Path | str], kind: type[R], progress: Progress | None
) -> None:
    for path in paths:
        name = str(path)
        rows = 0
        try:
            for batch in _batches(path, kind):
                rows += batch.rows
                table.records += batch.records
                table.files += [name] * len(batch.records)
                table.lines += batch.lines
                table.faults += batch.faults
                table.bad_rows += batch.rows - len(batch.records)
                if progress is not None:
                    progress(name, rows)
            digest = digest_of(path)
        except (OSError, pa.ArrowException) as error:
            table.faults.append(unreadable(name, error))
            continue
        table.inputs[name] = {"sha256": digest, "rows": rows}


def _batches(path: Path | str, kind: type[R]) -> Iterator[Batch[R]]:
    return read_parquet(path, kind) if is_parquet(path) else read_jsonl(path, kind)


def digest_of(path: Path | str) -> str:
    """SHA-256 of a file, in hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    with open_input(path) as file:
        digest = hashlib.sha256()
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def is_parquet(path: Path | str) -> bool:
    """Whether a file is read as Parquet; any other is JSON Lines."""
    return Path(path).suffix == ".parquet"


def unreadable(name: str, error: Exception) -> Fault:
    """The fault of a file that cannot be opened or decoded."""
    remedy = "check that the file is whole and of the kind that its name says"
    if isinstance(error, FileNotFoundError):
        remedy = "check the path"
    elif isinstance(error, IrregularFileError):
        remedy = "write it to a file and name that"
    elif isinstance(error, IsADirectoryError):
        remedy = "name the files in the directory"
    elif isinstance(error, PermissionError):
        remedy = "give yourself the right to read it"
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    return Fault(name, 0, "", "unreadable", "a JSON Lines or Parquet file", reason, remedy)


def without_clashes(table: Table[R], kind: type[R]) -> Table[R]:
    """The table without the records that clash with an earlier one or within themselves.

    Returns:
        The remaining records; what was left out is among the faults, which are sorted by file and
        line, and counts as bad rows.
    """
    faults: list[Fault] = []
    kept: list[int] = []
    id_field = ID_FIELDS[kind]
    first_of_id: dict[str, int] = {}
    first_of_question: dict[str, int] = {}
    for row, record in enumerate(table.records):
        before = len(faults)
        report = reporter(table.files[row], table.lines[row], faults)
        name = getattr(record, id_field)
        first = first_of_id.setdefault(name, row)
        if first != row:
            got = f"{shown(name)} again, first at {table.place(first)}"
            report(id_field, "duplicate_id", "an id of its own", got, "rename or remove one")
        if isinstance(record, Trajectory):
            first = first_of_question.setdefault(record.question_id, row)
            other = table.records[first]
            text = other.question if isinstance(other, Trajectory) else ""
            if text != record.question:
                expected = f"the text of this question at {table.place(first)}, {shown(text)}"
                remedy = "give different questions different question_ids, or one text"
                report("question", "question_disagrees", expected, shown(record.question), remedy)
        elif isinstance(record, OracleRow) and record.nodes:
            _check_nodes(record, report)
        if len(faults) == before:
            kept.append(row)
    order = {name: at for at, name in enumerate(dict.fromkeys([*table.inputs, *table.files]))}
    return Table(
        records=[table.records[row] for row in kept],
        files=[table.files[row] for row in kept],
        lines=[table.lines[row] for row in kept],
        faults=sorted(
            [*table.faults, *faults],
            key=lambda fault: (order.get(fault.file, len(order)), fault.line),
        ),
        bad_rows=table.bad_rows + len(table.records) - len(kept),
        inputs=table.inputs,
    )


def _check_nodes(row: OracleRow, report: Report) -> None:
    names = [node.node_id for node in row.nodes]
    known = set(names)
    graph: dict[str, list[str]] = {}
    for at, node in enumerate(row.nodes):
        if node.node_id in graph:
            place = f"nodes[{at}].node_id"
            got = f"{shown(node.node_id)} again"
            report(place, "duplicate_id", "an id of its own", got, "rename one of the nodes")
        graph[node.node_id] = node.depends_on
        for number, name in enumerate(node.depends_on):
            if name not in known:
                place = f"nodes[{at}].depends_on[{number}]"
                expected = f"one of the nodes {', '.join(map(shown, names))}"
                report(place, "unknown_node", expected, shown(name), "correct the node id")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        got = " <- ".join(shown(name) for name in error.args[1])
        report(
            "nodes", "dependency_cycle", "dependencies without a circle", got, "break the circle"
        )
