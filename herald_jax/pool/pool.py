"""A pool: the trajectories that can be judged, their corpus and their gold labels.

Rows are sorted by question, rollout and trajectory id, passages and questions by id in code-point
order, so that no figure depends on the order of a file. A row that cannot be judged is set aside
and counted by its reason (SPEC sections 1 and 13.11); files with faults are refused with all of
them, unless bad rows are to be skipped, and then they are counted too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from herald_jax.data.ids import IdTable
from herald_jax.data.questions import Questions
from herald_jax.data.records import Passage, Trajectory
from herald_jax.pool.ingest import FileRows, Longest
from herald_jax.pool.logs import Records
from herald_jax.pool.peers import Peers
from herald_jax.pool.rows import Rows
from herald_jax.pool.sections import Names, Places, Section, Sections
from herald_jax.pool.store import Store
from herald_jax.search import CorpusIndex
from herald_jax.types import Fault

Place = tuple[int, int]  # number of a trajectory file, line in it


@dataclass(frozen=True, eq=False)
class Pool:
    """Everything that an audit reads, for Q questions of the oracle and N passages.

    Attributes:
        ids: codes of the corpus and of the oracle's support ids; passage i has code i.
        passages: N passages sorted by id.
        index: the corpus, to be searched; None when nobody will.
        questions: Q questions with their gold labels (oracle).
        counts: int64 [Q] rows of each question that can be judged.
        longest: what decides shapes and scales, over all rows.
        models: names of the models of the rows.
        pools: names of their pools.
        set_aside: reason -> rows: `not_logged`, `no_oracle`, `bad_row`; only those that occur.
        skipped: faults of the rows counted as `bad_row`.
        warnings: what is legal but suspicious.
        inputs: file -> {"sha256": hex digest, "rows": rows in the file}.
        logs: the trajectory files, by number.
        store: where encoded rows lie, and results may.
        key: digest of what the rows were made from, the files excepted.
        peers: the processes that share the work.
    """

    ids: IdTable
    passages: list[Passage]
    index: CorpusIndex | None
    questions: Questions
    counts: NDArray[np.int64]
    longest: Longest
    models: Names
    pools: Names
    set_aside: dict[str, int]
    skipped: list[Fault]
    warnings: list[Fault]
    inputs: dict[str, dict[str, str | int]]
    logs: Sequence[Records]
    store: Store
    key: str
    peers: Peers
    _files: Sequence[FileRows]
    _left_out: Places

    @property
    def n_rows(self) -> int:
        """Rows that can be judged."""
        return int(self.counts.sum())

    @property
    def n_questions(self) -> int:
        """Questions with such a row."""
        return int(np.count_nonzero(self.counts))

    def sections(self, bounds: NDArray[np.int64]) -> Sections:
        """The rows, cut where `sections.cut` says."""
        return Sections(
            self._files,
            bounds,
            self.counts,
            self.models,
            self.pools,
            self._left_out,
            self.peers,
        )

    @cached_property
    def whole(self) -> Section:
        """All rows of this process at once; for pools of which it is known that they are small."""
        return self.sections(np.array([0, len(self.counts)], np.int64)).load(0)

    @property
    def rows(self) -> Rows:
        """All rows at once, as `whole`."""
        return self.whole.rows

    def records(self, places: Sequence[Place]) -> dict[Place, Trajectory]:
        """Trajectories as they were logged, read again from their files."""
        return read_records(self.logs, places)

    def records_of(self, rows: Rows) -> list[Trajectory]:
        """The same, of some rows and in their order."""
        places = list(zip(rows.table["file"].tolist(), rows.table["line"].tolist(), strict=True))
        found = self.records(places)
        return [found[place] for place in places]


def read_records(logs: Sequence[Records], places: Sequence[Place]) -> dict[Place, Trajectory]:
    """Rows of some files, read again; each file is opened once."""
    lines: dict[int, list[int]] = {}
    for file, line in sorted(set(places)):
        lines.setdefault(file, []).append(line)
    return {
        (file, line): record
        for file, wanted in lines.items()
        for line, record in logs[file].read(wanted).items()
    }
