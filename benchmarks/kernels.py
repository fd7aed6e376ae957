"""The audit kernels against the plain reference and against idiomatic NumPy, in one run.

Synthetic trajectories (`synthetic.py`): up to 40 retrieved ids, 4 citations, 8 laundering
candidates, rollouts in groups of 8, 20,000 passages; all contracts of the default manifest, both
selectors, sums per question. Blocks lie in host memory, padded as an audit pads them, before any
clock starts; moving them to the device counts. The same is done by

- herald: the functions that `herald audit` calls, in its order;
- NumPy: `numpy_audit.py`, in the chunk size that is fastest here;
- the reference: `tests/reference`, on a sample of questions, its rate extrapolated. Work on strings
  (F1, query keys, blank answers) is remembered before the clock starts, since the kernels get the
  outcome of it as numbers.

First the figures are compared: with NumPy every pair and sum, with the reference every pair and sum
of its sample. Then the three take turns. Last come the seconds of each program, with the host
waiting for each, and the share of the memory's read bandwidth: bytes of the padded blocks, counted
once, over the seconds of a whole pass.
"""

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any

import jax
import numpy as np
import synthetic
from machine import ReadBandwidth, compared, machine
from numpy_audit import Chunk, audit_chunk

from herald_jax.audit.contracts import build_contracts
from herald_jax.audit.estimates import Tally
from herald_jax.audit.operators import OPERATORS
from herald_jax.audit.staging import Block, Setup, prepare, spread
from herald_jax.audit.tables import SELECTORS, Tables
from herald_jax.audit.trials import Trial, attempt
from herald_jax.data.blocks import GroupBlock, group_blocks, oracle_block, visible_block
from herald_jax.kernels import programs
from herald_jax.manifest import Manifest
from herald_jax.types import PAD, Oracle, Visible

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import reference.detectors
import reference.records
import reference.rewards
from reference import cells, operators, pairs
from reference.settings import Settings

LAUNDERING = OPERATORS["citation_laundering"]
GOALS = {"reference": 250, "numpy": 12}
NUMPY_CHUNKS = (512, 2048, 8192)
STAGES = (
    "describe",
    "measure_originals",
    "describe_offer",
    "measure_edits",
    "judge",
    "pair_margins",
    "select",
    "sum_questions",
)
TOLERANCE = 2e-6

EXAMPLES = """examples:
  python benchmarks/kernels.py
  python benchmarks/kernels.py --rows 40000 --rounds 2 --sample 400
  python benchmarks/kernels.py --out benchmarks/results/kernels.json
"""


@dataclass(frozen=True)
class Staged:
    """A block in host memory."""

    place: GroupBlock
    visible: Visible
    oracle: Oracle
    candidates: np.ndarray  # int32 [K, B]

    @property
    def nbytes(self) -> int:
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.visible, self.oracle)))


def stage(data: synthetic.Synthetic) -> tuple[Setup, list[Staged]]:
    """Shapes and blocks as an audit of the same trajectories has them."""
    manifest = Manifest()
    pool = synthetic.pool(data)
    setup = prepare(pool, manifest, build_contracts(manifest), None)
    blocks = []
    for place in group_blocks(pool.rows.question, setup.block_rows):
        offered = np.where(place.rows >= 0, data.candidates[place.rows].T, PAD)
        visible = visible_block(pool, place.rows, setup.widths)
        oracle = oracle_block(pool, place.rows, setup.widths)
        blocks.append(Staged(place, visible, oracle, np.ascontiguousarray(offered)))
    return setup, blocks


def herald_trial(setup: Setup, staged: Staged) -> Trial:
    """One block from host memory to selected margins (`audit.staging`, `audit.trials`)."""
    rows = len(staged.place.rows)
    visible, oracle = spread(staged.visible, rows), spread(staged.oracle, rows)
    state = programs.describe(visible, setup.passages)
    originals = programs.measure_originals(state, oracle, setup.rules)
    block = Block(setup, staged.place, visible, oracle, state, originals, None)
    return attempt(block, LAUNDERING, staged.candidates)


def herald_audit(setup: Setup, blocks: list[Staged]) -> dict[str, Tally]:
    """All blocks to sums per question, by selector (`audit.tables`)."""
    tables = Tables(setup)
    for staged in blocks:
        trial = herald_trial(setup, staged)
        tables.add(("operators", LAUNDERING.name), trial, trial.block.real)
    return {name: tables.tally(("operators", LAUNDERING.name, name)) for name in SELECTORS}


def numpy_audit(data: synthetic.Synthetic, setup: Setup, chunk: int) -> list[Chunk]:
    """All rows; of each chunk only the sums are kept, the rest would fill the memory."""
    weights = setup.contracts.weights(external_base=False).astype(np.float32)
    kept = []
    for start in range(0, len(data), chunk):
        rows = slice(start, min(start + chunk, len(data)))
        found = audit_chunk(data, rows, weights, setup.tie_tolerance)
        kept.append((found.counted, found.successes, found.totals))
    return kept


