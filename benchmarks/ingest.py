"""Trajectory files to integers: how many rows a second, against json and dicts in plain Python.

The same rows as JSON Lines and as Parquet (`rollouts.py`). Into the chunks that an audit works on
go exact typed errors, duplicate keys found, hashes of all identities, repeated queries, EM and F1.
The plain way is `json.loads` of each line, dicts for ids, questions and models, a set of query
keys, lists made NumPy arrays; then EM and F1 with each distinct string normalised once, or without
these. It checks nothing and hashes nothing. What it finds is compared with the chunks of both files
in the same run.

An audit reads ahead in threads; the rows called "one core" hold everything to one.

  python benchmarks/ingest.py --quick
  python benchmarks/ingest.py --rows 1000000 --out benchmarks/results/ingest.json
"""

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import rollouts
from machine import machine
from measured import Row, arguments, finish, lowest, medians, seconds, turns
from metrics import remembering

from herald_jax.data.ahead import ahead
from herald_jax.data.chunk import Chunk
from herald_jax.data.encode import Encoder
from herald_jax.data.flat import Flat
from herald_jax.data.flat_files import BATCH_ROWS, read_flat
from herald_jax.data.golds import Golds
from herald_jax.data.hashes import hash_strings
from herald_jax.data.ids import IdTable
from herald_jax.data.questions import Questions
from herald_jax.data.repeats import repeated
from herald_jax.data.strings import encoded, found_in, plain
from herald_jax.data.text import query_key

GOAL = 2.0
PEER = "json and dicts"
WITHOUT = "json and dicts, neither EM nor F1"


def by_json(
    path: Path, ids: IdTable, questions: Questions, scores: bool = True
) -> dict[str, np.ndarray]:
    """What a user would write."""
    codes = {name: code for code, name in enumerate(ids.names)}
    question_codes = {name: code for code, name in enumerate(questions.ids)}
    models: dict[str, int] = {}
    answers: list[str] = []
    golds: list[list[str]] = []
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "retrieved", "ends", "citations", "question", "model", "rollout", "selected",
            "searches", "invalid", "repeated", "answer_tokens", "malformed",
        )
    }  # fmt: skip
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            steps = row["steps"]
            executed = [s for s in steps if s.get("valid", True) and s["query"].strip()]
            for step in executed:
                columns["retrieved"] += [codes[name] for name in step["retrieved"]]
            columns["ends"].append(len(columns["retrieved"]))
            columns["citations"] += [codes[name] for name in row["citations"]]
            columns["question"].append(question_codes[row["question_id"]])
            columns["model"].append(models.setdefault(row.get("model", ""), len(models)))
            columns["rollout"].append(row.get("rollout", 0))
            columns["selected"].append(row.get("selected", False))
            columns["searches"].append(len(executed))
            columns["invalid"].append(len(steps) - len(executed))
            keys = {query_key(step["query"]) for step in executed}
            columns["repeated"].append(len(keys) < len(executed))
            answers.append(row["answer"])
            golds.append(questions.golds[columns["question"][-1]])
            columns["answer_tokens"].append(len(row["answer"].split()))
            columns["malformed"].append(row.get("malformed_citations", 0))
    if scores:
        columns["em"], columns["f1"] = zip(*remembering(answers, golds), strict=True)
    return {name: np.array(values) for name, values in columns.items()}


def chunks(path: Path, encoder: Encoder, batch_rows: int) -> list[Chunk]:
    """A file, encoded while the next rows are read."""
    batches = read_flat(path, batch_rows=batch_rows)
    return [encoder.encode(batch.flat)[0] for batch in ahead(batches)]


def arrays(found: list[Chunk], names: list[str]) -> dict[str, np.ndarray]:
    """Columns of all chunks, those of lists as in `by_json`."""
    out = {
        name: np.concatenate([getattr(chunk, name) for chunk in found])
        for name in names
        if name not in ("retrieved", "ends", "citations")
    }
    out["retrieved"] = np.concatenate([chunk.retrieved.values for chunk in found])
    out["citations"] = np.concatenate([chunk.citations.values for chunk in found])
    out["ends"] = np.cumsum(np.concatenate([chunk.retrieved.lengths for chunk in found]))
    return out


def check(found: Sequence[list[Chunk]], expected: dict[str, np.ndarray]) -> None:
    """Both files give what the plain way gives."""
    for chunks_of_file in found:
        ours = arrays(chunks_of_file, list(expected))
        for name, values in expected.items():
            np.testing.assert_array_equal(ours[name], values, err_msg=name)


