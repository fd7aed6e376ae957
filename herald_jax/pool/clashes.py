"""Faults between rows: a trajectory id that occurs twice, two texts of one question.

Rows are compared by 64-bit hashes, a range of hashes at a time, so that memory does not grow with
them; what looks like a clash is read again and compared as strings before anything is said. The
first row in the order of the files keeps its id and gives its question the text.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from herald_jax.data.checks import reporter, shown
from herald_jax.data.chunk import REASONS
from herald_jax.data.records import Trajectory
from herald_jax.pool.ingest import IDENTITY, TEXT, FileRows
from herald_jax.pool.peers import Peers
from herald_jax.pool.store import Entry
from herald_jax.types import Fault

# Hashes that are compared at once.
MOST_ROWS = 1 << 21
# Characters that two texts may have in common before what differs is out of sight.
SHOWN_ALIKE = 40
Place = tuple[int, int]  # number of the file, line in it
Read = Callable[[Sequence[Place]], dict[Place, Trajectory]]
Hashes = NDArray[np.uint64]

_PLACED = np.dtype([*IDENTITY.descr, ("file", "<i4")], align=False)


class Clash(msgspec.Struct, frozen=True):
    """A row that clashes with an earlier one.

    Attributes:
        file: number of the file.
        line: line in it.
        question_id: its question.
        set_aside: why it is set aside beside, "" where it could have been judged.
        faults: what is wrong.
    """

    file: int
    line: int
    question_id: str
    set_aside: str
    faults: list[Fault]


def find_clashes(
    files: Sequence[FileRows], names: Sequence[str], read: Read, peers: Peers
) -> list[Clash]:
    """Every row that clashes with an earlier one, in the order of the files.

    Args:
        files: files of this process.
        names: names of all files, by number.
        read: reads rows of any file again.
        peers: processes that hold the other files.
    """
    entries = [entry for file in files for entry in file.entries]
    ids = _suspects(entries, "trajectories", _repeated, peers)
    questions = _suspects(entries, "texts", _disagreeing, peers)
    if not len(ids) and not len(questions):
        return []
    parts = [np.zeros(0, _PLACED)]
    for file in files:
        for entry in file.entries:
            table = entry.read("identities").view(IDENTITY)
            doubtful = np.isin(table["trajectory"], ids) | np.isin(table["question"], questions)
            placed = np.zeros(int(doubtful.sum()), _PLACED)
            for name in IDENTITY.names or ():
                placed[name] = table[name][doubtful]
            placed["file"] = file.number
            parts.append(placed)
    everywhere = peers.gather(np.concatenate(parts).tobytes())
    found = np.concatenate([np.frombuffer(part, _PLACED) for part in everywhere])
    return list(_clashes(found, names, read))


def _suspects(
    entries: Sequence[Entry], name: str, suspect: Callable[[NDArray[Any]], Hashes], peers: Peers
) -> Hashes:
    """Hashes that tell of a clash, over the entries of all processes.

    Args:
        entries: entries of this process.
        name: array of each entry, sorted by hash: of hashes, or structured with the hash first.
        suspect: finds them among all items of a range of hashes.
        peers: the processes; each looks at some of the ranges.
    """
    total = np.array([sum(entry.length(name) for entry in entries)], np.int64)
    most = max(np.frombuffer(part, np.int64)[0] for part in peers.gather(total.tobytes()))
    rounds = max(-(-int(most) // MOST_ROWS), 1)
    ranges = rounds * peers.count
    cuts = [_cut(entry, name, ranges) for entry in entries]
    found: list[Hashes] = []
    for first in range(0, ranges, peers.count):
        parts = [
            b"".join(
                entry.part(name, *cut[at : at + 2].tolist()).tobytes()
                for entry, cut in zip(entries, cuts, strict=True)
            )
            for at in range(first, first + peers.count)
        ]
        kind = TEXT if name == "texts" else np.dtype("<u8")
        received = [np.frombuffer(part, kind) for part in peers.exchange(parts)]
        found.append(suspect(np.concatenate(received)))
    everywhere = peers.gather(np.concatenate(found).tobytes())
    return np.concatenate([np.frombuffer(part, np.uint64) for part in everywhere])


def _cut(entry: Entry, name: str, ranges: int) -> NDArray[np.int64]:
    """Where the sorted items of an entry pass from one equal range of hashes to the next."""
    items = entry.read(name)
    hashes = items.view(TEXT)["question"] if name == "texts" else items
    bounds = np.array([(at << 64) // ranges for at in range(1, ranges)], np.uint64)
    return np.concatenate([[0], np.searchsorted(hashes, bounds), [len(hashes)]])


def _repeated(hashes: Hashes) -> Hashes:
    """Hashes that occur more than once."""
    hashes = np.sort(hashes)
    return np.unique(hashes[1:][hashes[1:] == hashes[:-1]])


def _disagreeing(texts: NDArray[Any]) -> Hashes:
    """Questions that have more than one text."""
    texts = texts[np.argsort(texts["question"])]
    question, text = texts["question"], texts["text"]
    starts = np.flatnonzero(np.diff(question, prepend=~question[:1]))
    if not len(starts):
        return np.zeros(0, np.uint64)
    unlike = np.minimum.reduceat(text, starts) != np.maximum.reduceat(text, starts)
    return np.array(question[starts[unlike]], np.uint64)


def _clashes(rows: NDArray[Any], names: Sequence[str], read: Read) -> Iterator[Clash]:
    if len(rows) == 0:
        return
    reasons = {(int(r["file"]), int(r["line"])): int(r["reason"]) for r in rows}
    places = sorted(reasons)
    records = read(places)
    first_of_id: dict[str, Place] = {}
    first_of_question: dict[str, Place] = {}

    def where(place: Place) -> str:
        return f"{names[place[0]]}:{place[1]}"

    for place in places:
        record = records[place]
        faults: list[Fault] = []
        report = reporter(names[place[0]], place[1], faults)
        first = first_of_id.setdefault(record.trajectory_id, place)
        if first != place:
            got = f"{shown(record.trajectory_id)} again, first at {where(first)}"
            remedy = "rename or remove one"
            report("trajectory_id", "duplicate_id", "an id of its own", got, remedy)
        first = first_of_question.setdefault(record.question_id, place)
        text = records[first].question
        if text != record.question:
            meant = shown(apart(text, record.question))
            expected = f"the text of this question at {where(first)}, {meant}"
            remedy = "give different questions different question_ids, or one text"
            other = shown(apart(record.question, text))
            report("question", "question_disagrees", expected, other, remedy)
        if faults:
            reason = ("", *REASONS)[reasons[place]]
            yield Clash(place[0], place[1], record.question_id, reason, faults)


def apart(text: str, other: str) -> str:
    """A text from shortly before where it differs from another, so that the difference is seen."""
    same = next((at for at, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), None)
    if same is None:
        same = min(len(text), len(other))
    return text if same <= SHOWN_ALIKE else f"…{text[same - SHOWN_ALIKE // 2 :]}"
