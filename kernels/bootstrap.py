"""Cluster bootstrap: percentile intervals of means and ratios over questions (SPEC section 7).

The rows of one question share the question, so the question is what a replicate draws: n clusters
with replacement, all rows of a cluster each time it is drawn. With c_i the number of times that
cluster i is drawn, a replicate of a mean is sum_i c_i x_i / n and one of a ratio
sum_i c_i x_i / sum_i c_i y_i, both sums over the same draws.

The counts c come from a counter-based stream (`kernels.draws`) and their products with the columns
from exact integer sums (`kernels.limbs`); hence the replicates are the same to the last bit for
any block of replicates, any device and any number of devices.

Percentiles follow the inverse distribution function (B. Efron and R. Tibshirani, An Introduction
to the Bootstrap, 1993, section 13.3): percentile p of B replicates is the ceil(p B)-th smallest.
"""

import math
from fractions import Fraction
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.kernels.draws import MAX_INDICES, draw_indices, replicate_keys, seed_words
from herald_jax.kernels.exact import ExactSum
from herald_jax.kernels.limbs import split_columns

# A column whose values agree this closely (relative to its peak) is constant: what is left is the
# rounding of the caller's own sums and means.
ROUNDING = 2.0**-44
LARGEST = 2.0**900  # sums of 2^20 such values are far from overflow


@partial(jax.jit, static_argnames="block")
def resampled_sums(
    digits: jax.Array, n: jax.Array, seed: jax.Array, first: jax.Array, *, block: int
) -> jax.Array:
    """Sums of the rows that each of `block` consecutive replicates draws.

    out[r, l] = sum_i c[r, i] digits[i, l], c[r, i] the times that replicate first + r draws row i.

    Args:
        digits: float32 [N, L], integers in rows 0 .. n - 1 and 0 in all others; N > n.
        n: uint32 [], rows to draw from and draws of a replicate.
        seed: uint32 [2], from `draws.seed_words`.
        first: uint32 [], number of the first replicate.
        block: replicates.

    Returns:
        float32 [block, L], exact when n * max |digits| <= 2^24.
    """
    chex.assert_rank([digits, n, first], [2, 0, 0])
    chex.assert_type([digits, n, first], [jnp.float32, jnp.uint32, jnp.uint32])
    rows = digits.shape[0]
    draw = jnp.arange(rows, dtype=jnp.uint32)
    replicate = first + jnp.arange(block, dtype=jnp.uint32)
    keys = jax.vmap(replicate_keys, in_axes=(None, 0))(seed, replicate)
    # Without the barrier XLA on CPU works the keys out again for every draw.
    offset, key = jax.lax.optimization_barrier(keys)
    drawn = jax.vmap(draw_indices, in_axes=(0, 0, None, None))(offset, key, draw, n)
    # Draws beyond the n-th fall on row n, which holds zeros.
    drawn = jnp.where((draw < n)[None, :], drawn, n.astype(jnp.int32))
    # One flat scatter into bytes: XLA on CPU runs it faster than one with two indices, and bytes
    # stay in the cache. A row is drawn more than 255 times with probability below 1 / 256!; the
    # count of row n may wrap, but multiplies zeros.
    drawn += rows * jnp.arange(block, dtype=jnp.int32)[:, None]
    counts = jnp.zeros(block * rows, jnp.uint8)
    counts = counts.at[drawn.reshape(-1)].add(jnp.uint8(1), mode="promise_in_bounds")
    counts = counts.reshape(block, rows).astype(jnp.float32)
    # HIGHEST keeps accelerators from rounding the factors to fewer bits than float32 has.
    return jnp.dot(counts, digits, precision=jax.lax.Precision.HIGHEST)


