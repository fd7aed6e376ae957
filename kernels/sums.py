"""Sums of margins and successes over the rollouts of each question, exact in any order.

A margin enters as a fixed-point integer, its sum as two integers of 32 bits (accelerators have no
fast 64-bit ones), so that no figure depends on the order of rows, the size of a block or the number
of devices (SPEC section 7).
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.types import pytree

# A fixed-point margin has at most 30 bits with its sign; its low part has 15, so that either part
# summed over 2^16 rollouts of one question fits in 31 bits.
MARGIN_BITS = 30
LOW_BITS = 15
MAX_ROLLOUTS = 1 << 16
# Rollouts that are added as straight code.
_UNROLL = 16


@pytree
class QuestionSums:
    """Sums over the rollouts of one question."""

    rows: jax.Array  # int32 [J]
    successes: jax.Array  # int32 [J]
    high: jax.Array  # int32 [J] sum of margins in units of 2^LOW_BITS / scale
    low: jax.Array  # int32 [J] and of the rest, in units of 1 / scale
    largest: jax.Array  # float32 [J] largest margin, -inf without rows


def margin_scale(bound: float) -> float:
    """Largest power of two s with s · bound below 2^29, at most 2^100.

    Args:
        bound: no margin is larger in absolute value; finite, at least 0. Margins are float32, so
            that a bound beyond the largest of them says no more than that one.

    Returns:
        The scale of `question_sums`, a power of two that float32 holds.

    Raises:
        ValueError: if the bound is not a finite number.
    """
    if not math.isfinite(bound) or bound < 0:
        raise ValueError(f"bound of margins must be finite and not negative, got {bound}")
    reach = min(max(bound, 2.0**-90), float(np.finfo(np.float32).max))
    exponent = MARGIN_BITS - 1 - math.frexp(reach)[1]
    return float(2.0 ** min(exponent, 100))


def question_sums(
    margins: jax.Array, rows: jax.Array, *, scale: jax.Array, tie_tolerance: jax.Array
) -> QuestionSums:
    """Sums over one question, or over each of several.

    Takes any axes between its own instead of being mapped over them: `vmap` would transpose.

    Args:
        margins: float32 [J, ..., M]; one that is not finite does not count (SPEC section 13.9).
        rows: bool [..., M], the rollouts that the table is over.
        scale: float32 [], from `margin_scale`.
        tie_tolerance: float32 []; a margin of at least minus this is a success.

    Returns:
        `QuestionSums` [J, ...].
    """
    counted = rows[None] & jnp.isfinite(margins)
    fixed = jnp.round(jnp.where(counted, margins, 0.0) * scale).astype(jnp.int32)
    success = counted & (margins >= -tie_tolerance)
    return QuestionSums(
        rows=_sum(counted.astype(jnp.int32)),
        successes=_sum(success.astype(jnp.int32)),
        high=_sum(fixed >> LOW_BITS),
        low=_sum(fixed & ((1 << LOW_BITS) - 1)),
        largest=_largest(jnp.where(counted, margins, -jnp.inf)),
    )


def _sum(values: jax.Array) -> jax.Array:
    rollouts = values.shape[-1]
    if not 0 < rollouts <= _UNROLL:
        return jnp.sum(values, axis=-1, dtype=jnp.int32)
    # Written out: in a block this adds whole columns, where a sum over so short an inner axis goes
    # number by number on CPU.
    return functools.reduce(jnp.add, (values[..., m] for m in range(rollouts)))


def _largest(values: jax.Array) -> jax.Array:
    rollouts = values.shape[-1]
    if not 0 < rollouts <= _UNROLL:
        return jnp.max(values, axis=-1, initial=-jnp.inf)
    return functools.reduce(jnp.maximum, (values[..., m] for m in range(rollouts)))


def margin_totals(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Both parts as one fixed-point integer: int64, same shape, in units of 1 / scale."""
    return (np.asarray(high, np.int64) << LOW_BITS) + np.asarray(low, np.int64)
