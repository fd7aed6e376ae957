"""The audit kernels against the plain reference and two ways to do it in NumPy, in one run.

Synthetic trajectories (`synthetic.py`): up to 40 retrieved ids, 4 citations, 8 laundering
candidates, rollouts in groups of 8, 20,000 passages; all contracts of the default manifest, both
selectors, sums per question. Blocks lie in host memory, padded as an audit pads them, before any
clock starts; moving them to the device counts. The same is done by

- herald: the programs that `herald audit` calls, in its order (`kernel_engine.py`), from the
  retrieved ids, and again from what is known of every id after the first audit;
- NumPy: `numpy_staged.py`, the same algorithm, and `numpy_idiomatic.py`, as a competent user writes
  it, each in the chunk size that is fastest here;
- the reference: `tests/reference`, on a sample of questions, its rate extrapolated.

First the figures are compared: with NumPy every pair and sum, with the reference every pair and sum
of its sample. Then all take turns. The share of the memory's read bandwidth is the bytes of the
padded blocks, each counted once, over the seconds of a whole pass; where the time goes is measured
with the host waiting for each program. On an accelerator the blocks lie in its memory before the
clock starts for a further row, and the bandwidth is that of its memory.

  python benchmarks/kernels.py
  python benchmarks/kernels.py --quick
  python benchmarks/kernels.py --out benchmarks/results/kernels.json
"""

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import jax
import kernel_numpy
import kernel_reference
import numpy_staged
import synthetic
from kernel_engine import SELECTORS, Engine, block_rows, blocks
from kernel_report import report
from machine import machine, read_bandwidth
from measured import Row, arguments, finish, seconds, turns

from herald_jax.kernels import programs

QUICK = {"rows": 160_000, "sample": 800, "rounds": 3}
FEW_ROWS = 1 << 16  # on which chunks are tried
PROGRAMS = (
    "describe",
    "measure_originals",
    "describe_offer",
    "measure_edits",
    "judge",
    "pick",
    "sum_questions",
)


@contextmanager
def programs_timed() -> Iterator[dict[str, float]]:
    """Seconds of every program that is called within, its result waited for."""
    spent: dict[str, float] = dict.fromkeys(PROGRAMS, 0.0)

    def timed(name: str, program: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(program)
        def run(*args: Any, **kwargs: Any) -> Any:
            found: list[Any] = []
            spent[name] += seconds(
                lambda: found.append(jax.block_until_ready(program(*args, **kwargs)))
            )
            return found[0]

        return run

    before = {name: getattr(programs, name) for name in PROGRAMS}
    for name, program in before.items():
        setattr(programs, name, timed(name, program))
    try:
        yield spent
    finally:
        for name, program in before.items():
            setattr(programs, name, program)


def fastest_chunks(rows: int, seed: int, engine: Engine) -> tuple[int, int]:
    """The chunks in which staged and idiomatic NumPy are fastest, tried on few rows."""
    few = synthetic.generate(rows, seed)
    parts = blocks(few, block_rows("cpu"))
    return (
        kernel_numpy.fastest(
            kernel_numpy.STAGED_CHUNKS, lambda chunk: numpy_staged.audit(parts, chunk, engine)
        ),
        kernel_numpy.fastest(
            kernel_numpy.IDIOMATIC_CHUNKS, lambda chunk: kernel_numpy.idiomatic(few, engine, chunk)
        ),
    )


def measure(n: int, sample_size: int, rounds: int, seed: int) -> tuple[list[Row], dict[str, Any]]:
    data = synthetic.generate(n, seed)
    engine = Engine(data)
    parts = blocks(data, block_rows())
    sample = kernel_reference.Sample.of(data, sample_size)
    # NumPy gets blocks of the size that suits a CPU whatever the device is.
    small = blocks(data, block_rows("cpu"))
    accelerated = jax.default_backend() != "cpu"

    ours = engine.audit(parts)  # compiles
    described = [engine.describe(engine.place(block)) for block in parts]
    again = engine.audit_described(described)
    for name in SELECTORS:
        if again[name].tobytes() != ours[name].tobytes():
            raise SystemExit("from described ids other sums come out")
    with kernel_reference.strings_remembered():
        equal = {
            "reference": kernel_reference.compare(sample, engine, parts, ours),
            "numpy staged": kernel_numpy.compare_staged(engine, small, ours),
            "numpy idiomatic": kernel_numpy.compare_idiomatic(data, engine, small, ours),
        }
        staged_chunk, idiomatic_chunk = fastest_chunks(min(n, FEW_ROWS), seed, engine)
        placed = [engine.place(block) for block in parts]
        bandwidth = read_bandwidth()
        readings: list[float] = []
        ways: dict[str, Callable[[], Any]] = {
            "herald": lambda: engine.audit(parts),
            "described": lambda: engine.audit_described(described),
            "numpy staged": lambda: numpy_staged.audit(small, staged_chunk, engine),
            "numpy staged, all cores": kernel_numpy.on_all_cores(small, engine, staged_chunk),
            "numpy idiomatic": lambda: kernel_numpy.idiomatic(data, engine, idiomatic_chunk),
            "reference": lambda: kernel_reference.audit(sample),
            "bandwidth": lambda: readings.append(bandwidth.once()),
        }
        if accelerated:
            ways["on the device"] = lambda: engine.audit(placed)
        spent = turns(ways, rounds)
    spent["reference"] = [s * n / len(sample.rows) for s in spent["reference"]]
    with programs_timed() as stages:
        whole = seconds(lambda: engine.audit(placed))
    stages["host"] = whole - sum(stages.values())
    nbytes = sum(block.nbytes for block in parts)
    chunks = {"numpy staged": staged_chunk, "numpy idiomatic": idiomatic_chunk}
    rows = report(n, spent, equal, chunks, statistics.median(readings), nbytes, stages)
    return rows, {
        "rows_audited": n,
        "questions": engine.questions,
        "isolated_eligible_rows": int(ours["oracle_worst"].rows[0].sum()),
        "contracts": len(engine.names),
        "block_rows": len(parts[0].real),
        "bytes_a_row": nbytes / n,
        "sample_rows": len(sample.rows),
        "rounds": rounds,
        "program_seconds": stages,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="a multiple of 8")
    parser.add_argument("--sample", type=int, default=2000, help="rows of the reference, likewise")
    parser.add_argument("--rounds", type=int, default=5, help="turns of all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
    for name in ("rows", "sample"):
        value = getattr(options, name)
        if value < synthetic.ROLLOUTS or value % synthetic.ROLLOUTS:
            parser.error(f"--{name} must be a positive multiple of {synthetic.ROLLOUTS}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    before = machine()
    rows, more = measure(
        options.rows, min(options.sample, options.rows), options.rounds, options.seed
    )
    finish(
        options,
        "audit kernels: laundering, all contracts, both selectors, sums per question",
        before,
        rows,
        **more,
    )


if __name__ == "__main__":
    main()
