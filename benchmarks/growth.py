"""How time and memory of `herald audit` grow with the rows: from 10,000 to 10,000,000.

Every size is a pool of its own (`pools.py`), 8 rollouts a question, audited by `end_to_end.toml`
in a fresh process; the last of some rounds counts, so that compiled programs are at hand (a quick
run has one round: compiling is in its time).
`--questions` keeps the number of questions while the rows grow: then only what grows with rows is
left.

  python benchmarks/growth.py
  python benchmarks/growth.py --rows 100000 1000000 --questions 10000
  python benchmarks/growth.py --out benchmarks/results/growth.json
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from machine import machine
from measured import Row, arguments, finish
from pools import Shape, write_pool
from processes import herald

MANIFEST = Path(__file__).with_name("end_to_end.toml")
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
QUICK_ROWS = (10_000, 100_000)


def point(folder: Path, rows: int, options: argparse.Namespace) -> tuple[Row, dict[str, Any]]:
    """One size; its pool is deleted again."""
    shape = Shape.of(rows, options.questions)
    pool = folder / "pool"
    write_pool(pool, shape, options.seed)
    for _ in range(options.rounds):
        done = herald(
            "audit", pool, "--manifest", MANIFEST, "--out", folder / "report", cache=folder
        )
    size = sum(path.stat().st_size for path in pool.iterdir())
    shutil.rmtree(pool)
    row = Row(
        name=f"herald audit, {rows:,} rows of {shape.questions:,} questions",
        seconds=done.seconds,
        measured=rows / done.seconds,
        unit="rows/s",
        detail=f"peak memory {done.peak_bytes / 1e9:.2f} GB, files of {size / 1e6:,.0f} MB; "
        f"{done.stages}",
    )
    found = {
        "rows": rows,
        "questions": shape.questions,
        "seconds": done.seconds,
        "peak_bytes": done.peak_bytes,
    }
    return row, found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", help="sizes of the pool")
    parser.add_argument("--questions", type=int, help="of every size; default: an eighth of it")
    parser.add_argument("--rounds", type=int, default=2, help="audits of each, the last counts")
    parser.add_argument("--folder", type=Path, help="where pools go for a while, default: /tmp")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
    sizes = options.rows or (QUICK_ROWS if options.quick else ROWS)
    if min(*sizes, options.questions or 1, options.rounds) < 1:
        parser.error("--rows, --questions and --rounds must be at least 1")
    before = machine()
    rows, points = [], []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size in sorted(sizes):
            row, found = point(Path(folder), size, options)
            rows.append(row)
            points.append(found)
    finish(options, "time and memory of an audit against its rows", before, rows, points=points)


if __name__ == "__main__":
    main()
