"""Cluster bootstrap against NumPy and SciPy: intervals that agree, and how many times faster.

Half of the statistics are success shares over 1 to 8 rows of a question, half are mean margins, as
an audit has them; the margins are floats of their own for each question (*floats*) or one of a few
dozen values (*ties*). For each number of questions, in one run:

1. `bootstrap_replicates` is called with several block sizes and must give the same bytes;
2. `bootstrap_intervals`, which audits call, and what a user would write instead are timed by turns,
   so that the load of the machine falls on all: NumPy one replicate at a time,
   `x[rng.integers(0, n, n)].mean(axis=0)`, NumPy in blocks,
   `x[rng.integers(0, n, (50, n))].mean(axis=1)`, and `scipy.stats.bootstrap` (percentile,
   vectorised, in batches), all with drawing and percentiles included;
3. the interval ends must agree as closely as two random streams do.

Ours always draws all replicates. Where the others would take minutes they draw fewer and their time
is scaled up, which is said; their ends are then compared with normal approximations instead. The
ratio to NumPy is to the faster of its two ways, from the medians over rounds.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine
from scipy import stats

from herald_jax.kernels import resample
from herald_jax.kernels.bootstrap import (
    bootstrap_intervals,
    bootstrap_replicates,
    point_estimates,
)
from herald_jax.kernels.columns import plan_columns

GOALS = {593: 15.0, 10_000: 15.0, 100_000: 10.0, 1_000_000: 30.0}  # against NumPy
TIES_GOAL = 30.0  # floats against ties, at a million questions
REPLICATES = 5000
BLOCK = 50
BLOCKS = (17, 64, 250)
TAILS = (0.025, 0.975)
# An end of 5,000 replicates has a standard error of 0.038 of their standard deviation (a 2.5 %
# quantile of a normal), the difference of two ends 0.054: this is five and a half of those.
AGREE = 0.3

EXAMPLES = """examples:
  python benchmarks/bootstrap.py --quick
  python benchmarks/bootstrap.py --rounds 7 --out benchmarks/results/bootstrap.json
  python benchmarks/bootstrap.py --report-size
  python benchmarks/bootstrap.py --coverage
"""


def floats(n: int, n_statistics: int, seed: int) -> np.ndarray:
    """float64 [n, D] values of n questions, contiguous by column as audits have them."""
    rng = np.random.default_rng(seed)
    half = n_statistics // 2
    rows = rng.integers(1, 9, n)
    shares = [rng.binomial(rows, 0.1) / rows for _ in range(half)]
    margins = [rng.normal(-0.4, 0.3, n) for _ in range(n_statistics - half)]
    return np.asfortranarray(np.stack(shares + margins, axis=1))


def ties(n: int, n_statistics: int, seed: int) -> np.ndarray:
    """As `floats`, with margins among 25 values or so."""
    x = floats(n, n_statistics, seed)
    half = n_statistics // 2
    x[:, half:] = np.round(x[:, half:] * 8) / 8
    return x


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


@dataclass(frozen=True)
class Timed:
    """Seconds of one way over rounds, for all replicates."""

    seconds: list[float]
    replicates: int  # that were drawn

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def row(
    name: str, against: str, ours: float, theirs: float, goal: float | None, **detail: Any
) -> dict[str, Any]:
    ratio = theirs / ours
    return {
        "name": name,
        "against": against,
        "ratio": ratio,
        "goal": goal,
        "met": None if goal is None else ratio >= goal,
        "seconds": ours,
        "peer_seconds": theirs,
        "detail": detail,
    }


def way(x: np.ndarray) -> str:
    """How the columns are drawn."""
    plan = plan_columns(x, None)
    values = [len(column.times) for column in plan.drawn if column.times is not None]
    clusters = len(plan.drawn) - len(values)
    tiles = -(-len(x) // resample.TILE)
    named = []
    if values:
        named.append(f"{len(values)} columns by {min(values)}-{max(values)} values")
    if clusters:
        how = "indices" if len(x) <= resample.INDICES else f"batches, {tiles} tiles"
        named.append(f"{clusters} columns by {how}")
    return "; ".join(named)


def timed(
    ways: dict[str, tuple[Callable[[int], np.ndarray], int]],
    rounds: int,
    replicates: int,
    seed: int,
) -> tuple[dict[str, Timed], dict[str, np.ndarray]]:
    """Ways by turns: their times, scaled to `replicates`, and the ends of the last round."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    ends = {}
    for turn in range(rounds):
        for name, (call, drawn) in ways.items():
            start = time.perf_counter()
            ends[name] = call(seed + turn)
            seconds[name].append((time.perf_counter() - start) * replicates / drawn)
    return {name: Timed(seconds[name], ways[name][1]) for name in ways}, ends


def check_blocks(x: np.ndarray, replicates: int, seed: int) -> None:
    whole = bootstrap_replicates(x, None, seed=seed, replicates=replicates)
    for block in BLOCKS:
        again = bootstrap_replicates(x, None, seed=seed, replicates=replicates, block=block)
        if again.tobytes() != whole.tobytes():
            sys.exit(f"n = {len(x)}: blocks of {block} replicates give other bytes")


