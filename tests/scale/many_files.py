"""A pool in many small files, and `herald audit` run over it in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.parquet import write_parquet
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory

ROOT = Path(__file__).resolve().parents[2]

LEAN = """
[statistics]
replicates = 200
[sections]
pools = ["first"]
cancellation = false
scales = false
budgets = false
worst_examples = 1
"""

# What a test does to the audit of a small pool so that it looks like a large one: sections of few
# rows, and a little time for each entry that is kept, so that a kill falls between two of them.
# Every trajectory file that is opened is written down.
PROGRAM = """
import sys, time
import herald_jax.audit.run  # the package has a function of that name
import herald_jax.audit.staging as staging
import herald_jax.pool.logs as logs
from herald_jax.pool.store import Folder

sys.modules["herald_jax.audit.run"].SECTION_ROWS = {section_rows}
staging.BLOCK_ROWS = ({section_rows},)
batches, put = logs.FileLog.batches, Folder.put

def noted(log):
    with open({opened!r}, "a") as file:
        file.write(log.name + "\\n")
    return batches(log)

def slow(store, *entry):
    put(store, *entry)
    time.sleep({delay})

logs.FileLog.batches, Folder.put = noted, slow
from herald_jax.cli import main
sys.argv[0] = "herald"
main()
"""


def write_pool(folder: Path, *, files: int = 12, questions: int = 10, rollouts: int = 4) -> Path:
    """`files` trajectory files in turns of JSON Lines and Parquet; questions span files."""
    folder.mkdir()
    passages = [Passage(f"p{n:02d}", f"passage {n} of the mill by the river") for n in range(40)]
    write_jsonl(folder / "corpus.jsonl", passages)
    names = [f"q{n:03d}" for n in range(files * questions // 2)]
    write_jsonl(
        folder / "oracle.jsonl",
        [OracleRow(name, [f"ada {n}"], [f"p{n % 40:02d}"]) for n, name in enumerate(names)],
    )
    for file in range(files):
        rows = [
            log(f"t{file}-{n}", (file * questions + n // rollouts) % len(names), n)
            for n in range(questions * rollouts)
        ]
        if file % 2:
            write_parquet(folder / f"trajectories-{file:02d}.parquet", rows, Trajectory)
        else:
            write_jsonl(folder / f"trajectories-{file:02d}.jsonl", rows)
    (folder / "lean.toml").write_text(LEAN)
    return folder


def log(name: str, question: int, n: int) -> Trajectory:
    """A rollout; which of its citations were retrieved depends on `n`."""
    retrieved = [f"p{(question + step * 3 + n) % 40:02d}" for step in range(5)]
    return Trajectory(
        trajectory_id=name,
        question_id=f"q{question:03d}",
        question=f"who built mill {question}",
        steps=[Step("the mill", retrieved)],
        answer=f"ada {question if n % 3 else n}",
        citations=[retrieved[n % 5], f"p{n % 40:02d}"][: 1 + n % 2],
        model=("left", "right")[n % 2],
        rollout=n,
    )


def program(opened: Path, *, section_rows: int = 32, delay: float = 0.0) -> str:
    """The audit as a program, for `python -c`."""
    return PROGRAM.format(opened=str(opened), section_rows=section_rows, delay=delay)


def start(
    code: str, pool: Path, out: Path, *further: str, devices: int = 1
) -> "subprocess.Popen[bytes]":
    """An audit of the pool in a process of its own."""
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments(pool, out, *further)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def arguments(pool: Path, out: Path, *further: str) -> list[str]:
    """Of `herald`, for an audit of the pool."""
    lean = ["-m", str(pool / "lean.toml"), "--out", str(out), "-q"]
    return ["audit", str(pool), *lean, *further]


def finish(process: "subprocess.Popen[bytes]") -> str:
    """Wait for an audit that must succeed; what it said on stderr."""
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()
    return said.decode()
