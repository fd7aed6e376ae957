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
padded blocks, each counted once, over the seconds of a whole pass. Last come the seconds of each
program with the host waiting for each. On an accelerator the blocks lie in its memory before the
clock starts for a further row, and the bandwidth is that of its memory.

  python benchmarks/kernels.py
  python benchmarks/kernels.py --quick
  python benchmarks/kernels.py --out benchmarks/results/kernels.json
"""

import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any

import jax
import kernel_reference
import numpy as np
import numpy_idiomatic
import numpy_staged
import synthetic
from kernel_engine import SELECTORS, Block, Engine, Sums, block_rows, blocks
from machine import machine, read_bandwidth, usable_cores
from measured import Row, arguments, finish, lowest, medians, seconds, turns
from mismatch import Mismatch, compare_block, compare_sums

from herald_jax.kernels import programs

GOALS = {"reference": 350, "numpy staged": 6, "numpy idiomatic": 15, "described": 2}
BANDWIDTH_GOAL = 10.0
CHUNKS = {"staged": (2048, 8192, 16384), "idiomatic": (512, 2048, 8192)}
NAMES = {
    "reference": "the plain reference",
    "numpy staged": "NumPy, the same algorithm",
    "numpy idiomatic": "idiomatic NumPy",
}
QUICK = {"rows": 160_000, "sample": 800, "rounds": 3}
PROGRAMS = (
    "describe",
    "measure_originals",
    "describe_offer",
    "measure_edits",
    "judge",
    "pick",
    "sum_questions",
)


def idiomatic(data: synthetic.Synthetic, engine: Engine, chunk: int) -> list[Any]:
    """All rows; of each chunk only the sums are kept, the rest would fill the memory."""
    kept = []
    for start in range(0, len(data), chunk):
        rows = slice(start, min(start + chunk, len(data)))
        found = numpy_idiomatic.audit_chunk(data, rows, engine.weights, engine.tie_tolerance)
        kept.append((found.counted, found.successes, found.totals))
    return kept


def fastest(chunks: tuple[int, ...], run: Callable[[int], Any]) -> int:
    """The chunk size in which a way is fastest on this machine."""
    return min(chunks, key=lambda chunk: min(seconds(lambda: run(chunk)) for _ in range(2)))


def compare_idiomatic(
    data: synthetic.Synthetic, engine: Engine, parts: list[Block], ours: dict[str, Sums]
) -> Mismatch:
    found = Mismatch("idiomatic NumPy")
    kept = []
    for block in parts:
        theirs = numpy_idiomatic.audit_chunk(data, block.rows, engine.weights, engine.tie_tolerance)
        selected = np.stack([theirs.first_visible.T, theirs.oracle_worst.T])
        margins = np.moveaxis(theirs.margins, (0, 1, 2), (2, 1, 0))
        compare_block(found, engine, block, theirs.isolated.T, margins, selected)
        kept.append((theirs.counted[:, 0], theirs.successes, theirs.totals))
    counted = np.concatenate([part[0] for part in kept])
    both = [np.concatenate([part[i] for part in kept], axis=1).swapaxes(1, 2) for i in (1, 2)]
    compare_sums(found, engine, ours, counted, *both)
    return found


def compare_staged(engine: Engine, parts: list[Block], ours: dict[str, Sums]) -> Mismatch:
    found = Mismatch("staged NumPy")
    scratch = numpy_staged.Scratch()
    kept = []
    for block in parts:
        rows = slice(0, block.rows.stop - block.rows.start)
        theirs = numpy_staged.audit_chunk(block, rows, engine.moved, engine.tie_tolerance, scratch)
        margins, selected = theirs.margins[engine.alike], theirs.selected[:, engine.alike]
        compare_block(found, engine, block, theirs.isolated, margins, selected)
        kept.append(
            (theirs.counted, *(x[:, engine.alike] for x in (theirs.successes, theirs.totals)))
        )
    joined = [np.concatenate([part[i] for part in kept], axis=-1) for i in range(3)]
    compare_sums(found, engine, ours, *joined)
    return found


def on_all_cores(parts: list[Block], engine: Engine, chunk: int) -> Callable[[], Any]:
    """Staged NumPy with a thread for each core: its operations let go of the interpreter."""

    def one(part: list[Block]) -> Any:
        return numpy_staged.audit(part, chunk, engine)

    def run() -> None:
        threads = usable_cores()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, [parts[i::threads] for i in range(threads)]))

    return run


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
            "numpy staged": compare_staged(engine, small, ours),
            "numpy idiomatic": compare_idiomatic(data, engine, small, ours),
        }
        few = synthetic.generate(min(n, 4 * max(CHUNKS["staged"])), seed)
        few_blocks = blocks(few, block_rows("cpu"))
        chunks = {
            "numpy staged": fastest(
                CHUNKS["staged"],
                lambda chunk: numpy_staged.audit(few_blocks, chunk, engine),
            ),
            "numpy idiomatic": fastest(
                CHUNKS["idiomatic"], lambda chunk: idiomatic(few, engine, chunk)
            ),
        }
        staged_chunk = chunks["numpy staged"]
        placed = [engine.place(block) for block in parts]
        bandwidth = read_bandwidth()
        readings: list[float] = []
        ways: dict[str, Callable[[], Any]] = {
            "herald": lambda: engine.audit(parts),
            "described": lambda: engine.audit_described(described),
            "numpy staged": lambda: numpy_staged.audit(small, staged_chunk, engine),
            "numpy staged, all cores": on_all_cores(small, engine, staged_chunk),
            "numpy idiomatic": lambda: idiomatic(data, engine, chunks["numpy idiomatic"]),
            "reference": lambda: kernel_reference.audit(sample),
            "bandwidth": lambda: readings.append(bandwidth.once()),
        }
        if accelerated:
            ways["on the device"] = lambda: engine.audit(placed)
        spent = turns(ways, rounds)
    spent["reference"] = [s * n / len(sample.rows) for s in spent["reference"]]
    with programs_timed() as stages:
        whole = seconds(lambda: engine.audit(placed))
    nbytes = sum(block.nbytes for block in parts)
    rows = report(n, spent, equal, chunks, statistics.median(readings), nbytes)
    return rows, {
        "rows_audited": n,
        "questions": engine.questions,
        "isolated_eligible_rows": int(ours["oracle_worst"].rows[0].sum()),
        "contracts": len(engine.names),
        "block_rows": len(parts[0].real),
        "bytes_a_row": nbytes / n,
        "sample_rows": len(sample.rows),
        "rounds": rounds,
        "program_seconds": {**stages, "host": whole - sum(stages.values())},
    }


def report(
    n: int,
    spent: dict[str, list[float]],
    equal: dict[str, Mismatch],
    chunks: dict[str, int],
    bandwidth: float,
    nbytes: int,
) -> list[Row]:
    """The rows of the result."""
    took, rounds = medians(spent), spent["herald"]
    name = f"audit kernels, {n:,} trajectories"
    rows = [
        Row(
            name=name,
            against=words,
            seconds=took["herald"],
            peer_seconds=took[peer],
            goal=GOALS[peer],
            detail=f"{n / took['herald']:,.0f} rows/s against {n / took[peer]:,.0f}; lowest of "
            f"{len(rounds)} rounds {lowest(rounds, spent[peer]):,.1f}x; {equal[peer]}"
            + (f"; chunks of {chunks[peer]:,}" if peer in chunks else ""),
        )
        for peer, words in NAMES.items()
    ]
    everywhere = took["numpy staged, all cores"]
    rows.append(
        Row(
            name=name,
            against=f"NumPy, the same algorithm, {usable_cores()} threads",
            seconds=took["herald"],
            peer_seconds=everywhere,
            detail=f"{n / everywhere:,.0f} rows/s",
        )
    )
    memory = "host" if "on the device" not in took else "device"
    pass_ = took.get("on the device", took["herald"])
    rows.append(
        Row(
            name=f"share of the {memory} memory's read bandwidth",
            seconds=pass_,
            measured=100 * nbytes / pass_ / bandwidth,
            unit="%",
            goal=BANDWIDTH_GOAL,
            detail=f"{nbytes / n:.0f} bytes a row (retrieved, cited, offered and support ids as "
            f"int32, a few numbers), {nbytes / pass_ / 1e9:.2f} of {bandwidth / 1e9:.1f} GB/s",
        )
    )
    rows.append(
        Row(
            name="audit of described ids",
            against="the first audit",
            seconds=took["described"],
            peer_seconds=took["herald"],
            goal=GOALS["described"],
            detail=f"{n / took['described']:,.0f} rows/s from what is known of every id "
            "(a passage, retrieved, support); the same sums to the byte",
        )
    )
    if "on the device" in took:
        rows.append(
            Row(
                name=f"{name}, blocks on the device",
                against="blocks in host memory",
                seconds=took["on the device"],
                peer_seconds=took["herald"],
                detail=f"{n / took['on the device']:,.0f} rows/s",
            )
        )
    return rows


def stage_lines(stages: dict[str, float]) -> Iterator[str]:
    """Where the time goes."""
    total = sum(stages.values())
    yield f"seconds of a pass in which every program is waited for: {total:.3f}"
    for name, spent in stages.items():
        yield f"  {name:20}{spent:8.3f}{spent / total:7.0%}"


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
    print("\n".join(stage_lines(more["program_seconds"])))


if __name__ == "__main__":
    main()
