"""Trajectory files into a store of encoded rows: each file is read once, and never again.

A file that was finished is recognised by its name, size and last change, and by the digest of what
its codes depend on (corpus, oracle, rules); then its rows are taken from the store. Reading and
decoding run ahead in a thread while the rows before are encoded.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from herald_jax.data.ahead import ahead
from herald_jax.data.chunk import REASONS, Chunk
from herald_jax.data.encode import Encoder
from herald_jax.data.flat import Flat, FlatBatch
from herald_jax.data.near import Known, Stranger
from herald_jax.data.ragged import Ragged
from herald_jax.data.tables import unreadable
from herald_jax.pool.logs import Log
from herald_jax.pool.rows import Rows, rows_of
from herald_jax.pool.store import Entry, Store
from herald_jax.types import Fault

Terms = Callable[[Flat, NDArray[np.int64]], Ragged]
Progress = Callable[[int, int], None]
VERSION = 1

# Of every row that could be read, in the order of its trajectory's hash: what tells rows and
# questions apart without their strings.
IDENTITY = np.dtype(
    [
        ("trajectory", "<u8"),
        ("question", "<u8"),
        ("text", "<u8"),
        ("line", "<i8"),
        ("reason", "u1"),
    ],
    align=True,
)

# Texts of questions, each pair once in a chunk and in the order of the questions.
TEXT = np.dtype([("question", "<u8"), ("text", "<u8")])


class Longest(msgspec.Struct):
    """The largest of what decides shapes and scales, over some rows."""

    retrieved: int = 1
    citations: int = 1
    candidates: int = 0
    searches: int = 0
    answer_tokens: int = 0

    def merged(self, other: "Longest") -> "Longest":
        """The larger of each."""
        return Longest(*(max(getattr(self, n), getattr(other, n)) for n in self.__struct_fields__))


class FileSummary(msgspec.Struct):
    """What is known of a file that was read to its end.

    Attributes:
        name: as given.
        sha256: of its bytes; None for records at hand.
        rows: in the file, bad ones included.
        bad_rows: how many could not be read.
        faults: of those.
        chunks: how many entries its rows are in.
        models: models of each chunk, in the order of their codes.
        pools: the same for pools.
        longest: over its rows.
        set_aside: rows by reason.
        strangers: ids that look like known ones and are none.
    """

    name: str
    sha256: str | None
    rows: int
    bad_rows: int
    faults: list[Fault]
    chunks: int
    models: list[list[str]]
    pools: list[list[str]]
    longest: Longest
    set_aside: dict[str, int]
    strangers: list[Stranger]


@dataclass(frozen=True, eq=False)
class FileRows:
    """A file in the store: its number, its summary and the entries of its rows."""

    number: int
    summary: FileSummary
    entries: list[Entry]


def ingest(
    logs: Sequence[tuple[int, Log]],
    encoder: Encoder,
    known: Known,
    terms: Terms | None,
    store: Store,
    key: str,
    progress: Progress,
) -> Iterator[FileRows | Fault]:
    """Read files into a store, those that are in it already excepted.

    Args:
        logs: files with their numbers.
        encoder: makes integers of strings.
        known: ids that a stranger may have been meant for.
        terms: term ids of question and answer for some rows; None when nobody searches.
        store: where rows go.
        key: digest of all that codes depend on beside the file.
        progress: called with the rows done and the estimated number of all.

    Yields:
        Each file as it is finished, or the fault of one that cannot be read.

    Raises:
        HeraldError: the store cannot be written.
    """
    sizes: dict[int, int] = {}
    finished: dict[int, FileRows] = {}
    for number, log in logs:
        try:
            found = _finished(number, store, _digest([key, log.identity()]))
            if found is None:
                sizes[number] = log.estimated_rows()
            else:
                finished[number], sizes[number] = found, found.summary.rows
        except (OSError, pa.ArrowException):
            sizes[number] = 0  # said when its turn comes
    done = 0
    with ThreadPoolExecutor(1) as hashing:
        for number, log in logs:
            total = max(sum(sizes.values()), done)

            def advance(rows: int, done: int = done, total: int = total) -> None:
                progress(done + rows, max(total, done + rows))

            try:
                found = finished.get(number)
                if found is None:
                    file_key = _digest([key, log.identity()])
                    digest = hashing.submit(log.digest)
                    summary = _read(number, log, encoder, known, terms, store, file_key, advance)
                    summary.sha256 = digest.result()
                    store.put(_file(number), file_key, {}, {"summary": _plain(summary)})
                    found = _finished(number, store, file_key)
                    assert found is not None
            except (OSError, pa.ArrowException) as error:
                yield unreadable(log.name, error)
                continue
            done += found.summary.rows
            sizes[number] = found.summary.rows
            yield found
    progress(done, done)


def _finished(number: int, store: Store, key: str) -> FileRows | None:
    """A file of the store, if all of it is there."""
    entry = store.get(_file(number), key)
    if entry is None:
        return None
    summary = msgspec.convert(entry.meta["summary"], FileSummary)
    entries = [
        store.get(_chunk(number, at), f"{key}/{at}", check=True) for at in range(summary.chunks)
    ]
    whole = [entry for entry in entries if entry is not None]
    return FileRows(number, summary, whole) if len(whole) == summary.chunks else None


def _read(
    number: int,
    log: Log,
    encoder: Encoder,
    known: Known,
    terms: Terms | None,
    store: Store,
    key: str,
    advance: Callable[[int], None],
) -> FileSummary:
    summary = FileSummary(log.name, None, 0, 0, [], 0, [], [], Longest(), {}, [])
    for batch in ahead(log.batches()):
        chunk, strangers = encoder.encode(batch.flat)
        searched = _no_terms(len(chunk)) if terms is None else terms(batch.flat, chunk.line)
        rows = rows_of(chunk, number, searched)
        order = np.argsort(rows.question, kind="stable")
        rows = rows.take(order)
        arrays = rows.packed() | {
            "question": np.ascontiguousarray(rows.question),
            **identities(chunk),
        }
        store.put(_chunk(number, summary.chunks), f"{key}/{summary.chunks}", arrays, {})
        summary.chunks += 1
        summary.models.append(chunk.models)
        summary.pools.append(chunk.pools)
        summary.longest = summary.longest.merged(longest(rows))
        summary.strangers += known.alike(strangers)
        _count(summary, batch, chunk)
        advance(summary.rows)
    return summary


def _count(summary: FileSummary, batch: FlatBatch, chunk: Chunk) -> None:
    summary.rows += batch.rows
    summary.bad_rows += batch.rows - len(batch.flat)
    summary.faults += batch.faults
    counts = np.bincount(chunk.identities.reason, minlength=len(REASONS) + 1)
    for reason, rows in zip(REASONS, counts[1:].tolist(), strict=True):
        if rows:
            summary.set_aside[reason] = summary.set_aside.get(reason, 0) + rows


def identities(chunk: Chunk) -> dict[str, NDArray[Any]]:
    """What tells the rows of a chunk from others (`clashes`).

    Returns:
        `identities` of type `IDENTITY` and their `trajectories` uint64, sorted by these; `texts` of
        type `TEXT`, each pair once, sorted by question.
    """
    table = np.zeros(len(chunk.identities.line), IDENTITY)
    for name in IDENTITY.names or ():
        table[name] = getattr(chunk.identities, name)
    table = table[np.argsort(table["trajectory"], kind="stable")]
    texts = np.zeros(len(table), TEXT)
    order = np.lexsort((table["text"], table["question"]))
    texts["question"], texts["text"] = table["question"][order], table["text"][order]
    return {
        "identities": table,
        "trajectories": np.ascontiguousarray(table["trajectory"]),
        "texts": texts[np.append(True, texts[1:] != texts[:-1])[: len(texts)]],
    }


def longest(rows: Rows) -> Longest:
    """What decides shapes and scales, of some rows."""
    return Longest(
        retrieved=int(rows.retrieved.lengths.max(initial=1)),
        citations=int(rows.citations.lengths.max(initial=1)),
        candidates=int(rows.candidates.lengths.max(initial=0)),
        searches=int(rows.table["searches"].max(initial=0)),
        answer_tokens=int(rows.table["answer_tokens"].max(initial=0)),
    )


def _no_terms(rows: int) -> Ragged:
    return Ragged.of_lengths(np.zeros(0, np.int32), np.zeros(rows, np.int64))


def _file(number: int) -> str:
    return f"file-{number:05d}"


def _chunk(number: int, at: int) -> str:
    return f"rows-{number:05d}-{at:05d}"


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)


def _digest(parts: Any) -> str:
    return hashlib.sha256(msgspec.json.encode([VERSION, parts])).hexdigest()
