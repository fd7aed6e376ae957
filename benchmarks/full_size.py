"""What the tests show at small size, at full size: one figure a claim, each audit a process.

* the full report on a million questions of eight rollouts each, its peak memory and the time of
  its bootstrap;
* the same bytes of report.json from 1, 2 and 4 processes, 8 devices of the host, and after many
  kills (SIGKILL at random moments, in one work folder all along, no finished file read again).

  python benchmarks/full_size.py --out benchmarks/results/full_size.json
  python benchmarks/full_size.py --report-rows 80000 --rows 40000 --kills 3
"""

import argparse
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine
from measured import Row, arguments, finish
from pools import ROLLOUTS, Shape, write_pool
from processes import STAGE, herald, run

HERE = Path(__file__).resolve().parent
FULL, LEAN = HERE / "full_report.toml", HERE / "end_to_end.toml"
LAUNCH = HERE.parent / "scripts" / "launch.py"
MEMORY_GOAL = 4.0  # GB
ESTIMATING = "estimating"


def full_report(folder: Path, rows: int, seed: int) -> Row:
    """Every section of the report on many questions."""
    shape = Shape.of(rows)
    write_pool(folder / "many", shape, seed)
    arguments = ("audit", folder / "many", "-m", FULL, "--out", folder / "report")
    done = herald(*arguments, cache=folder)
    stages = {stage: float(end) for end, stage in STAGE.findall(done.said)}
    ends = list(stages)
    before = stages[ends[ends.index(ESTIMATING) - 1]]
    tables = re.search(r"estimating: ([\d,]+)", done.said)
    return Row(
        name=f"full report on {shape.questions:,} questions of {ROLLOUTS} rollouts, peak memory",
        seconds=done.seconds,
        measured=done.peak_bytes / 1e9,
        unit="GB",
        goal=MEMORY_GOAL,
        at_most=True,
        detail=f"{tables[1] if tables else '?'} tables of 11 contracts; bootstrap and bounds "
        f"{stages[ESTIMATING] - before:.0f} s; {done.stages}",
    )


def digest(out: Path) -> str:
    """SHA-256 of a report."""
    return hashlib.sha256((out / "report.json").read_bytes()).hexdigest()


def same_bytes(folder: Path, pool: Path, expected: str) -> list[Row]:
    """The report by several processes and devices, against that of one."""
    found = []
    for count in (2, 4):
        out = folder / f"processes-{count}"
        command = [sys.executable, LAUNCH, str(count), "audit", pool, "-m", LEAN, "--out", out]
        done = run(command, XDG_CACHE_HOME=str(folder))
        found.append((f"{count} processes", done.seconds, digest(out)))
    out = folder / "devices-8"
    done = run(
        [sys.executable, "-m", "herald_jax.cli", "audit", pool, "-m", LEAN, "--out", out],
        XDG_CACHE_HOME=str(folder),
        XLA_FLAGS="--xla_force_host_platform_device_count=8",
        JAX_PLATFORMS="cpu",
    )
    found.append(("8 devices of the host", done.seconds, digest(out)))
    return [
        Row(
            name=f"{how}: report.json as of one",
            seconds=seconds,
            met=reached == expected,
            detail=f"sha256 {reached[:16]}",
        )
        for how, seconds, reached in found
    ]


def killed(folder: Path, pool: Path, expected: str, kills: int, whole: float, seed: int) -> Row:
    """The report of an audit that was killed again and again, in one work folder."""
    chance = random.Random(seed)
    work, out = folder / "work", folder / "killed"
    command = [sys.executable, "-m", "herald_jax.cli", "audit", str(pool), "-m", str(LEAN)]
    command += ["--out", str(out), "--work", str(work), "-q"]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder)}
    finished: dict[str, float] = {}
    after_the_first = again = 0
    start = time.perf_counter()
    for _ in range(kills):
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        after_the_first += bool(finished)
        # Long enough to get past the start of the process, too short to get to the end.
        try:
            process.wait(timeout=2.0 + chance.random() * whole / 4)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        times = {path.name: path.stat().st_mtime for path in work.glob("rows-*.arrays")}
        done = {path.name[5:10] for path in work.glob("file-*.arrays")}
        # A finished file that is read again writes its rows again.
        again += sum(times[name] != before for name, before in finished.items())
        finished = {name: at for name, at in times.items() if name[5:10] in done}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    reached = digest(out)
    return Row(
        name=f"killed {kills} times ({after_the_first} after the first checkpoint): report.json",
        seconds=time.perf_counter() - start,
        met=reached == expected and not again,
        detail=f"sha256 {reached[:16]}; chunks of finished files written again: {again}",
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--report-rows", type=int, default=8_000_000, help="of the full report")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the other claims")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where pools go for a while, default: /tmp")
    parser.add_argument("--seed", type=int, default=0)
    options: argparse.Namespace = parser.parse_args()
    if options.quick:
        options.report_rows, options.rows, options.kills = 40_000, 40_000, 3
    before = machine()
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        pool = folder / "pool"
        write_pool(pool, Shape.of(options.rows), options.seed)
        for _ in range(2):  # the second finds its programs compiled
            one = herald("audit", pool, "-m", LEAN, "--out", folder / "one", cache=folder)
        expected = digest(folder / "one")
        rows.append(
            Row(
                name=f"one process, {options.rows:,} rows",
                seconds=one.seconds,
                detail=f"sha256 {expected[:16]}; {one.stages}",
            )
        )
        rows += same_bytes(folder, pool, expected)
        rows.append(killed(folder, pool, expected, options.kills, one.seconds, options.seed))
        rows.append(full_report(folder, options.report_rows, options.seed))
    finish(options, "audits at full size", before, rows)


if __name__ == "__main__":
    main()
