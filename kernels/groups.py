"""Advantages within a group of rollouts, and how much signal a detector gives (SPEC section 10).

A group holds the rollouts of one question; a mask says which of them count (a rollout whose reward
is unknown does not). Kernels take one group, callers vmap.
"""

from functools import partial
from typing import Literal

import chex
import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.types import pytree

Scale = Literal["sd", "none"]
# Groups of a call of `advantages_by_question` hold this many members together, when that is more
# than one group.
_MEMBERS_PER_CALL = 2**14


@pytree
class Signal:
    """What one detector does to the training signal; sums over groups are plain sums."""

    groups: jax.Array  # int32 [] groups with a member
    rows: jax.Array  # int32 [] members on which the detector is true
    holding: jax.Array  # int32 [] groups that hold one
    constant: jax.Array  # int32 [] groups in which the detector is the same for all
    changed: jax.Array  # int32 [] groups whose advantages the penalty changes by more than 1e-6
    mean_square: jax.Array  # float32 [] mean square of the centred penalty, summed over groups


def group_advantages(
    rewards: jax.Array,
    mask: jax.Array,
    *,
    eps: float = 1e-6,
    spread: float = 1e-6,
    scale: Scale = "sd",
) -> jax.Array:
    """Advantages of the members of one group.

    A_i = (r_i - mean r) / (sd r + eps), the sd with n - 1, over the n members of the mask. A group
    of fewer than two members, or whose rewards span at most `spread`, has no signal: A is 0. The
    span is tested on the rewards, before any mean is taken, and allows for one rounding step of
    float32: rewards that are equal but for rounding must not turn into advantages.

    Args:
        rewards: float32 [M]; whatever stands outside the mask, NaN included, reaches neither value
            nor gradient. NaN inside it gives NaN.
        mask: bool [M], members.
        eps: added to the sd.
        spread: largest span of rewards without signal.
        scale: "sd", or "none" for r - mean r.

    Returns:
        float32 [M], 0 outside the mask.
    """
    chex.assert_rank([rewards, mask], 1)
    chex.assert_equal_shape([rewards, mask])
    chex.assert_type([rewards, mask], [jnp.float32, jnp.bool_])
    size = jnp.sum(mask, dtype=jnp.int32).astype(jnp.float32)
    low = jnp.min(rewards, where=mask, initial=jnp.inf)
    high = jnp.max(rewards, where=mask, initial=-jnp.inf)
    rounding = float(np.finfo(np.float32).eps) * jnp.maximum(jnp.abs(low), jnp.abs(high))
    # Not `>`: a member whose reward is NaN must give NaN and not look like a group without signal.
    signal = (size >= 2) & ~(high - low <= spread + rounding)
    live = mask & signal
    # Measured from the lowest reward, which an advantage does not depend on: a large common part
    # would cost digits. Where there is no signal all is 0 before the root, so gradients are finite.
    above = jnp.where(live, rewards, 0.0) - jnp.where(live, jax.lax.stop_gradient(low), 0.0)
    mean = jnp.sum(above) / jnp.maximum(size, 1.0)
    centred = jnp.where(live, above - mean, 0.0)
    if scale == "none":
        return centred
    variance = jnp.sum(centred**2) / jnp.maximum(size - 1.0, 1.0)
    sd = jnp.sqrt(jnp.where(signal, variance, 1.0))
    return centred / (sd + eps)


def signal(
    rewards: jax.Array,
    bits: jax.Array,
    mask: jax.Array,
    *,
    weight: jax.Array | float,
    eps: float = 1e-6,
    spread: float = 1e-6,
) -> Signal:
    """What the penalty `weight` on one detector does to the advantages of one group.

    The centred contribution of the penalty has mean square weight^2 p (1 - p), p the share of
    members with the bit: 0 exactly when the detector is constant in the group. Then the penalty
    shifts all rewards alike and changes no advantage, whatever rounding makes of the shift. Where
    it stretches the rewards of a group without changing their order and proportions, advantages
    change by about eps / sd: such a change, near 1e-6, is told only to float32's rounding.

    Args:
        rewards: float32 [M], without the penalty; finite inside the mask.
        bits: bool [M], the detector.
        mask: bool [M], members.
        weight: penalty of the detector, lambda, float32 [] when an array.
        eps: as `group_advantages`.
        spread: as `group_advantages`.

    Returns:
        The group's contribution; all 0 when it has no member.
    """
    chex.assert_rank([rewards, bits, mask], 1)
    chex.assert_equal_shape([rewards, bits, mask])
    chex.assert_type([rewards, bits, mask], [jnp.float32, jnp.bool_, jnp.bool_])
    size = jnp.sum(mask, dtype=jnp.int32)
    rows = jnp.sum(bits & mask, dtype=jnp.int32)
    advantages = partial(group_advantages, mask=mask, eps=eps, spread=spread)
    # From the lowest reward, so that the penalty does not round what sets the members apart.
    low = jnp.min(rewards, where=mask, initial=jnp.inf)
    above = jnp.where(mask, rewards - low, 0.0)
    penalised = above - weight * bits.astype(jnp.float32)
    moved = jnp.abs(advantages(penalised) - advantages(rewards)) > 1e-6
    constant = (rows == 0) | (rows == size)
    some = size > 0
    share = rows.astype(jnp.float32) / jnp.maximum(size, 1).astype(jnp.float32)
    return Signal(
        groups=some.astype(jnp.int32),
        rows=rows,
        holding=(rows > 0).astype(jnp.int32),
        constant=(constant & some).astype(jnp.int32),
        changed=(jnp.any(moved) & ~constant).astype(jnp.int32),
        mean_square=weight**2 * share * (1.0 - share),
    )


