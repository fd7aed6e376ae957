"""From an encoded pool to a `Pool`, no string of a trajectory read.

Rows in Parquet stay where they are until a section asks for them; those of records, which take long
to decode, go to the store.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from herald_jax.data.ids import IdTable
from herald_jax.data.records import Passage
from herald_jax.pool.encoded import (
    CONTENTS,
    CORPUS,
    ORACLE,
    PARQUET,
    Contents,
    read_contents,
    refused,
    strings_of,
    vocabulary_digest,
)
from herald_jax.pool.encoded_checks import file_faults, original_faults, setting_faults
from herald_jax.pool.encoded_chunks import ParquetChunks
from herald_jax.pool.encoded_labels import read_corpus, read_questions
from herald_jax.pool.encoded_records import read_record_rows
from herald_jax.pool.encoded_strings import EncodedLog
from herald_jax.pool.ingest import FileRows, FileSummary
from herald_jax.pool.load import MakeIndex, Progress
from herald_jax.pool.peers import Alone, Peers
from herald_jax.pool.pool import Pool
from herald_jax.pool.sections import Names
from herald_jax.pool.store import Entry, Memory, Store
from herald_jax.search import CorpusIndex
from herald_jax.types import Fault, InputError


def load_encoded(
    folder: Path,
    *,
    rules: str = "unicode",
    assume_no_citations: bool = False,
    make_index: MakeIndex | None = CorpusIndex,
    store: Store | None = None,
    peers: Peers | None = None,
    progress: Progress | None = None,
) -> Pool:
    """Read a pool that `encoded_write.write_encoded` wrote.

    Args:
        folder: the encoded pool.
        rules: answer rules of the audit; those that it was encoded with.
        assume_no_citations: the same.
        make_index: as `load.load_pool`.
        store: as `load.load_pool`.
        peers: other processes that each read a share of the files of rows.
        progress: as `load.load_pool`.

    Returns:
        The pool of the original files, which it names: its audit gives the same report.

    Raises:
        InputError: the folder may not be used, with every reason.
        OSError: a file of it cannot be read.
        HeraldError: the store cannot be written; or TensorFlow Datasets, which ArrayRecord needs,
            is not installed.
    """
    return _Loader(
        folder,
        read_contents(folder),
        make_index,
        store or Memory(),
        peers or Alone(),
        progress or _silent,
    ).load(rules, assume_no_citations)


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total


class _Loader:
    def __init__(
        self,
        folder: Path,
        contents: Contents,
        make_index: MakeIndex | None,
        store: Store,
        peers: Peers,
        draw: Progress,
    ) -> None:
        self._folder = folder
        self._contents = contents
        self._make_index = make_index
        self._store = store
        self._peers = peers
        self._draw = draw
        self._models = Names(tuple(contents.models))
        self._pools = Names(tuple(contents.pools))
        self._searched = make_index is not None
        self._key = _digest([contents.digest, self._searched])
        self._parts = list(enumerate(contents.parts.items()))[peers.index :: peers.count]

    def load(self, rules: str, assume_no_citations: bool) -> Pool:
        """Check everything, read the rows, and put the pool together."""
        contents = self._contents
        self._check(rules, assume_no_citations)
        passages = read_corpus(self._folder / CORPUS)
        ids = IdTable(passage.passage_id for passage in passages)
        questions = read_questions(self._folder / ORACLE, ids)
        index = self._index(passages)
        files = self._files()
        return Pool(
            ids=ids,
            passages=passages,
            index=index,
            questions=questions,
            counts=self._counts(files, len(questions)),
            longest=contents.longest,
            models=self._models,
            pools=self._pools,
            set_aside=contents.set_aside,
            skipped=contents.skipped,
            warnings=contents.warnings,
            inputs={
                original.name: {"sha256": original.sha256, "rows": original.rows}
                for original in contents.originals
            },
            logs=[
                EncodedLog(original.name, self._folder / strings_of(number))
                for number, original in enumerate(contents.logs())
            ],
            store=self._store,
            key=self._key,
            peers=self._peers,
            _files=files,
            _left_out=frozenset(),
        )

    def _check(self, rules: str, assume_no_citations: bool) -> None:
        """Refuse what is stale; every process looks at its share, and all of them say the same."""
        faults = setting_faults(
            self._folder,
            self._contents,
            rules=rules,
            assume_no_citations=assume_no_citations,
            searched=self._searched,
        )
        if faults:
            raise InputError(faults)
        at, of = self._peers.index, self._peers.count
        own = {CORPUS, ORACLE, *(name for _, (name, _) in self._parts)}  # what it reads itself
        others = sorted(self._contents.files.keys() - self._contents.parts.keys() - own)
        names = sorted(own) + others[at::of]
        found = file_faults(
            self._folder,
            self._contents,
            names,
            lambda done: self._draw("check files", done, len(names)),
        )
        found += original_faults(self._contents.originals[at::of])
        for part in self._peers.gather(msgspec.json.encode(found)):
            faults += msgspec.json.decode(part, type=list[Fault])
        if faults:
            raise InputError(list(dict.fromkeys(faults)))

    def _index(self, passages: Sequence[Passage]) -> CorpusIndex | None:
        if self._make_index is None:
            return None
        index = self._make_index([(passage.title, passage.text) for passage in passages])
        if vocabulary_digest(index) != self._contents.settings.vocabulary:
            expected = "search terms of the tokens that this version finds in the corpus"
            raise refused(self._folder / CONTENTS, expected, "search terms of other tokens")
        return index

    def _files(self) -> list[FileRows]:
        """This process's files of rows."""
        parquet = ParquetChunks(self._models, self._pools, self._searched)
        found = []
        for number, (name, rows) in self._parts:
            path = self._folder / name
            if self._contents.form == PARQUET:
                entries: Sequence[Entry] = parquet.of(path)
            else:
                entries = [self._record_rows(path, f"encoded-{number:05d}")]
            found.append(FileRows(number, self._summary(name, rows, len(entries)), list(entries)))
            done = sum(file.summary.rows for file in found)
            self._draw("open rows", done, sum(rows for _, (_, rows) in self._parts))
        return found

    def _record_rows(self, path: Path, place: str) -> Entry:
        """The rows of one shard of records, in the store; not read if they lie there already."""
        kept = self._store.get(place, self._key, check=True)
        if kept is None:
            rows = read_record_rows(path, self._models, self._pools, self._searched)
            arrays = rows.packed() | {"question": np.ascontiguousarray(rows.question)}
            self._store.put(place, self._key, arrays, {})
            kept = self._store.get(place, self._key)
        assert kept is not None
        return kept

    def _summary(self, name: str, rows: int, chunks: int) -> FileSummary:
        return FileSummary(
            name=name,
            sha256=self._contents.files[name].sha256,
            rows=rows,
            bad_rows=0,
            faults=[],
            chunks=chunks,
            models=[self._contents.models] * chunks,
            pools=[self._contents.pools] * chunks,
            longest=self._contents.longest,
            set_aside={},
            strangers=[],
        )

    def _counts(self, files: Sequence[FileRows], questions: int) -> NDArray[np.int64]:
        """Rows of each question, over all processes."""
        counts = np.zeros(questions, np.int64)
        for file in files:
            for entry in file.entries:
                counts += np.bincount(entry.read("question"), minlength=questions)
        parts = self._peers.gather(counts.tobytes())
        return np.sum([np.frombuffer(part, np.int64) for part in parts], axis=0)


def _digest(parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
