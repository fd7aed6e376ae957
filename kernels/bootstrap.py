"""Cluster bootstrap: percentile intervals of means and ratios over questions (SPEC section 7).

The rows of one question share the question, so the question is what a replicate draws: n clusters
with replacement, all rows of a cluster each time it is drawn. With c_i the number of times that
cluster i is drawn, a replicate of a mean is sum_i c_i x_i / n and one of a ratio
sum_i c_i x_i / sum_i c_i y_i, both sums over the same draws. The counts c are multinomial: n draws,
each cluster with probability 1/n. What is reported of a column is its own interval, so columns need
not share their draws, and each takes the cheapest of these ways, by rules that look at the column
and n alone:

0. A column whose clusters all have the same value v draws nothing: every replicate is v. Of
   columns that are equal one is worked out.
1. *Values*. Beyond `columns.FEW_FROM` clusters, a column with at most n / `CLUSTERS_A_VALUE`
   distinct values (pairs of value and weight for a ratio) counts the draws of the values, not of
   the clusters. Clusters with equal values give a replicate the same terms, and a value that m
   clusters have is drawn with probability m/n: the counts of the values are multinomial too
   (`kernels.multinomial`). The cost hardly grows with n.
2. *Indices*. Up to `resample.INDICES` clusters, n uniform indices are drawn and counted, which is
   the definition.
3. *Batches*. Beyond, the clusters have independent Poisson counts, which given their total are
   multinomial, and uniform indices make up for the draws that are missing; above `resample.TILE`
   clusters so for each tile of them, among which the draws have been shared out by 1.

The columns of 2 or 3 share their draws and are summed by one product of matrices. The rule of 1
stands where a value costs about as much as a thousand clusters of one more column of 3.

Draws come from a counter-based stream of integers (`kernels.draws`, `kernels.poisson`), and sums
over draws are exact (`kernels.limbs`). Hence the replicates are the same to the last bit for any
block of replicates, any device and any number of devices, and a column's do not depend on the
columns beside it. Under 1 they do not depend on the order of the clusters either.

Percentiles follow the inverse distribution function (B. Efron and R. Tibshirani, An Introduction
to the Bootstrap, 1993, section 13.3): percentile p of B replicates is the ceil(p B)-th smallest.
"""

import math
from fractions import Fraction

import numpy as np

from herald_jax.kernels.columns import LARGEST, Column, each, plan_columns
from herald_jax.kernels.distinct import few_distinct
from herald_jax.kernels.draws import MAX_INDICES, seed_words
from herald_jax.kernels.exact import ExactSum
from herald_jax.kernels.limbs import FixedPoint
from herald_jax.kernels.multinomial import resampled_categories
from herald_jax.kernels.resample import resampled_sums

FEW = 1024  # distinct values whose exact sum is cheaper than that of the values


