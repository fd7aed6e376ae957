"""Advantages within a group of rollouts, and how much signal a detector gives (SPEC section 10).

A group holds the rollouts of one question; a mask says which of them count: a rollout whose reward
is unknown, or that has no token to train, does not (`usable`). Kernels take one group [M], callers
vmap; those that need the whole batch say so and take [G, M].
"""

from functools import partial
from typing import Literal

import chex
import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.types import pytree

Scale = Literal["sd", "none"]
# Of a batch of groups: also the sd over all of them.
BatchScale = Literal["sd", "none", "batch"]
# Groups of a call of `advantages_by_question` hold this many members together, when that is more
# than one group.
_MEMBERS_PER_CALL = 2**14
# Advantages further apart than this differ (SPEC section 10).
_MOVED = 1e-6


@pytree
class Signal:
    """What one detector does to the training signal; sums over groups are plain sums."""

    groups: jax.Array  # int32 [] groups with a member
    rows: jax.Array  # int32 [] members on which the detector is true
    holding: jax.Array  # int32 [] groups that hold one
    constant: jax.Array  # int32 [] groups in which the detector is the same for all
    changed: jax.Array  # int32 [] groups whose advantages the penalty changes by more than 1e-6
    mean_square: jax.Array  # float32 [] mean square of the centred penalty, summed over groups

    @property
    def unchanged(self) -> jax.Array:
        """int32 [] groups none of whose advantages the penalty changes by more than 1e-6."""
        return self.groups - self.changed


def combine_rewards(values: jax.Array, weights: jax.Array) -> jax.Array:
    """One reward from several functions: the weighted sum of those that gave a number.

    A rollout that one function cannot score is scored by the others; only when none of them can,
    its reward is unknown. Unknown is not 0, which would shift the baseline of its group.

    Args:
        values: float32 [K, B] of K functions, NaN where one could not score; else finite.
        weights: float32 [K].

    Returns:
        float32 [B], NaN where no function gave a number.
    """
    chex.assert_rank([values, weights], [2, 1])
    chex.assert_equal_shape_prefix([values, weights], 1)
    chex.assert_type([values, weights], jnp.float32)
    known = ~jnp.isnan(values)
    total = jnp.sum(jnp.where(known, values, 0.0) * weights[:, None], axis=0)
    return jnp.where(jnp.any(known, axis=0), total, jnp.nan)


def usable(rewards: jax.Array, trainable: jax.Array) -> jax.Array:
    """Which rollouts are members of their group: the reward is known, and a token is trained.

    Args:
        rewards: float32, any shape, NaN where unknown.
        trainable: int32, the same shape, tokens that the policy sampled.

    Returns:
        bool of that shape, the mask of the other kernels.
    """
    chex.assert_equal_shape([rewards, trainable])
    chex.assert_type([rewards, trainable], [jnp.float32, int])
    return ~jnp.isnan(rewards) & (trainable > 0)


def is_flat(rewards: jax.Array, mask: jax.Array, *, spread: float = 1e-6) -> jax.Array:
    """Whether a group has no signal: fewer than two members, or rewards that span too little.

    The span is tested on the rewards, before any mean is taken, and allows for one rounding step of
    float32: rewards that are equal but for rounding must not turn into advantages.

    Args:
        rewards: float32 [M].
        mask: bool [M], members.
        spread: largest span of rewards without signal.

    Returns:
        bool []; False for a group of two or more with a NaN inside the mask.
    """
    chex.assert_rank([rewards, mask], 1)
    chex.assert_equal_shape([rewards, mask])
    chex.assert_type([rewards, mask], [jnp.float32, jnp.bool_])
    low = jnp.min(rewards, where=mask, initial=jnp.inf)
    high = jnp.max(rewards, where=mask, initial=-jnp.inf)
    rounding = float(np.finfo(np.float32).eps) * jnp.maximum(jnp.abs(low), jnp.abs(high))
    # A member whose reward is NaN must give NaN and not look like a group without signal: with a
    # NaN `<=` is False.
    return (jnp.sum(mask, dtype=jnp.int32) < 2) | (high - low <= spread + rounding)