@dataclass(frozen=True)
class Sample:
    """Rows of some questions as the reference reads them, with what it needs beside them."""

    rows: np.ndarray
    records: list[tuple[dict, dict, list[str]]]
    corpus: set[str]
    settings: Settings

    @classmethod
    def of(cls, data: synthetic.Synthetic, size: int) -> "Sample":
        n_questions = len(data) // synthetic.ROLLOUTS
        chosen = np.linspace(0, n_questions, size // synthetic.ROLLOUTS, endpoint=False, dtype=int)
        rows = (chosen[:, None] * synthetic.ROLLOUTS + np.arange(synthetic.ROLLOUTS)).ravel()
        records = [synthetic.record(data, int(row)) for row in rows]
        return cls(rows, records, synthetic.corpus(), Settings())


@contextmanager
def strings_remembered() -> Iterator[None]:
    """The reference with its work on strings remembered from call to call."""
    places = [
        (reference.rewards, "f1"),
        (reference.detectors, "query_key"),
        (reference.detectors, "is_blank"),
        (reference.records, "is_blank"),
    ]
    before = [getattr(module, name) for module, name in places]
    for (module, name), function in zip(places, before, strict=True):
        setattr(module, name, cache(function))
    try:
        yield
    finally:
        for (module, name), function in zip(places, before, strict=True):
            setattr(module, name, function)


def reference_outcomes(sample: Sample) -> list[pairs.Outcome]:
    operator = operators.OPERATORS[LAUNDERING.name]

    def outcome(trajectory: dict, gold: dict, candidates: list[str]) -> pairs.Outcome:
        def judged(one: dict) -> reference.rewards.Judged:
            return reference.rewards.judge(one, gold, sample.corpus, sample.settings)

        edits = operator.edits(trajectory, gold, sample.corpus, candidates)
        made = [judged(edit) for edit in edits]
        return pairs.outcome(judged(trajectory), made, operator, sample.settings)

    return [outcome(*record) for record in sample.records]


def reference_sums(
    sample: Sample, outcomes: list[pairs.Outcome]
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Selector -> contract -> question -> rows, successes and sum of margins."""
    contracts = reference.rewards.contracts(sample.settings)
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for selector, select in cells.SELECTORS.items():
        found[selector] = {}
        for name, contract in contracts.items():
            sums: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0])
            for outcome in outcomes:
                margin = select(outcome, contract)
                if margin is not None:
                    of_question = sums[outcome.original.trajectory["question_id"]]
                    of_question[0] += 1
                    of_question[1] += cells.success(margin, sample.settings)
                    of_question[2] += margin
            found[selector][name] = sums
    return found


def reference_audit(sample: Sample) -> None:
    reference_sums(sample, reference_outcomes(sample))


class Mismatch:
    """Largest difference of numbers met so far; anything that must be equal and is not ends it."""

    def __init__(self, of: str) -> None:
        self._of = of
        self.largest = 0.0
        self.numbers = 0

    def equal(self, what: str, ours: Any, theirs: Any) -> None:
        self.numbers += np.size(ours)
        if not np.array_equal(ours, theirs):
            sys.exit(f"{self._of}: {what} differ")

    def close(self, what: str, ours: np.ndarray, theirs: np.ndarray, within: float) -> None:
        self.numbers += np.size(ours)
        apart = float(np.max(np.abs(ours - theirs), initial=0.0))
        if not apart <= within:
            sys.exit(f"{self._of}: {what} differ by {apart:.2g}, more than {within:.2g}")
        self.largest = max(self.largest, apart)


def compare_numpy(
    data: synthetic.Synthetic, setup: Setup, blocks: list[Staged], tallies: dict[str, Tally]
) -> Mismatch:
    """Every pair, both selectors, and every sum."""
    found = Mismatch("NumPy")
    weights = setup.contracts.weights(external_base=False).astype(np.float32)
    for staged in blocks:
        trial, real = herald_trial(setup, staged), staged.place.rows >= 0
        at, groups = staged.place.rows[real], staged.place.groups[staged.place.groups >= 0]
        rows = slice(int(at[0]), int(at[-1]) + 1)
        theirs = audit_chunk(data, rows, weights, setup.tie_tolerance)
        isolated = np.asarray(trial.verdicts.isolated)[:, real].T
        some = isolated.any(axis=1)
        found.equal("isolated pairs", isolated, theirs.isolated)
        margins = np.moveaxis(np.asarray(trial.margins)[..., real], 0, -1).swapaxes(0, 1)
        found.close("margins", margins[isolated], theirs.margins[isolated], TOLERANCE)
        for selector in SELECTORS:
            ours = np.asarray(getattr(trial.selected, selector)).T[real][some]
            found.close(selector, ours, getattr(theirs, selector)[some], TOLERANCE)
        for s, selector in enumerate(SELECTORS):
            tally = tallies[selector]
            sums = tally.totals[:, groups].T / setup.scale
            found.equal("rows of questions", tally.rows[:, groups].T, theirs.counted)
            found.equal("successes", tally.successes[:, groups].T, theirs.successes[s])
            found.close("sums", sums, theirs.totals[s], TOLERANCE * synthetic.ROLLOUTS)
    return found


def compare_reference(
    sample: Sample, setup: Setup, blocks: list[Staged], tallies: dict[str, Tally]
) -> Mismatch:
    """Every pair of the sample, its eligibility, its margins, and the sums of its questions."""
    found = Mismatch("reference")
    outcomes = dict(zip(sample.rows.tolist(), reference_outcomes(sample), strict=True))
    contracts = reference.rewards.contracts(sample.settings)
    found.equal("names of contracts", list(contracts), list(setup.contracts.names))
    for staged in blocks:
        columns = [c for c, row in enumerate(staged.place.rows.tolist()) if row in outcomes]
        if not columns:
            continue
        trial = herald_trial(setup, staged)
        margins, isolated = np.asarray(trial.margins), np.asarray(trial.verdicts.isolated)
        selected = {name: np.asarray(getattr(trial.selected, name)) for name in SELECTORS}
        counts = [
            np.asarray(getattr(trial.verdicts, name))
            for name in ("edits", "eligible_edits", "isolated_edits")
        ]
        for c in columns:
            outcome = outcomes[int(staged.place.rows[c])]
            found.equal("statuses", status(*(int(count[c]) for count in counts)), outcome.status)
            found.equal("numbers of pairs", int(isolated[:, c].sum()), len(outcome.pairs))
            if not outcome.pairs:
                continue
            theirs = np.array([outcome.margins(contract) for contract in contracts.values()])
            found.close("margins", margins[:, isolated[:, c], c], theirs, TOLERANCE)
            for selector, select in cells.SELECTORS.items():
                picked = np.array([select(outcome, one) for one in contracts.values()], float)
                found.close(selector, selected[selector][:, c], picked, TOLERANCE)
    sums = reference_sums(sample, list(outcomes.values()))
    questions = np.unique(sample.rows // synthetic.ROLLOUTS)
    for selector, by_contract in sums.items():
        tally = tallies[selector]
        for j, of_question in enumerate(by_contract.values()):
            theirs = np.array([of_question.get(f"q{q}", [0, 0, 0.0]) for q in questions])
            found.equal("rows of questions", tally.rows[j, questions], theirs[:, 0])
            found.equal("successes", tally.successes[j, questions], theirs[:, 1])
            ours = tally.totals[j, questions] / setup.scale
            found.close("sums", ours, theirs[:, 2], TOLERANCE * synthetic.ROLLOUTS)
    return found


def status(edits: int, eligible: int, isolated: int) -> str:
    if isolated:
        return "isolated"
    if eligible:
        return "not_isolated"
    return "ineligible" if edits else "no_edit"


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@contextmanager
def stages_timed() -> Iterator[dict[str, float]]:
    """Seconds of every program that is called within, its result waited for."""
    spent: dict[str, float] = dict.fromkeys(STAGES, 0.0)

    def timed(name: str, program: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(program)
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            out = jax.block_until_ready(program(*args, **kwargs))
            spent[name] += time.perf_counter() - start
            return out

        return run

    before = {name: getattr(programs, name) for name in STAGES}
    for name, program in before.items():
        setattr(programs, name, timed(name, program))
    try:
        yield spent
    finally:
        for name, program in before.items():
            setattr(programs, name, program)


def fastest_chunk(data: synthetic.Synthetic, setup: Setup) -> int:
    """The chunk size in which NumPy is fastest on this machine, tried on the first rows."""
    weights = setup.contracts.weights(external_base=False).astype(np.float32)
    rows = min(len(data), 4 * max(NUMPY_CHUNKS)) // synthetic.ROLLOUTS * synthetic.ROLLOUTS

    def run(chunk: int) -> None:
        for start in range(0, rows, chunk):
            part = slice(start, min(start + chunk, rows))
            audit_chunk(data, part, weights, setup.tie_tolerance)

    return min(NUMPY_CHUNKS, key=lambda chunk: min(seconds(lambda: run(chunk)) for _ in range(3)))


def measure(n: int, sample_size: int, rounds: int, seed: int) -> dict[str, Any]:
    before = machine()
    data = synthetic.generate(n, seed)
    setup, blocks = stage(data)
    sample = Sample.of(data, sample_size)
    with strings_remembered():
        tallies = herald_audit(setup, blocks)  # compiles
        with_numpy = compare_numpy(data, setup, blocks, tallies)
        with_reference = compare_reference(sample, setup, blocks, tallies)
        chunk = fastest_chunk(data, setup)
        bandwidth = ReadBandwidth()

        ways: dict[str, Callable[[], Any]] = {
            "herald": lambda: herald_audit(setup, blocks),
            "numpy": lambda: numpy_audit(data, setup, chunk),
            "reference": lambda: reference_audit(sample),
        }
        rows = {"herald": n, "numpy": n, "reference": len(sample.rows)}
        a_row: dict[str, list[float]] = {name: [] for name in ways}
        read = []
        for _ in range(rounds):
            for name, way in ways.items():
                a_row[name].append(seconds(way) / rows[name])
            read.append(bandwidth.once())
    with stages_timed() as spent:
        whole = seconds(lambda: herald_audit(setup, blocks))
    bytes_a_row = sum(staged.nbytes + staged.candidates.nbytes for staged in blocks) / n
    medians = {name: statistics.median(of_row) for name, of_row in a_row.items()}
    against = {name: compared(a_row["herald"], a_row[name]) for name in GOALS}
    isolated = int(tallies["oracle_worst"].rows[0].sum())
    return {
        "claim": "audit kernels: laundering, all contracts, both selectors, sums per question",
        "machine": before,
        "rows": n,
        "questions": len(data.support),
        "isolated_eligible_rows": isolated,
        "contracts": len(setup.contracts.names),
        "widths": {
            "retrieved": setup.widths.retrieved,
            "citations": setup.widths.citations,
            "support": setup.widths.support,
            "candidates": synthetic.CANDIDATES,
        },
        "block_rows": setup.block_rows,
        "numpy_chunk": chunk,
        "sample_rows": len(sample.rows),
        "rounds": rounds,
        "rows_per_second": {name: 1 / of_row for name, of_row in medians.items()},
        "against": {
            name: {**found, "goal": GOALS[name], "met": found["ratio"] >= GOALS[name]}
            for name, found in against.items()
        },
        "equal": {
            "numpy": {"numbers": with_numpy.numbers, "largest_difference": with_numpy.largest},
            "reference": {
                "numbers": with_reference.numbers,
                "largest_difference": with_reference.largest,
            },
        },
        "stage_seconds": {**spent, "host": whole - sum(spent.values())},
        "read_bandwidth": {
            "bytes_a_second": statistics.median(read),
            "bytes_a_row": bytes_a_row,
            "share": bytes_a_row / medians["herald"] / statistics.median(read),
        },
    }


def lines(result: dict[str, Any]) -> Iterator[str]:
    rates = result["rows_per_second"]
    yield (
        f"{result['rows']:,} rows of {result['questions']:,} questions, "
        f"{result['isolated_eligible_rows']:,} isolated-eligible, {result['contracts']} contracts; "
        f"blocks [{result['widths']['retrieved']}, {result['block_rows']}]"
    )
    for name, found in result["equal"].items():
        yield (
            f"equal to {name}: {found['numbers']:,} numbers compared, counts exactly, margins "
            f"within {found['largest_difference']:.1g}"
        )
    yield f"{'':12}{'rows/s':>14}{'ratio':>9}{'lowest':>9}{'goal':>7}"
    yield f"{'herald':12}{rates['herald']:14,.0f}"
    for name, found in result["against"].items():
        yield (
            f"{name:12}{rates[name]:14,.0f}{found['ratio']:8.1f}x"
            f"{found['lowest_ratio_of_a_round']:8.1f}x{found['goal']:6}x  "
            + ("met" if found["met"] else "MISSED")
        )
    total = sum(result["stage_seconds"].values())
    yield f"seconds of a pass in which every program is waited for: {total:.3f}"
    for name, spent in result["stage_seconds"].items():
        yield f"  {name:20}{spent:8.3f}{spent / total:7.0%}"
    read = result["read_bandwidth"]
    yield (
        f"memory read at {read['share']:.0%} of {read['bytes_a_second'] / 1e9:.1f} GB/s "
        f"({read['bytes_a_row']:.0f} bytes a row)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="a multiple of 8")
    parser.add_argument("--sample", type=int, default=2000, help="rows of the reference, likewise")
    parser.add_argument("--rounds", type=int, default=5, help="turns of all three")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    for name in ("rows", "sample"):
        value = getattr(options, name)
        if value < synthetic.ROLLOUTS or value % synthetic.ROLLOUTS:
            parser.error(f"--{name} must be a positive multiple of {synthetic.ROLLOUTS}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    result = measure(options.rows, min(options.sample, options.rows), options.rounds, options.seed)
    print("\n".join(lines(result)))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
