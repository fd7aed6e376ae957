"""Cluster bootstrap against NumPy and SciPy: intervals that agree, and how many times faster.

Half of the statistics are success shares over 1 to 8 rows of a question, half are mean margins, as
an audit has them; each question's margins are floats of their own, or in the *tied* table one of a
few dozen values. For each number of questions, in one run:

1. `bootstrap_replicates` is called with several block sizes and must give the same bytes;
2. `bootstrap_intervals`, which audits call, and what a user would write instead take turns: NumPy
   one replicate at a time, `x[rng.integers(0, n, n)].mean(axis=0)`, NumPy in blocks,
   `x[rng.integers(0, n, (50, n))].mean(axis=1)`, and `scipy.stats.bootstrap` (percentile,
   vectorised, in batches), all with drawing and percentiles included;
3. the interval ends must agree as closely as two random streams do.

Ours always draws all replicates. Where the others would take minutes they draw fewer and their time
is scaled up, which the line says; our ends are then compared with the normal approximation. The
goals are against the faster of the two NumPy ways.

  python benchmarks/bootstrap.py --quick
  python benchmarks/bootstrap.py --questions 593 --rounds 20
  python benchmarks/bootstrap.py --out benchmarks/results/bootstrap.json

With `--report-size` it times what a report of 150 tables asks for at a million questions instead:

  python benchmarks/bootstrap.py --report-size --out benchmarks/results/bootstrap_report.json
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from machine import machine
from measured import Row, arguments, finish, lowest, medians, seconds
from scipy import stats

from herald_jax.kernels import resample
from herald_jax.kernels.bootstrap import (
    bootstrap_intervals,
    bootstrap_replicates,
    point_estimates,
)
from herald_jax.kernels.columns import plan_columns

GOALS = {593: 15.0, 10_000: 15.0, 100_000: 10.0, 1_000_000: 30.0}
TIED_GOAL = 30.0  # of a million questions, against floats
STATISTICS, REPLICATES = 24, 5000
BLOCK = 50
BLOCKS = (36, 17, 250)
TAILS = (0.025, 0.975)
# An end of 5,000 replicates has a standard error of 0.038 of their standard deviation (a 2.5 %
# quantile of a normal), the difference of two ends 0.054: this is five and a half of those.
AGREE = 0.3
TABLES, VALUES = 150, 36

Way = Callable[[int], np.ndarray]  # from a seed to float64 [D, 2]


def table(n: int, seed: int, *, tied: bool = False) -> np.ndarray:
    """float64 [n, D] of n questions, contiguous by column as audits have them."""
    rng = np.random.default_rng(seed)
    half = STATISTICS // 2
    rows = rng.integers(1, 9, n)
    shares = [rng.binomial(rows, 0.1) / rows for _ in range(half)]
    margins = [rng.normal(-0.4, 0.3, n) for _ in range(STATISTICS - half)]
    if tied:
        margins = [np.round(margin * 8) / 8 for margin in margins]
    return np.stack([*shares, *margins]).T


def numpy_rows(x: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n = len(x)
    means = np.stack([x[rng.integers(0, n, n)].mean(axis=0) for _ in range(replicates)])
    return np.quantile(means, TAILS, axis=0, method="inverted_cdf").T


def numpy_blocks(x: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n = len(x)
    means = np.concatenate(
        [
            x[rng.integers(0, n, (min(BLOCK, replicates - first), n))].mean(axis=1)
            for first in range(0, replicates, BLOCK)
        ]
    )
    return np.quantile(means, TAILS, axis=0, method="inverted_cdf").T


def scipy_bootstrap(x: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    found = stats.bootstrap(
        (x,),
        np.mean,
        n_resamples=replicates,
        batch=max(1, min(BLOCK, 2**22 // x.size)),
        vectorized=True,
        axis=0,
        method="percentile",
        random_state=np.random.default_rng(seed),
    )
    return np.stack([found.confidence_interval.low, found.confidence_interval.high], axis=1)


def ours(x: np.ndarray) -> Way:
    return lambda seed: bootstrap_intervals(x, None, seed=seed, replicates=REPLICATES)


def how(x: np.ndarray) -> str:
    """How the columns are drawn."""
    plan = plan_columns(x, None)
    values = [len(column.times) for column in plan.drawn if column.times is not None]
    clusters = len(plan.drawn) - len(values)
    named = []
    if values:
        named.append(f"{len(values)} columns by {min(values)} to {max(values)} values")
    if clusters:
        tiles = -(-len(x) // resample.TILE)
        of = "by indices" if len(x) <= resample.INDICES else f"in batches, tiles: {tiles}"
        named.append(f"{clusters} columns {of}")
    return ", ".join(named)


def check_blocks(x: np.ndarray, seed: int) -> None:
    """Blocks of any size give the same bytes."""
    few = len(x) > 10**4
    replicates = 100 if few else 500
    whole = bootstrap_replicates(x, None, seed=seed, replicates=replicates)
    for block in BLOCKS[:1] if few else BLOCKS:
        again = bootstrap_replicates(x, None, seed=seed, replicates=replicates, block=block)
        if again.tobytes() != whole.tobytes():
            sys.exit(f"n = {len(x)}: blocks of {block} replicates give other bytes")


def check_ends(x: np.ndarray, ends: np.ndarray, others: list[np.ndarray]) -> float:
    """The farthest that ends are from others, in standard deviations of the replicates."""
    deviation = (x.std(axis=0) / np.sqrt(len(x)))[:, None]
    if not others:
        others = [x.mean(axis=0)[:, None] + deviation * stats.norm.ppf(TAILS)]
    apart = max(float((np.abs(ends - other) / deviation).max()) for other in others)
    if apart > AGREE:
        sys.exit(f"n = {len(x)}: interval ends are {apart:.3f} standard deviations apart")
    return apart


def take_turns(
    ways: dict[str, tuple[Way, int]], rounds: int, seed: int
) -> tuple[dict[str, list[float]], dict[str, np.ndarray]]:
    """Seconds of each round, scaled to all replicates from those that are drawn; the last ends."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    ends: dict[str, np.ndarray] = {}
    for turn in range(rounds):
        for name, (way, drawn) in ways.items():
            start = time.perf_counter()
            ends[name] = way(seed + turn)
            spent[name].append((time.perf_counter() - start) * REPLICATES / drawn)
    return spent, ends