def bootstrap_intervals(
    numerator: np.ndarray,
    denominator: np.ndarray | None,
    *,
    seed: int,
    replicates: int = 5000,
    level: float = 0.95,
) -> np.ndarray:
    """Percentile intervals of D statistics, all from the same draws.

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
    values = bootstrap_replicates(numerator, denominator, seed=seed, replicates=replicates)
    # In fractions of the level as it is written: in floats 0.025 * 5000 would come out as 126.
    tail = (1 - Fraction(str(level))) / 2
    ranks = [math.ceil(p * replicates) - 1 for p in (tail, 1 - tail)]
    ends: np.ndarray = np.partition(values.T, ranks, axis=1)[:, ranks]
    return ends


def bootstrap_replicates(
    numerator: np.ndarray,
    denominator: np.ndarray | None,
    *,
    seed: int,
    replicates: int = 5000,
    block: int | None = None,
) -> np.ndarray:
    """The replicates themselves.

    The columns enter as fixed point (`limbs.split_columns`): a value is off by less than 1e-8 of
    the largest absolute value of its column, and by nothing when the column's values are
    multiples of 2^-26 of it, or shares of at most 16 rows.

    Args:
        numerator: float64 [n, D], values of n clusters, 2 <= n <= 2^20.
        denominator: float64 [n], positive weights of the clusters, or None for means.
        seed: 0 .. 2^64 - 1.
        replicates: number of replicates, at least 1.
        block: replicates per call of the device, chosen by size when None; never of influence on
            the result.

    Returns:
        float64 [replicates, D].

    Raises:
        ValueError: fewer than two clusters, more than 2^20, a shape that does not fit, a value that
            is not finite, a weight that is not positive, or no replicates.
    """
    numerator, denominator = _checked(numerator, denominator)
    if replicates < 1 or (block is not None and block < 1):
        raise ValueError(f"replicates and block must be positive, got {replicates} and {block}")
    n = len(numerator)
    columns = numerator if denominator is None else np.column_stack([numerator, denominator])
    limbs = split_columns(columns, n)
    rows, width = _padded(limbs.digits.shape)
    digits = np.zeros((rows, width), np.float32)
    digits[:n, : limbs.digits.shape[1]] = limbs.digits

    block = block or _block(rows, replicates)
    call = partial(resampled_sums, jnp.asarray(digits), np.uint32(n), seed_words(seed), block=block)
    # Calls are asynchronous: all are under way before the host takes up the first.
    calls = [call(np.uint32(first)) for first in range(0, replicates, block)]
    parts = [limbs.totals(np.asarray(sums)[:, : limbs.digits.shape[1]]) for sums in calls]
    totals = np.concatenate(parts, axis=1)[:, :replicates]
    totals *= limbs.unit[:, None]  # powers of two: still exact
    divisor = limbs.divisor[:, None]
    values: np.ndarray
    if denominator is None:
        values = totals / (n * divisor)
    else:
        values = (totals[:-1] * divisor[-1]) / (totals[-1] * divisor[:-1])
    constant = _constant(numerator, denominator)
    values[constant] = point_estimates(numerator[:, constant], denominator)[:, None]
    return values.T


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
    total = ExactSum()
    total.add(values)
    return total.fraction()


def _checked(
    numerator: np.ndarray, denominator: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    numerator = np.asarray(numerator, np.float64)
    if numerator.ndim != 2:
        raise ValueError(f"numerator must have shape [n, D], got {numerator.shape}")
    n = len(numerator)
    if not 2 <= n <= MAX_INDICES:
        raise ValueError(f"the bootstrap needs 2 .. {MAX_INDICES} clusters, got {n}")
    if not (np.abs(numerator) < LARGEST).all():
        raise ValueError("numerator must be finite and below 2^900")
    if denominator is None:
        return numerator, None
    denominator = np.asarray(denominator, np.float64)
    if denominator.shape != (n,):
        raise ValueError(f"denominator must have shape [{n}], got {denominator.shape}")
    if not ((denominator > 0) & (denominator < LARGEST)).all():
        raise ValueError("denominator must be positive and finite; leave empty clusters out")
    return numerator, denominator


def _constant(numerator: np.ndarray, denominator: np.ndarray | None) -> np.ndarray:
    """bool [D]: every cluster has the same value (ratio), so that every replicate has it too."""
    value = numerator if denominator is None else numerator / denominator[:, None]
    constant: np.ndarray = np.ptp(value, axis=0) <= ROUNDING * np.max(np.abs(value), axis=0)
    return constant


def _padded(shape: tuple[int, int]) -> tuple[int, int]:
    """Padded rows, more than there are, and limbs, in few sizes, as each compiles a program.

    Rows are multiples of 64 and limbs of 16, both of at most eight sizes an octave.
    """
    n, limbs = shape
    step = max(64, 1 << max(0, n.bit_length() - 3))
    wide = max(16, 1 << max(0, limbs.bit_length() - 4))
    return (n // step + 1) * step, -(-limbs // wide) * wide


def _block(rows: int, replicates: int) -> int:
    """Replicates per call: up to 512 and about 5 * 2^20 counts, shared out evenly over the calls.

    Multiples of 4: XLA's product on CPU is several times slower for some odd sizes.
    """
    most = min(512, max(32, 5 * 2**20 // rows))
    calls = -(-replicates // most)
    return -(-replicates // calls // 4) * 4