@partial(jax.jit, static_argnames=("eps", "scale"))
def _advantages(rewards: jax.Array, mask: jax.Array, *, eps: float, scale: Scale) -> jax.Array:
    """`group_advantages` of groups [M, G] whose spread the caller has tested."""
    kernel = partial(group_advantages, eps=eps, spread=0.0, scale=scale)
    return jax.vmap(kernel, in_axes=-1, out_axes=-1)(rewards, mask)


def advantages_by_question(
    question: np.ndarray,
    rewards: np.ndarray,
    *,
    eps: float = 1e-6,
    spread: float = 1e-6,
    scale: Scale = "sd",
) -> np.ndarray:
    """Advantages of rows in any order, grouped by question whatever the sizes of the groups.

    The spread is tested in float64, and rewards reach the device as differences from the lowest of
    their group. Groups are padded to powers of two and called in batches of fixed shape, so that
    the number of compiled programs does not grow with the log.

    Args:
        question: integers [n], equal for rows of one question.
        rewards: float64 or float32 [n], NaN for a row without a reward: it is left out of its
            group and gets 0.
        eps: as `group_advantages`.
        spread: as `group_advantages`.
        scale: as `group_advantages`.

    Returns:
        float32 [n] in the order of the rows.

    Raises:
        ValueError: shapes differ, or a reward is infinite.
    """
    question, rewards = np.asarray(question), np.asarray(rewards)
    # One rounding step of the numbers that came, which may be float32.
    step = np.finfo(rewards.dtype if rewards.dtype == np.float32 else np.float64).eps
    rewards = rewards.astype(np.float64)
    if question.ndim != 1 or question.shape != rewards.shape:
        raise ValueError(f"one reward a row: got shapes {question.shape} and {rewards.shape}")
    if np.isinf(rewards).any():
        raise ValueError("rewards must be finite, or NaN where there is none")
    out = np.zeros(len(rewards), np.float32)
    rows = np.flatnonzero(~np.isnan(rewards))
    # Rows sorted by question, and by reward within one, so that a group's sums do not depend on
    # the order of its rows.
    rows = rows[np.lexsort((rewards[rows], question[rows]))]
    starts = np.flatnonzero(np.diff(question[rows], prepend=question[rows][:1] - 1))
    sizes = np.diff(starts, append=len(rows))
    low, high = rewards[rows[starts]], rewards[rows[starts + sizes - 1]]
    rounding = float(step) * np.maximum(np.abs(low), np.abs(high))
    signal = (sizes >= 2) & (high - low > spread + rounding)
    above = (rewards[rows] - np.repeat(low, sizes)).astype(np.float32)
    width = 1 << np.ceil(np.log2(np.maximum(sizes, 2))).astype(np.int64)
    for members in np.unique(width[signal]).tolist():
        chosen = np.flatnonzero(signal & (width == members))
        batch = max(1, _MEMBERS_PER_CALL // members)
        for first in range(0, len(chosen), batch):
            groups = chosen[first : first + batch]
            place = np.arange(members)[:, None]
            mask = np.zeros((members, batch), np.bool_)
            mask[:, : len(groups)] = place < sizes[groups]
            sorted_row = (starts[groups] + place)[mask[:, : len(groups)]]
            padded = np.zeros((members, batch), np.float32)
            padded[mask] = above[sorted_row]
            out[rows[sorted_row]] = np.asarray(_advantages(padded, mask, eps=eps, scale=scale))[
                mask
            ]
    return out
