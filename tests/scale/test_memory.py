"""Peak memory does not grow with the number of rows."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scale import many_files

QUESTIONS = 256
# Small chunks and sections, so that a few thousand rows are many of both.
SMALL = """
import functools
import herald_jax.pool.logs as logs
logs.read_flat = functools.partial(logs.read_flat, batch_rows=2048)
"""


def write_pool(folder: Path, rollouts: int) -> Path:
    """`rollouts` rows of each question; a row takes about 600 bytes as encoded."""
    folder.mkdir()
    passages = [f"passage-{n:04d}" for n in range(500)]
    pq.write_table(pa.table({"passage_id": passages, "text": passages}), folder / "corpus.parquet")
    questions = [f"q{n:04d}" for n in range(QUESTIONS)]
    labels = {"answers": [["ada"]] * QUESTIONS, "support_ids": [passages[:2]] * QUESTIONS}
    pq.write_table(pa.table({"question_id": questions} | labels), folder / "oracle.parquet")
    rng = np.random.default_rng(0)
    n = QUESTIONS * rollouts
    retrieved = [[passages[i] for i in row] for row in rng.integers(0, 500, (n, 100))]
    table = pa.table(
        {
            "trajectory_id": [f"t{i:08d}" for i in range(n)],
            "question_id": [questions[i % QUESTIONS] for i in range(n)],
            "question": ["who built the mill"] * n,
            "steps": [[{"query": "mill", "retrieved": ids}] for ids in retrieved],
            "answer": ["ada"] * n,
            "citations": [ids[:4] for ids in retrieved],
            "rollout": [i // QUESTIONS for i in range(n)],
        }
    )
    pq.write_table(table, folder / "trajectories.parquet", row_group_size=2048)
    (folder / "lean.toml").write_text(many_files.LEAN)
    return folder


def peak(pool: Path, folder: Path) -> int:
    """Peak resident memory of an audit in bytes."""
    code = SMALL + many_files.program(folder / "opened", section_rows=2048)
    arguments = many_files.arguments(pool, folder / "out", "--work", str(folder / "work"))
    measured = folder / "measured.json"
    # The peak of a process counts from that of the one that starts it, and this one is large.
    starter = [sys.executable, "-I", "benchmarks/processes.py", str(measured)]
    done = subprocess.run(
        [*starter, sys.executable, "-c", code, *arguments],
        cwd=many_files.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(json.loads(measured.read_text())["peak_bytes"])


def test_four_times_the_rows_take_the_same_memory(tmp_path: Path) -> None:
    peaks, rows = [], []
    for rollouts in (64, 256):
        folder = tmp_path / str(rollouts)
        folder.mkdir()
        peaks.append(peak(write_pool(folder / "pool", rollouts), folder))
        rows.append(QUESTIONS * rollouts)
    # Kept in memory, each row would take its 600 bytes; what is left is noise.
    assert peaks[0] < 1 << 30
    assert (peaks[1] - peaks[0]) / (rows[1] - rows[0]) < 300