def check_ends(x: np.ndarray, ends: np.ndarray, others: dict[str, np.ndarray]) -> float:
    """The farthest that ends are apart, in standard deviations of the replicates."""
    deviation = x.std(axis=0) / np.sqrt(len(x))
    normal = x.mean(axis=0)[:, None] + deviation[:, None] * stats.norm.ppf(TAILS)
    # At a few hundred questions the replicates are skewed, and the others draw all of them.
    others = others or {"normal": normal}
    apart = max(
        float((np.abs(ends - other) / deviation[:, None]).max()) for other in others.values()
    )
    if apart > AGREE:
        sys.exit(f"n = {len(x)}: interval ends are {apart:.3f} standard deviations apart")
    return apart


def measure(n: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of one number of questions."""
    seed, replicates, quick = options.seed, options.replicates, options.quick
    x = floats(n, options.statistics, seed)
    # Compiles the programs that all questions need; two tiles have the shapes of a hundred.
    bootstrap_intervals(x[: 2 * resample.TILE], None, seed=seed, replicates=replicates)
    few = min(replicates, 500 if n < 10**5 else 100)
    check_blocks(x[: 2 * resample.TILE], few, seed)
    budget = 3 * 10**6 if quick else 5 * 10**7 if n < 10**5 else 10**7
    drawn = min(replicates, max(4, budget // n))
    by_rows = np.ascontiguousarray(x)  # a row in one place, as gathers want it

    ways: dict[str, tuple[Callable[[int], np.ndarray], int]] = {
        "ours": (lambda s: bootstrap_intervals(x, None, seed=s, replicates=replicates), replicates),
        "NumPy, a replicate at a time": (lambda s: numpy_rows(by_rows, drawn, s), drawn),
    }
    if n * BLOCK < 10**6:  # otherwise a block is hundreds of megabytes
        ways["NumPy, blocks of 50"] = (lambda s: numpy_blocks(by_rows, drawn, s), drawn)
    for_scipy = max(2, drawn // 4)
    ways["scipy.stats.bootstrap"] = (lambda s: scipy_bootstrap(x, for_scipy, s), for_scipy)

    rounds = options.rounds if n < 10**5 else min(options.rounds, 1 if quick else 3)
    times, ends = timed(ways, rounds, replicates, seed)
    full = {name: ends[name] for name in ends if name != "ours" and ways[name][1] == replicates}
    apart = check_ends(x, ends["ours"], full)
    fastest = min((name for name in times if "NumPy" in name), key=lambda name: times[name].median)
    detail = {"way": way(x), "rounds": rounds, "ends_apart_in_standard_deviations": apart}
    found = [
        row(
            f"{n:,} questions x {options.statistics}",
            against,
            times["ours"].median,
            times[against].median,
            goal,
            lowest_ratio_of_a_round=min(
                b / a for a, b in zip(times["ours"].seconds, times[against].seconds, strict=True)
            ),
            peer_replicates=times[against].replicates,
            **detail,
        )
        for against, goal in ((fastest, GOALS.get(n)), ("scipy.stats.bootstrap", None))
    ]
    if n >= 10**6:
        tied = ties(n, options.statistics, seed)
        call = {"ours": (lambda s: bootstrap_intervals(tied, None, seed=s), REPLICATES)}
        few_times, few_ends = timed(call, max(3, rounds), REPLICATES, seed)
        detail = {
            "way": way(tied),
            "ends_apart_in_standard_deviations": check_ends(tied, few_ends["ours"], {}),
        }
        found.append(
            row(
                f"{n:,} tied questions x {options.statistics}",
                "ours with floats",
                few_times["ours"].median,
                times["ours"].median,
                TIES_GOAL,
                **detail,
            )
        )
    return found


def report_tables(n: int, seed: int, *, grid: bool) -> np.ndarray:
    """float64 [n, 22]: 11 shares of successes and 11 mean margins over 8 rollouts of a question.

    The margins of a rollout are among 36 values, multiples of 1/40 (rewards made of weights like
    0.1 and 0.25) or floats without any common measure (black-box rewards).
    """
    rng = np.random.default_rng(seed)
    columns = [rng.binomial(8, rate, n) / 8 for rate in np.linspace(0.01, 0.4, 11)]
    for _ in range(11):
        values = rng.normal(-0.4, 0.3, 36)
        # In fixed point, as an audit adds margins up.
        values = np.round(values * 40) / 40 if grid else np.round(values * 2**24) / 2**24
        chance = rng.dirichlet(np.full(36, 0.5))
        total = np.zeros(n)
        for _ in range(8):
            total += rng.choice(values, n, p=chance)
        # Sums in fixed point are exact: equal totals are equal floats.
        columns.append(np.round(total * 2**24) / 2**24 / 8)
    return np.asfortranarray(np.stack(columns, axis=1))


def report_size(n: int, tables: int, measured: int, seed: int) -> list[dict[str, Any]]:
    """Seconds that the intervals and the points of a whole report take."""
    found = []
    for grid in (True, False):
        x = report_tables(n, seed, grid=grid)
        bootstrap_intervals(x, None, seed=seed)
        count = tables if measured == 0 else min(tables, measured)
        start = time.perf_counter()
        for table in range(count):
            bootstrap_intervals(x, None, seed=seed + table)
        intervals = (time.perf_counter() - start) * tables / count
        start = time.perf_counter()
        point_estimates(x, None)
        points = (time.perf_counter() - start) * tables
        kind = "margins of a grid" if grid else "margins of any size"
        found.append(
            {
                "name": f"report of {tables} tables x 22 columns, {n:,} questions, {kind}",
                "against": None,
                "ratio": None,
                "goal": None,
                "met": None,
                "seconds": intervals + points,
                "peer_seconds": None,
                "detail": {
                    "way": way(x),
                    "seconds_of_intervals": intervals,
                    "seconds_of_points": points,
                    "tables_measured": count,
                },
            }
        )
    return found


def coverage(trials: int, seed: int) -> list[dict[str, Any]]:
    """How often 95 % intervals cover, by each way to draw, in simulated logs.

    Hits are binomial over 1 to 8 rows with a rate of mean 0.2 of its own for each question; a mean
    of shares and a ratio of sums both aim at 0.2, as does a mean of shares with noise added, whose
    values are all distinct.
    """
    found = []
    for n, drawn in ((80, 1000), (1500, 1000), (20_000, 500)):
        covered = np.zeros(3)
        for trial in range(trials):
            rng = np.random.default_rng([seed, n, trial])
            rows = rng.integers(1, 5, n)
            hits = rng.binomial(rows, rng.beta(1, 4, n))
            shares = hits / rows
            x = np.column_stack([shares, shares + rng.normal(0, 0.1, n)])
            ends = bootstrap_intervals(x, None, seed=trial, replicates=drawn)
            weights = rows.astype(np.float64)
            ratio = bootstrap_intervals(
                hits[:, None].astype(np.float64), weights, seed=trial, replicates=drawn
            )
            both = np.concatenate([ends, ratio])
            covered += (both[:, 0] <= 0.2) & (both[:, 1] >= 0.2)
        found.append(
            {
                "name": f"coverage of 95 % intervals, {n:,} questions, {drawn} replicates",
                "against": None,
                "ratio": None,
                "goal": None,
                "met": None,
                "seconds": None,
                "peer_seconds": None,
                "detail": {
                    "way": way(x),
                    "trials": trials,
                    "standard_error": float(np.sqrt(0.95 * 0.05 / trials)),
                    "mean_of_shares": covered[0] / trials,
                    "mean_of_floats": covered[1] / trials,
                    "ratio_of_sums": covered[2] / trials,
                },
            }
        )
    return found


def say(found: dict[str, Any]) -> None:
    detail = found["detail"]
    if found["ratio"] is None:
        seconds = "" if found["seconds"] is None else f" {found['seconds']:.1f} s;"
        rest = ", ".join(f"{key} {value}" for key, value in detail.items())
        print(f"{found['name']}:{seconds} {rest}")
        return
    drawn = detail.get("peer_replicates", REPLICATES)
    scaled = "" if drawn >= REPLICATES else f", scaled up from {drawn} replicates"
    goal = ""
    if found["goal"] is not None:
        goal = f"; goal {found['goal']:.0f}: {'met' if found['met'] else 'MISSED'}"
    print(
        f"{found['name']} ({detail['way']}): {found['seconds']:.4f} s, {found['ratio']:.1f} times "
        f"as fast as {found['against']} ({found['peer_seconds']:.3f} s{scaled}){goal}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, nargs="+", default=list(GOALS))
    parser.add_argument("--statistics", type=int, default=24)
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--rounds", type=int, help="turns of all ways: 5, or 3 when quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="others draw fewer replicates")
    parser.add_argument("--report-size", action="store_true", help="time a whole report instead")
    parser.add_argument("--report-questions", type=int, default=10**6)
    parser.add_argument("--report-tables", type=int, default=150)
    parser.add_argument(
        "--report-measured", type=int, default=5, help="tables that are measured, 0 for all"
    )
    parser.add_argument("--coverage", action="store_true", help="simulate coverage instead")
    parser.add_argument("--trials", type=int, default=2000, help="of --coverage")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 5)

    result: dict[str, Any] = {
        "claim": "cluster bootstrap, identical for any block size",
        "statistics": options.statistics,
        "replicates": options.replicates,
        "machine": machine(),
        "rows": [],
    }
    if options.report_size:
        parts = [
            lambda: report_size(
                options.report_questions,
                options.report_tables,
                options.report_measured,
                options.seed,
            )
        ]
    elif options.coverage:
        parts = [lambda: coverage(options.trials, options.seed)]
    else:
        parts = [lambda n=n: measure(n, options) for n in options.questions]
    for part in parts:
        for found in part():
            result["rows"].append(found)
            say(found)
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
