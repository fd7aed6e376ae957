"""Cases of known faults, read from files: an input, and the values that are right for it.

A file is called `<kind>-<part>.json`; all files of a kind have the same keys.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from herald_jax.data.records import Trajectory
from herald_jax.pool.load import load_pool
from herald_jax.pool.pool import Pool

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "cases"
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One input and what is right for it."""

    given: Record
    expected: Record


def files() -> list[Path]:
    """Every case that is there, sorted by name."""
    return sorted(FOLDER.glob("*-*.json"))


def kind_of(path: Path) -> str:
    """The kind of fault a file is of."""
    return path.stem.rpartition("-")[0]


def load(path: Path) -> Case:
    """Read a case."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return Case(content["input"], content["expected"]["values"])


def exact(value: Any) -> Fraction:
    """A number of a case: `{"frac": "9/28"}`, or a float or integer as it is."""
    return Fraction(value["frac"] if isinstance(value, dict) else value)


def number(value: Any) -> float:
    """The same as a float."""
    return float(exact(value))


def write_lines(path: Path, records: Sequence[Record]) -> Path:
    """Write records as JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def written_pool(
    folder: Path,
    trajectories: Sequence[Record],
    corpus: Sequence[Record],
    oracle: Sequence[Record],
) -> Pool:
    """A pool by way of its files."""
    return load_pool(
        [write_lines(folder / "trajectories.jsonl", trajectories)],
        [write_lines(folder / "corpus.jsonl", corpus)],
        [write_lines(folder / "oracle.jsonl", oracle)],
    )


def one_question_each(trajectories: Sequence[Record]) -> list[Record]:
    """The same trajectories, each the only rollout of a question of its own."""
    return [
        {**row, "question_id": row["trajectory_id"], "question": "?", "rollout": 0}
        for row in trajectories
    ]


def ids_of_codes(pool: Pool, row: int, record: Trajectory) -> dict[int, str]:
    """What the codes of a row stand for: those of the table, and those that are the row's own."""
    names = dict(enumerate(pool.ids.names))
    retrieved = [name for step in record.steps if step.executed for name in step.retrieved or []]
    for codes, written in (
        (pool.rows.retrieved[row], retrieved),
        (pool.rows.citations[row], record.citations or []),
    ):
        for code, name in zip(codes.tolist(), written, strict=True):
            assert names.setdefault(code, name) == name
    assert len(set(names.values())) == len(names)
    return names


def citation_status(pool: Pool, row: int, record: Trajectory) -> dict[str, str]:
    """What the codes of a row say of each distinct citation, in order of first appearance."""
    names = ids_of_codes(pool, row, record)
    status = {}
    for code in pool.rows.citations[row].tolist():
        if code in pool.rows.retrieved[row]:
            word = "retrieved"
        else:
            word = "real_unretrieved" if code < pool.ids.corpus_size else "nonexistent"
        status[names[code]] = word
    return status
