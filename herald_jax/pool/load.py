"""From files or records to a pool: read, encode, find what clashes, say all that is wrong."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from herald_jax.data.encode import Encoder
from herald_jax.data.ids import IdTable
from herald_jax.data.near import Known, stranger_warnings
from herald_jax.data.questions import questions_of
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.data.sources import expand
from herald_jax.data.tables import Table, read_table, without_clashes
from herald_jax.pool.clashes import find_clashes
from herald_jax.pool.ingest import FileRows, FileSummary, Longest, ingest
from herald_jax.pool.logs import FileLog, Log, RecordLog
from herald_jax.pool.peers import Alone, Peers
from herald_jax.pool.pool import Pool, read_records
from herald_jax.pool.sections import Names
from herald_jax.pool.store import Memory, Store
from herald_jax.pool.terms import query_terms
from herald_jax.search import CorpusIndex
from herald_jax.types import Fault, InputError

Progress = Callable[[str, int, int], None]
MakeIndex = Callable[[list[tuple[str, str]]], CorpusIndex]


def load_pool(
    trajectories: Sequence[Path | str],
    corpus: Sequence[Path | str],
    oracle: Sequence[Path | str],
    *,
    rules: str = "unicode",
    assume_no_citations: bool = False,
    skip_bad_rows: bool = False,
    make_index: MakeIndex | None = CorpusIndex,
    store: Store | None = None,
    peers: Peers | None = None,
    progress: Progress | None = None,
) -> Pool:
    """Read a pool from JSON Lines or Parquet files, local or remote.

    Args:
        trajectories: files of trajectories; patterns and folders stand for the files they match.
        corpus: the same of passages.
        oracle: the same of gold labels.
        rules: answer rules, `unicode` or `squad`.
        assume_no_citations: read citations that were not logged as none.
        skip_bad_rows: load the other rows when some have faults.
        make_index: indexes (title, text) of all passages, sorted by id, for generators that search;
            None where none will.
        store: where encoded rows go, and are taken from if they lie there already; memory when
            None.
        peers: other processes that each read a share of the trajectory files.
        progress: called with a stage, how much of it is done, and how much there is (0: unknown).

    Raises:
        InputError: faults, all of them. A file that cannot be read is never skipped.
        HeraldError: the store cannot be written.
    """
    draw = progress or _silent
    logs = [FileLog(path) for path in expand(trajectories)]

    def read(paths: Sequence[Path | str], kind: type[msgspec.Struct]) -> Table[Any]:
        table = read_table(
            expand(paths), kind, lambda name, rows: draw(f"read {Path(name).name}", rows, 0)
        )
        for name, entry in table.inputs.items():
            draw(f"read {Path(name).name}", int(entry["rows"]), int(entry["rows"]))
        return table

    return _Loader(rules, assume_no_citations, skip_bad_rows, make_index, store, peers, draw).load(
        logs, read(corpus, Passage), read(oracle, OracleRow)
    )


def pool_from_records(
    trajectories: Sequence[Trajectory],
    passages: Sequence[Passage],
    oracle: Sequence[OracleRow],
    *,
    rules: str = "unicode",
    assume_no_citations: bool = False,
) -> Pool:
    """The same from records; faults name the list and count its items from 1.

    Raises:
        InputError: records clash, all clashes.
    """
    return _Loader(rules, assume_no_citations, False, CorpusIndex, None, None, _silent).load(
        [RecordLog(trajectories)],
        Table.of_records(passages, "corpus"),
        Table.of_records(oracle, "oracle"),
    )


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total


class _Loader:
    def __init__(
        self,
        rules: str,
        assume_no_citations: bool,
        skip_bad_rows: bool,
        make_index: MakeIndex | None,
        store: Store | None,
        peers: Peers | None,
        progress: Progress,
    ) -> None:
        self._rules = rules
        self._assume_no_citations = assume_no_citations
        self._skip_bad_rows = skip_bad_rows
        self._make_index = make_index
        self._store = store or Memory()
        self._peers = peers or Alone()
        self._progress = progress

    def load(self, logs: Sequence[Log], corpus: Table[Any], oracle: Table[Any]) -> Pool:
        """Read the trajectories and put the pool together."""
        corpus = without_clashes(corpus, Passage)
        oracle = without_clashes(oracle, OracleRow)
        passages = sorted(corpus.records, key=lambda passage: passage.passage_id)
        ids = IdTable(passage.passage_id for passage in passages)
        questions = questions_of(oracle.records, ids, self._rules)
        index = self._index(passages)
        # What a row's codes depend on beside its file.
        key = _digest(
            [
                [*corpus.inputs.values()],
                [*oracle.inputs.values()],
                self._rules,
                self._assume_no_citations,
                # Rows that were left out of them.
                [corpus.bad_rows, oracle.bad_rows],
                index is not None,
            ]
        )
        encoder = Encoder(
            ids, questions, rules=self._rules, assume_no_citations=self._assume_no_citations
        )
        terms = None if index is None else partial(query_terms, vocabulary=index.vocabulary)
        found: list[FileRows] = []
        unread: list[Fault] = []
        mine = list(enumerate(logs))[self._peers.index :: self._peers.count]
        advance = partial(self._progress, "read trajectories")
        known = Known(ids.names, questions.ids)
        for item in ingest(mine, encoder, known, terms, self._store, key, advance):
            (unread if isinstance(item, Fault) else found).append(item)  # type: ignore[arg-type]
        counts = np.zeros(len(questions), np.int64)
        for file in found:
            for entry in file.entries:
                counts += np.bincount(entry.read("question"), minlength=len(questions))
        summaries, unread, counts = self._together(found, unread, counts)

        names = [log.name for log in logs]
        clashes = find_clashes(found, names, partial(read_records, logs), self._peers)
        order = {name: at for at, name in enumerate(names)}
        faults = [
            *sorted(
                [
                    *unread,
                    *(fault for summary in summaries for fault in summary.faults),
                    *(fault for clash in clashes for fault in clash.faults),
                ],
                key=lambda fault: (order[fault.file], fault.line),
            ),
            *corpus.faults,
            *oracle.faults,
        ]
        if faults and not (self._skip_bad_rows and all(fault.line for fault in faults)):
            raise InputError(faults)
        where = {name: at for at, name in enumerate(questions.ids)}
        set_aside = Counter(bad_row=corpus.bad_rows + oracle.bad_rows + len(clashes))
        for summary in summaries:
            set_aside.update(summary.set_aside, bad_row=summary.bad_rows)
        for clash in clashes:
            if clash.set_aside:
                set_aside[clash.set_aside] -= 1
            else:
                counts[where[clash.question_id]] -= 1
        return Pool(
            ids=ids,
            passages=passages,
            index=index,
            questions=questions,
            counts=counts,
            longest=_longest(summaries),
            models=Names.union([names for summary in summaries for names in summary.models]),
            pools=Names.union([names for summary in summaries for names in summary.pools]),
            set_aside={reason: rows for reason, rows in sorted(set_aside.items()) if rows},
            skipped=faults,
            warnings=stranger_warnings(
                [(summary.name, summary.strangers) for summary in summaries]
            ),
            inputs={
                **{
                    summary.name: {"sha256": summary.sha256, "rows": summary.rows}
                    for summary in summaries
                    if summary.sha256 is not None
                },
                **corpus.inputs,
                **oracle.inputs,
            },
            logs=logs,
            store=self._store,
            key=key,
            peers=self._peers,
            _files=found,
            _left_out=frozenset((clash.file, clash.line) for clash in clashes),
        )

    def _index(self, passages: Sequence[Passage]) -> CorpusIndex | None:
        if self._make_index is None:
            return None
        return self._make_index([(passage.title, passage.text) for passage in passages])

    def _together(
        self, found: list[FileRows], unread: list[Fault], counts: NDArray[np.int64]
    ) -> tuple[list[FileSummary], list[Fault], NDArray[np.int64]]:
        """What all processes found: every file's summary in order, faults, rows by question."""
        mine = [(file.number, file.summary) for file in found]
        parts = [
            msgspec.msgpack.decode(part, type=tuple[list[tuple[int, FileSummary]], list[Fault]])
            for part in self._peers.gather(msgspec.msgpack.encode((mine, unread)))
        ]
        numbered = sorted((pair for part in parts for pair in part[0]), key=lambda pair: pair[0])
        everywhere = self._peers.gather(counts.tobytes())
        total = np.sum([np.frombuffer(part, np.int64) for part in everywhere], axis=0)
        return [summary for _, summary in numbered], [f for p in parts for f in p[1]], total


def _longest(summaries: Sequence[FileSummary]) -> Longest:
    found = Longest()
    for summary in summaries:
        found = found.merged(summary.longest)
    return found


def _digest(parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
