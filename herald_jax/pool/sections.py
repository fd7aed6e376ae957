"""Rows of a store, a section of neighbouring questions at a time.

A chunk's rows lie sorted by question, so that the rows of a section are one stretch of each chunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herald_jax.data.blocks import power_of_two
from herald_jax.pool.ingest import FileRows
from herald_jax.pool.peers import Peers
from herald_jax.pool.rows import ROW, Rows, joined, unpacked
from herald_jax.pool.store import Memory
from herald_jax.pool.wire import from_bytes, to_bytes

Places = frozenset[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Section:
    """All rows of the questions first .. last - 1, sorted by question, rollout, trajectory id.

    Attributes:
        first: number of the first question.
        last: one behind the last.
        numbers: int64 [n] numbers of the rows among all of the pool, ascending.
        rows: n rows.
    """

    first: int
    last: int
    numbers: NDArray[np.int64]
    rows: Rows


@dataclass(frozen=True)
class Names:
    """Numbers of names in the order of code points."""

    all: tuple[str, ...]

    @classmethod
    def union(cls, lists: Sequence[Sequence[str]]) -> "Names":
        """Every name once."""
        return cls(tuple(sorted({name for names in lists for name in names})))

    def numbers(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Their numbers, int32 [len(names)]."""
        where = {name: at for at, name in enumerate(self.all)}
        return np.array([where[name] for name in names], np.int32)


def cut(counts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Where to cut questions into sections.

    Args:
        counts: int64 [Q] rows of each question.
        rows: places of a section, a question with n rows taking as many as the next power of two.
            A question with more has a section of its own.

    Returns:
        int64 [S + 1] ascending from 0 to Q.
    """
    padded = np.array([power_of_two(n) if n else 0 for n in range(int(counts.max(initial=0)) + 1)])
    ends = np.cumsum(padded[counts]) if len(counts) else np.zeros(0, np.int64)
    bounds = [0]
    while bounds[-1] < len(counts):
        taken = ends[bounds[-1] - 1] if bounds[-1] else 0
        end = int(np.searchsorted(ends, taken + rows, side="right"))
        bounds.append(max(end, bounds[-1] + 1))
    return np.array(bounds, np.int64)


class Sections:
    """The sections of some files.

    Args:
        files: files of this process.
        bounds: int64 [S + 1], from `cut`.
        counts: int64 [Q] rows of each question, over all processes.
        models: names of models of the pool.
        pools: names of pools of the pool.
        left_out: (file, line) of rows that are not to be had.
        peers: the processes that hold the other files.
    """

    def __init__(
        self,
        files: Sequence[FileRows],
        bounds: NDArray[np.int64],
        counts: NDArray[np.int64],
        models: Names,
        pools: Names,
        left_out: Places,
        peers: Peers,
    ) -> None:
        self.bounds = bounds
        self._before = np.concatenate([[0], np.cumsum(counts)])[bounds]
        self._left_out = left_out
        self._peers = peers
        self._chunks: list[tuple[Any, NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]] = []
        for file in files:
            for at, entry in enumerate(file.entries):
                starts = np.searchsorted(entry.read("question"), bounds)
                self._chunks.append(
                    (
                        entry,
                        starts,
                        models.numbers(file.summary.models[at]),
                        pools.numbers(file.summary.pools[at]),
                    )
                )

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def rows(self, section: int) -> int:
        """Rows of a section, over all processes."""
        return int(self._before[section + 1] - self._before[section])

    def load(self, section: int) -> Section:
        """One section, where this process holds all files."""
        return self._section(section, [self._local(section)])

    def share(self, sections: Sequence[int | None]) -> Section | None:
        """One section for each process, each getting its rows from all; None for none.

        Args:
            sections: the section of each process; all of them call this with the same.
        """
        parts = [b"" if at is None else to_bytes(self._local(at).packed()) for at in sections]
        received = self._peers.exchange(parts)
        mine = sections[self._peers.index]
        if mine is None:
            return None
        rows = []
        for part in received:
            store = Memory()
            store.put("rows", "", from_bytes(part), {})
            entry = store.get("rows", "")
            assert entry is not None
            rows.append(unpacked(entry, 0, len(entry.read("rows").view(ROW))))
        return self._section(mine, rows)

    def _section(self, section: int, parts: Sequence[Rows]) -> Section:
        first, last = self.bounds[section : section + 2].tolist()
        rows = joined(parts).sorted()
        return Section(first, last, self._before[section] + np.arange(len(rows)), rows)

    def _local(self, section: int) -> Rows:
        parts = []
        for entry, starts, models, pools in self._chunks:
            first, last = starts[section : section + 2].tolist()
            if first == last:
                continue
            part = unpacked(entry, first, last)
            table = part.table.copy()
            table["model"], table["pool"] = models[table["model"]], pools[table["pool"]]
            parts.append(Rows(table, part.names, *part.lists))
        return self._without(joined(parts))

    def _without(self, rows: Rows) -> Rows:
        if not self._left_out:
            return rows
        places = zip(rows.table["file"].tolist(), rows.table["line"].tolist(), strict=True)
        kept = [at for at, place in enumerate(places) if place not in self._left_out]
        return rows.take(np.array(kept, np.int64))