def group_advantages(
    rewards: jax.Array,
    mask: jax.Array,
    *,
    eps: float = 1e-6,
    spread: float = 1e-6,
    scale: Scale = "sd",
) -> jax.Array:
    """Advantages of the members of one group.

    A_i = (r_i - mean r) / (sd r + eps), the sd with n - 1, over the n members of the mask. In a
    group without signal (`is_flat`) A is 0.

    Args:
        rewards: float32 [M]; whatever stands outside the mask, NaN included, reaches neither value
            nor gradient. NaN inside it gives NaN.
        mask: bool [M], members.
        eps: added to the sd.
        spread: as `is_flat`.
        scale: "sd", or "none" for r - mean r.

    Returns:
        float32 [M], 0 outside the mask.
    """
    chex.assert_rank([rewards, mask], 1)
    chex.assert_equal_shape([rewards, mask])
    chex.assert_type([rewards, mask], [jnp.float32, jnp.bool_])
    size = jnp.sum(mask, dtype=jnp.int32).astype(jnp.float32)
    low = jnp.min(rewards, where=mask, initial=jnp.inf)
    signal = ~is_flat(rewards, mask, spread=spread)
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


def batch_advantages(
    rewards: jax.Array,
    mask: jax.Array,
    *,
    eps: float = 1e-6,
    spread: float = 1e-6,
    scale: BatchScale = "sd",
) -> jax.Array:
    """Advantages of a batch of groups, with the choice of what centred rewards are divided by.

    "sd": the sd of the group, as `group_advantages`; "none": nothing; "batch": (r_i - mean of the
    group) / (sd + eps), the sd with n - 1 of the rewards of all members of the batch. A narrow
    group is then not blown up to the size of a wide one. Members of groups without signal are
    counted in that sd and get 0 as ever.

    Args:
        rewards: float32 [G, M], as `group_advantages`. With "batch" one NaN of a member reaches
            every group that has a signal.
        mask: bool [G, M], members.
        eps: added to the sd.
        spread: as `is_flat`.
        scale: as above.

    Returns:
        float32 [G, M], 0 outside the mask.
    """
    chex.assert_rank([rewards, mask], 2)
    each = partial(
        group_advantages, eps=eps, spread=spread, scale="sd" if scale == "sd" else "none"
    )
    advantages = jax.vmap(each)(rewards, mask)
    if scale != "batch":
        return advantages
    size = jnp.sum(mask, dtype=jnp.int32).astype(jnp.float32)
    low = jnp.min(rewards, where=mask, initial=jnp.inf)
    above = jnp.where(mask, rewards - jax.lax.stop_gradient(low), 0.0)
    mean = jnp.sum(above) / jnp.maximum(size, 1.0)
    variance = jnp.sum(jnp.where(mask, above - mean, 0.0) ** 2) / jnp.maximum(size - 1.0, 1.0)
    # A root of 0 has no gradient; then all advantages are 0. Not `> 0`, which would hide a NaN.
    sd = jnp.sqrt(jnp.where(variance <= 0.0, 1.0, variance))
    live = mask & ~jax.vmap(partial(is_flat, spread=spread))(rewards, mask)[:, None]
    return jnp.where(live, advantages / (sd + eps), 0.0)


