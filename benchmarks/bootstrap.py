"""Cluster bootstrap against NumPy gather: intervals that agree, and how many times faster.

Half of the statistics are success shares over 1 to 8 rows of a question, half are mean margins, as
an audit has them. Three things happen in one run:

1. `bootstrap_replicates` is called with several block sizes and must give the same bytes;
2. `bootstrap_intervals`, which audits call, and two ways to do the same in NumPy are timed by
   turns, so that the load of the machine falls on all: one replicate at a time,
   `x[rng.integers(0, n, n)].mean(axis=0)`, and blocks of 50,
   `x[rng.integers(0, n, (50, n))].mean(axis=1)`, both with drawing and percentiles included;
3. the interval ends must agree as closely as two random streams do.

The ratio is to the faster of the two NumPy ways, from the medians over rounds.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import compared, machine

from herald_jax.kernels.bootstrap import bootstrap_intervals, bootstrap_replicates

NUMPY_BLOCK = 50
BLOCKS = (17, 64, 250)
TAILS = (0.025, 0.975)
# An end of 5,000 replicates has a standard error of 0.038 of their standard deviation (a 2.5 %
# quantile of a normal), the difference of two ends 0.054: this is five and a half of those.
AGREE = 0.3

EXAMPLES = """examples:
  python benchmarks/bootstrap.py
  python benchmarks/bootstrap.py --questions 593 --rounds 20
  python benchmarks/bootstrap.py --out benchmarks/results/bootstrap.json
"""


def clusters(n: int, n_statistics: int, seed: int) -> np.ndarray:
    """float64 [n, D] values of n questions."""
    rng = np.random.default_rng(seed)
    half = n_statistics // 2
    rows = rng.integers(1, 9, (n, 1))
    shares = rng.binomial(rows, 0.1, (n, half)) / rows
    margins = rng.normal(-0.4, 0.3, (n, n_statistics - half))
    return np.concatenate([shares, margins], axis=1)


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
            x[rng.integers(0, n, (min(NUMPY_BLOCK, replicates - first), n))].mean(axis=1)
            for first in range(0, replicates, NUMPY_BLOCK)
        ]
    )
    return np.quantile(means, TAILS, axis=0, method="inverted_cdf").T


def timed(call: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def measure(n: int, n_statistics: int, replicates: int, rounds: int, seed: int) -> dict[str, Any]:
    x = clusters(n, n_statistics, seed)
    values = bootstrap_replicates(x, None, seed=seed, replicates=replicates)  # compiles
    for block in BLOCKS:
        again = bootstrap_replicates(x, None, seed=seed, replicates=replicates, block=block)
        if again.tobytes() != values.tobytes():
            sys.exit(f"n = {n}: blocks of {block} replicates give other bytes")

    ways: dict[str, Callable[[int], np.ndarray]] = {
        "herald": lambda s: bootstrap_intervals(x, None, seed=s, replicates=replicates),
        "numpy_rows": lambda s: numpy_rows(x, replicates, s),
        "numpy_blocks": lambda s: numpy_blocks(x, replicates, s),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    apart = 0.0
    for turn in range(rounds):
        ends = {}
        for name, way in ways.items():
            spent, ends[name] = timed(lambda way=way, s=seed + turn: way(s))
            seconds[name].append(spent)
        for name in ("numpy_rows", "numpy_blocks"):
            distance = np.abs(ends["herald"] - ends[name]) / values.std(axis=0)[:, None]
            apart = max(apart, float(distance.max()))
    if apart > AGREE:
        sys.exit(f"n = {n}: interval ends are {apart:.3f} standard deviations apart")

    medians = {name: statistics.median(spent) for name, spent in seconds.items()}
    faster = min(("numpy_rows", "numpy_blocks"), key=medians.__getitem__)
    return {
        "questions": n,
        "rounds": rounds,
        **compared(seconds["herald"], seconds[faster]),
        "numpy_way": faster,
        "seconds": medians,
        "ends_apart_in_standard_deviations": apart,
        "identical_for_blocks": list(BLOCKS),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, nargs="+", default=[593, 10_000])
    parser.add_argument("--statistics", type=int, default=24)
    parser.add_argument("--replicates", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5, help="turns of all three ways")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()

    result: dict[str, Any] = {
        "claim": "cluster bootstrap, identical for any block size",
        "statistics": options.statistics,
        "replicates": options.replicates,
        "machine": machine(),
        "sizes": [],
    }
    for n in options.questions:
        found = measure(n, options.statistics, options.replicates, options.rounds, options.seed)
        result["sizes"].append(found)
        print(
            f"n = {n}: {found['seconds']['herald']:.4f} s, {found['ratio']:.1f} times as fast as "
            f"NumPy ({found['numpy_way']}, {found['seconds'][found['numpy_way']]:.3f} s); lowest "
            f"of a round {found['lowest_ratio_of_a_round']:.1f}"
        )
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
