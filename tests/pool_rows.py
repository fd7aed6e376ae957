"""Random encoded rows, written down as plain tuples and made into `Rows`."""

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from herald_jax.data.ragged import Ragged
from herald_jax.pool.rows import LISTS, ROW, Rows

# Ids whose order by code points differs from that of UTF-16 or of a locale, and that hold one
# another; the empty one too.
NAMES = ("", "a", "aa", "a\x00", "B", "b", "é", "e\u0301", "z", "\uffee", "\U0001f427", "７")
PLAIN = tuple(name for name in ROW.names if not name.endswith("_end"))


@dataclass(frozen=True)
class Row:
    """One row: its fields in the order of `PLAIN`, its name, and its lists."""

    fields: tuple
    name: str
    lists: tuple[tuple[int, ...], ...]

    def __getitem__(self, field: str):
        return self.fields[PLAIN.index(field)]


def draw(rng: random.Random, n: int, questions: int = 4, rollouts: int = 2) -> list[Row]:
    """Rows with few questions and rollouts, so that there are ties, and lists of any length."""

    def field(name: str):
        kind = ROW[name].kind
        if name == "question":
            return rng.randrange(questions)
        if name == "rollout":
            return rng.choice((-(2**63), 2**63 - 1, *range(rollouts)))
        if kind == "b":
            return rng.random() < 0.5
        return rng.random() if kind == "f" else rng.randrange(-2, 100)

    return [
        Row(
            tuple(field(name) for name in PLAIN),
            rng.choice(NAMES) + str(rng.randrange(3)),
            tuple(
                tuple(rng.randrange(-1, 2**31 - 1) for _ in range(rng.choice((0, 0, 1, 3))))
                for _ in LISTS
            ),
        )
        for _ in range(n)
    ]


def made(rows: list[Row]) -> Rows:
    """The same as arrays."""
    table = np.zeros(len(rows), ROW)
    for at, row in enumerate(rows):
        for name, value in zip(PLAIN, row.fields, strict=True):
            table[name][at] = value
    return Rows(
        table,
        pa.array([row.name.encode() for row in rows], pa.large_binary()),
        *(Ragged.of_lists([row.lists[at] for row in rows]) for at in range(len(LISTS))),
    )


def read(rows: Rows) -> list[Row]:
    """What arrays hold, written down again."""
    return [
        Row(
            tuple(rows.table[name][at].item() for name in PLAIN),
            rows.name(at),
            tuple(tuple(lists[at].tolist()) for lists in rows.lists),
        )
        for at in range(len(rows))
    ]