def warm_up(x: np.ndarray, seed: int) -> None:
    """Compiles what a call needs: two tiles have the shapes of a hundred, the shares have ties."""
    for part in (x[: 2 * resample.TILE], x[:, : x.shape[1] // 2]):
        bootstrap_intervals(part, None, seed=seed, replicates=REPLICATES)


def measure(n: int, options: argparse.Namespace) -> list[Row]:
    """Rows of one number of questions."""
    x = table(n, options.seed)
    warm_up(x, options.seed)
    check_blocks(x[: 2 * resample.TILE], options.seed)

    budget = 3 * 10**6 if options.quick else 5 * 10**7 if n < 10**5 else 10**7
    drawn = min(REPLICATES, max(4, budget // n))
    fewer = max(2, drawn // 4)
    by_rows = np.ascontiguousarray(x)  # each row in one place, as gathers want it
    rows, blocks, scipy = "NumPy, one by one", "NumPy, blocks of 50", "scipy.stats.bootstrap"
    ways: dict[str, tuple[Way, int]] = {
        "ours": (ours(x), REPLICATES),
        rows: (lambda seed: numpy_rows(by_rows, drawn, seed), drawn),
        scipy: (lambda seed: scipy_bootstrap(x, fewer, seed), fewer),
    }
    if n * BLOCK < 10**6:  # beyond, a block is hundreds of megabytes
        ways[blocks] = (lambda seed: numpy_blocks(by_rows, drawn, seed), drawn)
    rounds = options.rounds if n < 10**5 else min(options.rounds, 1 if options.quick else 3)
    spent, ends = take_turns(ways, rounds, options.seed)
    whole = [
        ends[name] for name, (_, count) in ways.items() if name != "ours" and count >= REPLICATES
    ]
    apart = check_ends(x, ends["ours"], whole)

    took = medians(spent)
    faster = min((name for name in (rows, blocks) if name in took), key=took.__getitem__)
    found = []
    for peer, goal in ((faster, GOALS.get(n)), (scipy, None)):
        count = ways[peer][1]
        scaled = "" if count >= REPLICATES else f"; {peer} scaled up from {count} replicates"
        found.append(
            Row(
                name=f"{n:,} questions x {STATISTICS}",
                against=peer,
                seconds=took["ours"],
                peer_seconds=took[peer],
                goal=goal,
                detail=f"{how(x)}; rounds: {rounds}, lowest "
                f"{lowest(spent['ours'], spent[peer]):.1f}x{scaled}; "
                f"ends {apart:.3f} standard deviations apart",
            )
        )
    if n == 10**6:
        found.append(measure_tied(n, took["ours"], options))
    return found


def measure_tied(n: int, untied: float, options: argparse.Namespace) -> Row:
    x = table(n, options.seed, tied=True)
    warm_up(x, options.seed)
    spent, ends = take_turns({"ours": (ours(x), REPLICATES)}, options.rounds, options.seed)
    apart = check_ends(x, ends["ours"], [])
    return Row(
        name=f"{n:,} tied questions x {STATISTICS}",
        against="ours untied",
        seconds=medians(spent)["ours"],
        peer_seconds=untied,
        goal=TIED_GOAL,
        detail=f"{how(x)}; ends {apart:.3f} standard deviations apart",
    )


def report_table(n: int, seed: int, *, grid: bool) -> np.ndarray:
    """float64 [n, 22]: 11 shares of successes and 11 mean margins over 8 rollouts of a question.

    A rollout has one of 36 margins: multiples of 1/40, as rewards have whose weights are, or floats
    without a common measure, as black-box rewards give. Sums are in fixed point, as in an audit.
    """
    rng = np.random.default_rng(seed)
    columns = [rng.binomial(8, rate, n) / 8 for rate in np.linspace(0.01, 0.4, 11)]
    units = 40.0 if grid else 2.0**24
    for _ in range(11):
        margins = np.rint(rng.normal(-0.4, 0.3, VALUES) * units)
        chance = rng.dirichlet(np.full(VALUES, 0.5))
        total = sum(margins[rng.choice(VALUES, n, p=chance)] for _ in range(8))
        columns.append(total / (8 * units))
    return np.stack(columns).T


def report_size(n: int, options: argparse.Namespace) -> list[Row]:
    """Seconds that intervals and points of a whole report take, from a few of its tables."""
    found = []
    for grid in (True, False):
        x = report_table(n, options.seed, grid=grid)
        if grid:
            ours(x)(options.seed)
        else:
            warm_up(x, options.seed)
        measured = 2 if options.quick else 10 if grid else 5
        spent, _ = take_turns({"ours": (ours(x), REPLICATES)}, measured, options.seed)
        points = seconds(lambda x=x: point_estimates(x, None))
        intervals = sum(spent["ours"]) / measured
        kind = "margins on a grid" if grid else "margins without a common measure"
        found.append(
            Row(
                name=f"{TABLES} tables x 22 columns, {n:,} questions x 8, {kind}",
                seconds=TABLES * (intervals + points),
                detail=f"{how(x)}; a table's intervals {intervals:.2f} s, points {points:.2f} s, "
                f"from {measured} tables",
            )
        )
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--questions", type=int, nargs="+", help="default: all with a goal")
    parser.add_argument("--rounds", type=int, help="turns of all ways: 5, or 3 when quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report-size", action="store_true", help="time a whole report instead")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 5)
    where: dict[str, Any] = machine()
    rows: list[Row] = []
    for n in options.questions or ([10**6] if options.report_size else GOALS):
        rows += report_size(n, options) if options.report_size else measure(n, options)
    claim = "cluster bootstrap, 5,000 replicates, identical for any block size"
    finish(options, claim, where, rows)


if __name__ == "__main__":
    main()