def bootstrap_intervals(
    numerator: np.ndarray,
    denominator: np.ndarray | None,
    *,
    seed: int,
    replicates: int = 5000,
    level: float = 0.95,
) -> np.ndarray:
    """Percentile intervals of D statistics.

    Args:
        numerator: float64 [n, D], values of n clusters.
        denominator: float64 [n], positive weights (rows) of the clusters, for ratios of sums; None
            for plain means over clusters.
        seed: 0 .. 2^64 - 1.
        replicates: number of replicates, at least 1.
        level: coverage aimed at, between 0 and 1.

    Returns:
        float64 [D, 2], lower and upper end; exactly [v, v] with v of `point_estimates` where every
        replicate is the same.

    Raises:
        ValueError: as `bootstrap_replicates`, or `level` is not between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    numerator, denominator = _checked(numerator, denominator)
    values, which = _replicates(numerator, denominator, seed, replicates, None)
    # In fractions of the level as it is written: in floats 0.025 * 5000 would come out as 126.
    tail = (1 - Fraction(str(level))) / 2
    ranks = [math.ceil(p * replicates) - 1 for p in (tail, 1 - tail)]
    # One rank at a time: NumPy has vector code for that only.
    drawn = np.stack([np.partition(values, rank, axis=1)[:, rank] for rank in ranks], axis=1)
    ends = np.empty((len(which), 2))
    ends[which >= 0] = drawn[which[which >= 0]]
    constant = which < 0
    ends[constant] = point_estimates(numerator[:, constant], denominator)[:, None]
    return ends


def bootstrap_replicates(
    numerator: np.ndarray,
    denominator: np.ndarray | None,
    *,
    seed: int,
    replicates: int = 5000,
    block: int | None = None,
) -> np.ndarray:
    """The replicates themselves; those of different columns need not come from the same draws.

    The columns enter as fixed point (`limbs.fixed_point`): a value is off by less than 1e-8 of
    the largest absolute value of its column, and by nothing when the column's values are
    multiples of 2^-26 of it, or shares of at most 16 rows.

    Args:
        numerator: float64 [n, D], values of n clusters, 2 <= n <= 2^24.
        denominator: float64 [n], positive weights of the clusters, or None for means.
        seed: 0 .. 2^64 - 1.
        replicates: number of replicates, at least 1.
        block: replicates per call of the device, chosen by size when None; never of influence on
            the result.

    Returns:
        float64 [replicates, D].

    Raises:
        ValueError: fewer than two clusters, more than 2^24, a shape that does not fit, a value that
            is not finite, a weight that is not positive, or no replicates.
    """
    numerator, denominator = _checked(numerator, denominator)
    values, which = _replicates(numerator, denominator, seed, replicates, block)
    found = np.empty((len(which), replicates))
    found[which >= 0] = values[which[which >= 0]]
    constant = which < 0
    found[constant] = point_estimates(numerator[:, constant], denominator)[:, None]
    return found.T


def _replicates(
    numerator: np.ndarray,
    denominator: np.ndarray | None,
    seed: int,
    replicates: int,
    block: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """float64 [E, R] replicates of the E columns that are drawn, int64 [D] which of them."""
    if replicates < 1 or (block is not None and block < 1):
        raise ValueError(f"replicates and block must be positive, got {replicates} and {block}")
    seed_words(seed)  # refuses a seed that is out of range even where nothing is drawn
    columns = plan_columns(numerator, denominator)
    n = len(numerator)
    values = np.empty((len(columns.drawn), replicates))
    clusters = [e for e, column in enumerate(columns.drawn) if column.times is None]

    def draw_values(e: int) -> None:
        column = columns.drawn[e]
        if column.times is not None:
            counts = resampled_categories(
                column.times, seed=seed, replicates=replicates, block=block
            )
            sums = [_weighted(counts, part.integers) for part in _parts(column)]
            values[e] = _statistic(column, n, sums)

    each(draw_values, range(len(columns.drawn)), n)
    if clusters:
        drawn = [columns.drawn[e] for e in clusters]
        # A common denominator stands behind all numerators.
        parts = [_parts(column)[0] for column in drawn] + _parts(drawn[0])[1:]
        totals = resampled_sums(
            [part.integers for part in parts], seed=seed, replicates=replicates, block=block
        )
        below = totals[len(drawn) :]
        for e, column, above in zip(clusters, drawn, totals, strict=False):
            values[e] = _statistic(column, n, [above, *below])
    return values, columns.which


def _parts(column: Column) -> list[FixedPoint]:
    """Numerator, and denominator if there is one."""
    return [column.numerator] + ([] if column.denominator is None else [column.denominator])


def _weighted(counts: np.ndarray, integers: np.ndarray) -> np.ndarray:
    """float64 [R] sums of integers [U], by how often each is drawn, int32 [U, R]; exact."""
    total = np.zeros(counts.shape[1])
    for count, integer in zip(counts, integers.tolist(), strict=True):
        total += count * float(integer)
    return total


def _statistic(column: Column, n: int, sums: list[np.ndarray]) -> np.ndarray:
    """float64 [R] means or ratios from the sums of a column's integers, as `_parts` has them."""
    part, *weights = _parts(column)
    if not weights:
        return sums[0] * part.unit / (float(n) * part.divisor)
    below = sums[1] * weights[0].unit * part.divisor
    return (sums[0] * part.unit * weights[0].divisor) / below


def point_estimates(numerator: np.ndarray, denominator: np.ndarray | None) -> np.ndarray:
    """The statistics of the data as they are, from exact sums, rounded once.

    Args:
        numerator: float64 [n, D], values of n clusters, n >= 1.
        denominator: float64 [n], weights of the clusters, or None for means.

    Returns:
        float64 [D]: sum of a column over n, or over the sum of the weights.

    Raises:
        ValueError: a value is not finite.
    """
    weight = Fraction(len(numerator)) if denominator is None else _exact(denominator)
    return np.array([float(_exact(column) / weight) for column in numerator.T], np.float64)


def _exact(values: np.ndarray) -> Fraction:
    few = few_distinct(values, FEW)
    if few is not None:
        products = (Fraction(value) * times for value, times in zip(*map(list, few), strict=True))
        return sum(products, Fraction(0))
    total = ExactSum()
    total.add(values)
    return total.fraction()


def _checked(
    numerator: np.ndarray, denominator: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Shapes and weights; the values of the columns are looked at one column at a time."""
    numerator = np.asarray(numerator, np.float64)
    if numerator.ndim != 2:
        raise ValueError(f"numerator must have shape [n, D], got {numerator.shape}")
    n = len(numerator)
    if not 2 <= n <= MAX_INDICES:
        raise ValueError(f"the bootstrap needs 2 .. {MAX_INDICES} clusters, got {n}")
    if denominator is None:
        return numerator, None
    denominator = np.asarray(denominator, np.float64)
    if denominator.shape != (n,):
        raise ValueError(f"denominator must have shape [{n}], got {denominator.shape}")
    if not (denominator.min() > 0 and denominator.max() < LARGEST):
        raise ValueError("denominator must be positive and finite; leave empty clusters out")
    return numerator, denominator
