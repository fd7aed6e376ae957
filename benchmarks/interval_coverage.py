"""How often 95 % bootstrap intervals cover the truth, by every way to draw, in simulated logs.

A question has 1 to 4 rows whose successes are binomial with a rate of its own, of mean 0.2. Three
statistics aim at 0.2: the mean of the shares of successes, the same with noise added to each
question, whose values are all distinct, and the ratio of the sums of successes and rows. Percentile
intervals of few, skewed questions cover a little less than their level; that is theirs, not the
drawing's.

  python benchmarks/interval_coverage.py --quick
  python benchmarks/interval_coverage.py --trials 5000 --out interval_coverage.json
"""

import time

import numpy as np
from bootstrap import how
from machine import machine
from measured import Row, arguments, finish
from scipy.stats import binom

from herald_jax.kernels.bootstrap import bootstrap_intervals

RATE, LEVEL = 0.2, 0.95
# Questions, replicates and the least coverage: by indices, in one batch, by values and in tiles.
SIZES = ((80, 1000, 0.925), (1500, 1000, 0.945), (20_000, 500, 0.945))
NAMES = ("mean of shares", "mean of floats", "ratio of sums")


def log(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and successes of n questions, and the first two statistics' columns."""
    rows = rng.integers(1, 5, n)
    successes = rng.binomial(rows, rng.beta(1, 4, n))
    shares = successes / rows
    return rows, successes, np.column_stack([shares, shares + rng.normal(0, 0.1, n)])


def covered(n: int, replicates: int, trials: int, seed: int) -> list[Row]:
    hits, start = np.zeros(3, int), time.perf_counter()
    for trial in range(trials):
        rows, successes, x = log(np.random.default_rng([seed, n, trial]), n)
        means = bootstrap_intervals(x, None, seed=trial, replicates=replicates)
        ratio = bootstrap_intervals(
            successes[:, None].astype(np.float64),
            rows.astype(np.float64),
            seed=trial,
            replicates=replicates,
        )
        low, high = np.concatenate([means, ratio]).T
        hits += (low <= RATE) & (high >= RATE)
    spent = (time.perf_counter() - start) / trials
    least = next(floor for size, _, floor in SIZES if size == n)
    # One wrong alarm in ten thousand.
    band = [binom.ppf(1e-4, trials, least) / trials, binom.ppf(1 - 1e-4, trials, LEVEL) / trials]
    return [
        Row(
            name=f"coverage at {n:,} questions, {name}",
            seconds=spent,
            measured=100 * hit / trials,
            unit="%",
            met=bool(band[0] <= hit / trials <= band[1]),
            detail=f"{trials} logs, {replicates} replicates, {how(x)}; "
            f"allowed {band[0]:.1%} to {band[1]:.1%}",
        )
        for name, hit in zip(NAMES, hits, strict=True)
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--trials", type=int, help="logs: 2000, or 100 when quick")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    trials = options.trials or (100 if options.quick else 2000)
    where = machine()
    rows = [row for n, count, _ in SIZES for row in covered(n, count, trials, options.seed)]
    finish(options, "95 % intervals cover what they should", where, rows)


if __name__ == "__main__":
    main()
