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
from herald_jax.pool.ingest import IDENTITY, FileRows
from herald_jax.pool.peers import Peers
from herald_jax.types import Fault

# Rows that are compared at once.
MOST_ROWS = 1 << 22
Place = tuple[int, int]  # number of the file, line in it
Read = Callable[[Sequence[Place]], dict[Place, Trajectory]]

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
    rows = sum(entry.length("identities") for file in files for entry in file.entries)
    most = max(np.frombuffer(part, np.int64)[0] for part in peers.gather(_int64(rows)))
    doubtful: list[NDArray[Any]] = []
    for field in ("trajectory", "question"):
        steps = max(-(-int(most) * peers.count // MOST_ROWS), peers.count)
        steps = -(-steps // peers.count) * peers.count
        for first in range(0, steps, peers.count):
            parts = [_range(files, field, at, steps) for at in range(first, first + peers.count)]
            received = peers.exchange([part.tobytes() for part in parts])
            together = np.concatenate([np.frombuffer(part, _PLACED) for part in received])
            doubtful.append(_repeated(together, field))
    found = np.concatenate(doubtful)
    everywhere = peers.gather(found.tobytes())
    found = np.concatenate([np.frombuffer(part, _PLACED) for part in everywhere])
    return list(_clashes(found, names, read))


def _range(files: Sequence[FileRows], field: str, at: int, steps: int) -> NDArray[Any]:
    """Rows whose hash lies in the at-th of `steps` equal ranges."""
    parts = [np.zeros(0, _PLACED)]
    for file in files:
        for entry in file.entries:
            table = entry.read("identities").view(IDENTITY)
            if steps > 1:
                # The upper 32 bits: a product of 64 would wrap.
                place = ((table[field] >> np.uint64(32)) * np.uint64(steps)) >> np.uint64(32)
                table = table[place == at]
            placed = np.zeros(len(table), _PLACED)
            for name in IDENTITY.names or ():
                placed[name] = table[name]
            placed["file"] = file.number
            parts.append(placed)
    return np.concatenate(parts)


def _repeated(rows: NDArray[Any], field: str) -> NDArray[Any]:
    """Rows that may clash: the same trajectory hash, or the same question with unlike texts."""
    rows = rows[np.argsort(rows[field], kind="stable")]
    starts = np.flatnonzero(np.diff(rows[field], prepend=~rows[field][:1]))
    sizes = np.diff(starts, append=len(rows))
    if field == "trajectory":
        chosen = sizes > 1
    elif len(rows):
        low = np.minimum.reduceat(rows["text"], starts)
        chosen = low != np.maximum.reduceat(rows["text"], starts)
    else:
        chosen = np.zeros(0, bool)
    return rows[np.repeat(chosen, sizes)]


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
            expected = f"the text of this question at {where(first)}, {shown(text)}"
            remedy = "give different questions different question_ids, or one text"
            report("question", "question_disagrees", expected, shown(record.question), remedy)
        if faults:
            reason = ("", *REASONS)[reasons[place]]
            yield Clash(place[0], place[1], record.question_id, reason, faults)


def _int64(number: int) -> bytes:
    return np.array([number], np.int64).tobytes()