def on_one_core(work: Callable[[], Any]) -> Callable[[], None]:
    """The same work, held to one core where the system can do that."""

    def held() -> None:
        if not hasattr(os, "sched_setaffinity"):
            work()
            return
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(before)})
        try:
            work()
        finally:
            os.sched_setaffinity(0, before)

    return held


def stages(flats: list[Flat], ids: IdTable, questions: Questions) -> str:
    """Where the time of encoding goes, in words."""
    names, golds = pa.array(ids.names), Golds(questions.golds, "unicode")
    question_ids = pa.array(questions.ids)

    def look_up(flat: Flat) -> None:
        for lists in (flat.retrieved, flat.citations, flat.candidates):
            found_in(lists.values, names)

    def score(flat: Flat) -> None:
        answered, answers = encoded(flat.answer)
        golds.scores(answers, answered, found_in(flat.question_id, question_ids))

    def hashes(flat: Flat) -> None:
        for column in (flat.trajectory_id, flat.question_id, flat.question):
            hash_strings(column)

    def least(way: Callable[[Flat], None]) -> float:
        return min(seconds(lambda: [way(flat) for flat in flats]) for _ in range(3))

    def repeats(flat: Flat) -> None:
        repeated(plain(flat.query), flat.valid, flat.steps)

    ways = {
        "ids looked up": look_up,
        "EM and F1": score,
        "repeated queries": repeats,
        "hashes": hashes,
    }
    rows = sum(map(len, flats))
    return ", ".join(f"{name} {least(way) / rows * 1e6:.2f}" for name, way in ways.items())


def measure(folder: Path, n: int, rounds: int) -> list[Row]:
    jsonl, parquet, ids, questions = rollouts.write(folder, n)
    encoder = Encoder(ids, questions, rules="unicode", assume_no_citations=False)
    batch_rows = min(BATCH_ROWS, n // 4)  # so that there is something to read ahead

    def encode(path: Path) -> list[Chunk]:
        return chunks(path, encoder, batch_rows)

    check([encode(jsonl), encode(parquet)], by_json(jsonl, ids, questions))
    flats = [batch.flat for batch in read_flat(parquet)]
    ways: dict[str, Callable[[], Any]] = {
        PEER: lambda: by_json(jsonl, ids, questions),
        WITHOUT: lambda: by_json(jsonl, ids, questions, scores=False),
        "JSON Lines to chunks": lambda: encode(jsonl),
        "Parquet to chunks": lambda: encode(parquet),
    }
    one_core: dict[str, Callable[[], Any]] = {
        "JSON Lines to chunks": lambda: encode(jsonl),
        "JSON Lines to columns": lambda: [None for _ in read_flat(jsonl)],
        "Parquet to chunks": lambda: encode(parquet),
        "Parquet to columns": lambda: [None for _ in read_flat(parquet)],
        "columns to chunks": lambda: [encoder.encode(flat) for flat in flats],
    }
    ways |= {f"{name}, one core": on_one_core(way) for name, way in one_core.items()}
    spent = turns(ways, rounds)
    middle = medians(spent)
    line = jsonl.stat().st_size / n
    details = {
        "JSON Lines to chunks": f"{line:,.0f} bytes a line",
        "columns to chunks, one core": "microseconds a row: " + stages(flats, ids, questions),
    }

    def row(name: str, peer: str, goal: float | None) -> Row:
        return Row(
            name=name,
            seconds=middle[name],
            against=peer,
            peer_seconds=middle[peer],
            goal=goal,
            detail=f"{n / middle[name]:,.0f} rows/s, lowest of {rounds} rounds "
            f"{lowest(spent[name], spent[peer]):.2f}x; {details.get(name, '')}".rstrip("; "),
        )

    rows = [
        row("JSON Lines to chunks", PEER, GOAL),
        row("JSON Lines to chunks", WITHOUT, None),
        row("Parquet to chunks", PEER, None),
        *(row(f"{name}, one core", PEER, None) for name in one_core if "to chunks" in name),
        *(row(f"{name}, one core", WITHOUT, None) for name in one_core if "to columns" in name),
    ]
    rows.append(
        Row(
            name="Parquet to chunks, one core",
            seconds=middle["Parquet to chunks, one core"],
            measured=n / middle["Parquet to chunks, one core"],
            unit="rows/s",
            goal=150_000,
            detail="with EM and F1: what an audit of 100,000 rows/s can spend on reading",
        )
    )
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=262_144)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.quick:
        options.rows, options.rounds = 32_768, 3
    before = machine()
    with tempfile.TemporaryDirectory() as name:
        rows = measure(Path(name), options.rows, options.rounds)
    about = {"rows_of_data": options.rows, "rounds": options.rounds}
    finish(options, "trajectory files to integers", before, rows, **about)


if __name__ == "__main__":
    main()