def signal(
    rewards: jax.Array,
    bits: jax.Array,
    mask: jax.Array,
    *,
    weight: jax.Array | float,
    eps: float = 1e-6,
    spread: float = 1e-6,
    scale: Scale = "sd",
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
        scale: as `group_advantages`.

    Returns:
        The group's contribution; all 0 when it has no member.
    """
    chex.assert_rank([rewards, bits, mask], 1)
    chex.assert_equal_shape([rewards, bits, mask])
    chex.assert_type([rewards, bits, mask], [jnp.float32, jnp.bool_, jnp.bool_])
    advantages = partial(group_advantages, mask=mask, eps=eps, spread=spread, scale=scale)
    penalised = _penalised(rewards, bits, mask, weight)
    moved = jnp.any(jnp.abs(advantages(penalised) - advantages(rewards)) > _MOVED)
    return _count(bits, mask, moved & ~_constant(bits, mask), weight)


def signals(
    rewards: jax.Array,
    bits: jax.Array,
    mask: jax.Array,
    weights: jax.Array,
    *,
    eps: float = 1e-6,
    spread: float = 1e-6,
    scale: BatchScale = "sd",
) -> Signal:
    """`signal` of every detector, summed over a batch of groups.

    With the scale "batch" a penalty reaches groups in which its detector is constant too, through
    the common sd: they are counted as constant and as changed. One that is constant over the whole
    batch changes none.

    Args:
        rewards: float32 [D, G, M], for each detector the rewards without its own penalty: of
            rewards r as they were paid, r + weights[:, None, None] * bits.
        bits: bool [D, G, M], the detectors.
        mask: bool [G, M], members.
        weights: float32 [D], penalties.
        eps: as `batch_advantages`.
        spread: as `batch_advantages`.
        scale: as `batch_advantages`.

    Returns:
        `Signal` with leaves [D].
    """
    chex.assert_rank([rewards, bits, mask, weights], [3, 3, 2, 1])
    chex.assert_equal_shape([rewards, bits])
    chex.assert_type([rewards, bits, mask, weights], [jnp.float32, bool, bool, jnp.float32])

    def one_group(rewards: jax.Array, bits: jax.Array, weight: jax.Array) -> Signal:
        def of_group(rewards: jax.Array, bits: jax.Array, mask: jax.Array) -> Signal:
            return signal(
                rewards, bits, mask, weight=weight, eps=eps, spread=spread, scale=group_scale
            )

        return jax.vmap(of_group)(rewards, bits, mask)

    def whole_batch(rewards: jax.Array, bits: jax.Array, weight: jax.Array) -> Signal:
        advantages = partial(batch_advantages, mask=mask, eps=eps, spread=spread, scale=scale)
        penalised = _penalised(rewards, bits, mask, weight)
        moved = jnp.any(jnp.abs(advantages(penalised) - advantages(rewards)) > _MOVED, axis=1)
        return jax.vmap(partial(_count, weight=weight))(bits, mask, moved & ~_constant(bits, mask))

    group_scale: Scale = "none" if scale == "none" else "sd"
    each = jax.vmap(whole_batch if scale == "batch" else one_group)(rewards, bits, weights)
    return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=1), each)


def _penalised(
    rewards: jax.Array, bits: jax.Array, mask: jax.Array, weight: jax.Array | float
) -> jax.Array:
    """Rewards with the penalty, less a part common to all: any shape."""
    # From the lowest reward, so that the penalty does not round what sets the members apart.
    low = jnp.min(rewards, where=mask, initial=jnp.inf)
    return jnp.where(mask, rewards - low, 0.0) - weight * bits.astype(jnp.float32)


def _constant(bits: jax.Array, mask: jax.Array) -> jax.Array:
    """Whether a detector is the same for all members, as it is for none: any shape -> bool []."""
    return ~jnp.any(bits & mask) | jnp.all(bits | ~mask)


def _count(
    bits: jax.Array, mask: jax.Array, changed: jax.Array, weight: jax.Array | float
) -> Signal:
    """The signal of one group [M], given whether its advantages changed."""
    size = jnp.sum(mask, dtype=jnp.int32)
    rows = jnp.sum(bits & mask, dtype=jnp.int32)
    some = size > 0
    share = rows.astype(jnp.float32) / jnp.maximum(size, 1).astype(jnp.float32)
    return Signal(
        groups=some.astype(jnp.int32),
        rows=rows,
        holding=(rows > 0).astype(jnp.int32),
        constant=(_constant(bits, mask) & some).astype(jnp.int32),
        changed=changed.astype(jnp.int32),
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
