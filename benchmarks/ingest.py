"""Trajectory files to integers: how many rows a second, against json and a dict in plain Python.

The same rows as JSON Lines and as Parquet (`rollouts.py`), all on one core:

1. JSON Lines to a `Chunk`, which takes in exact typed errors, duplicate keys found, hashes of the
   identities, repeated queries and EM/F1; against `json.loads` of each line, ids looked up in a
   dict, lists made NumPy arrays, and nothing of all that;
2. JSON Lines to flat columns of strings, without any of the figures;
3. Parquet of strings to a `Chunk`.

The codes of the plain way and of the two files are compared in the same run.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import rollouts
from machine import compared, machine

from herald_jax.data.chunk import Chunk
from herald_jax.data.encode import Encoder
from herald_jax.data.flat_files import read_flat
from herald_jax.data.ids import IdTable

EXAMPLES = """examples:
  python benchmarks/ingest.py --quick
  python benchmarks/ingest.py --out benchmarks/results/ingest.json
"""


def plain(path: Path, ids: IdTable) -> dict[str, np.ndarray]:
    """What a user would write: json, a dict of ids, lists."""
    codes = {name: code for code, name in enumerate(ids.names)}
    retrieved: list[int] = []
    ends: list[int] = []
    citations: list[int] = []
    searches: list[int] = []
    rollout: list[int] = []
    answer_tokens: list[int] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            executed = [s for s in row["steps"] if s.get("valid", True) and s["query"].strip()]
            for step in executed:
                retrieved += [codes[name] for name in step["retrieved"]]
            ends.append(len(retrieved))
            citations += [codes[name] for name in row["citations"]]
            searches.append(len(executed))
            rollout.append(row["rollout"])
            answer_tokens.append(len(row["answer"].split()))
    return {
        "retrieved": np.array(retrieved, np.int32),
        "ends": np.array(ends),
        "citations": np.array(citations, np.int32),
        "searches": np.array(searches, np.int32),
        "rollout": np.array(rollout),
        "answer_tokens": np.array(answer_tokens, np.int32),
    }


def chunks(path: Path, encoder: Encoder) -> list[Chunk]:
    """A file, encoded."""
    return [encoder.encode(batch.flat)[0] for batch in read_flat(path)]


def arrays(found: list[Chunk]) -> dict[str, np.ndarray]:
    """The arrays of `plain`, and EM and F1."""
    ends = [chunk.retrieved.offsets[1:] for chunk in found]
    shifts = np.cumsum([0, *(end[-1] for end in ends[:-1])])
    names = ("searches", "rollout", "answer_tokens", "em", "f1")
    return {
        "retrieved": np.concatenate([chunk.retrieved.values for chunk in found]),
        "ends": np.concatenate([end + shift for end, shift in zip(ends, shifts, strict=True)]),
        "citations": np.concatenate([chunk.citations.values for chunk in found]),
    } | {name: np.concatenate([getattr(chunk, name) for chunk in found]) for name in names}


def seconds(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Times of each way, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    return times


def measure(n: int, rounds: int) -> dict[str, Any]:
    before = machine()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with tempfile.TemporaryDirectory() as name:
        jsonl, parquet, ids, questions = rollouts.write(Path(name), n)
        encoder = Encoder(ids, questions, rules="unicode", assume_no_citations=False)
        ours = {path: arrays(chunks(path, encoder)) for path in (jsonl, parquet)}
        expected = plain(jsonl, ids)
        for found in ours.values():
            for key, value in expected.items():
                np.testing.assert_array_equal(found[key], value)
            for key in ("em", "f1"):
                np.testing.assert_array_equal(found[key], ours[jsonl][key])
        flats = [batch.flat for batch in read_flat(parquet)]
        ways: dict[str, Callable[[], object]] = {
            "json and dict": lambda: plain(jsonl, ids),
            "JSON Lines to chunk": lambda: chunks(jsonl, encoder),
            "JSON Lines to columns": lambda: [None for _ in read_flat(jsonl)],
            "Parquet to chunk": lambda: chunks(parquet, encoder),
            "Parquet to columns": lambda: [None for _ in read_flat(parquet)],
            "columns to chunk": lambda: [encoder.encode(flat)[0] for flat in flats],
        }
        times = seconds(ways, rounds)
        size = jsonl.stat().st_size
    middle = {name: statistics.median(taken) for name, taken in times.items()}
    peer = "json and dict"
    rows = [
        {
            "name": name,
            "against": peer,
            "ratio": middle[peer] / middle[name],
            "goal": goal,
            "met": goal is None or middle[peer] / middle[name] >= goal,
            "seconds": middle[name],
            "peer_seconds": middle[peer],
            "detail": {"rows_per_second": n / middle[name], **compared(times[name], times[peer])},
        }
        for name, goal in [
            ("JSON Lines to chunk", 2.0),
            ("JSON Lines to columns", None),
            ("Parquet to chunk", None),
            ("Parquet to columns", None),
            ("columns to chunk", None),
        ]
    ]
    return {
        "machine": before,
        "rows_of_data": n,
        "bytes_a_line": size / n,
        "rounds": rounds,
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=131_072)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a look, under 20 seconds")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    n, rounds = (16_384, 3) if options.quick else (options.rows, options.rounds)
    found = measure(n, rounds)
    for row in found["rows"]:
        goal = "" if row["goal"] is None else f", goal {row['goal']:g}x"
        missed = "" if row["met"] else ": MISSED"
        print(
            f"{row['name']}: {row['detail']['rows_per_second']:,.0f} rows/s, "
            f"{row['ratio']:.2f}x {row['against']}{goal}{missed}"
        )
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(0)


if __name__ == "__main__":
    main()
