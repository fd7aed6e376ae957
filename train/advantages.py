"""From rewards and searches to what each token is trained with, by kernels (SPEC section 10)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from herald_jax.kernels.groups import Signal, batch_advantages, is_flat, signals, usable
from herald_jax.kernels.policy_loss import token_advantages
from herald_jax.kernels.retrieval_credit import kept, local_credit, permute, scalar_bonus
from herald_jax.train.config import Credit, Grpo
from herald_jax.train.evidence import Searched
from herald_jax.types import PAD, pytree


@pytree
class Credited:
    """What B = G * M rollouts are trained with."""

    reward: jax.Array  # float32 [B] with the scalar bonus
    bonus: jax.Array  # float32 [B]
    member: jax.Array  # bool [B] counts in its group
    advantage: jax.Array  # float32 [B] of the outcome
    credit: jax.Array  # float32 [B, Q] of the tokens of each query, beside it
    flat: jax.Array  # bool [G] no signal in the rewards of the group


def credit_rollouts(
    rewards: NDArray[np.float32],
    trainable: NDArray[np.integer[Any]],
    truncated: NDArray[np.bool_],
    searched: Searched,
    *,
    group: int,
    grpo: Grpo,
    credit: Credit,
    key: jax.Array,
) -> Credited:
    """Advantages of rollouts, group by group.

    Args:
        rewards: float32 [B], NaN where a rollout could not be scored.
        trainable: [B] tokens that each policy wrote.
        truncated: bool [B], ended by a limit.
        searched: their searches.
        group: M; rollouts of a question stand side by side.
        grpo: the objective's settings.
        credit: which credit searches get.
        key: for the controls that shuffle.
    """
    return _credit(
        jnp.asarray(rewards),
        jnp.asarray(trainable, jnp.int32),
        jnp.asarray(truncated),
        searched,
        key,
        group=group,
        grpo=grpo,
        credit=credit,
    )


@partial(jax.jit, static_argnames=("group", "grpo", "credit"))
def _credit(
    rewards: jax.Array,
    trainable: jax.Array,
    truncated: jax.Array,
    searched: Searched,
    key: jax.Array,
    *,
    group: int,
    grpo: Grpo,
    credit: Credit,
) -> Credited:
    def grouped(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(-1, group, *leaf.shape[1:])

    member = usable(rewards, trainable)
    mask, executed, rises = grouped(member), grouped(searched.executed), grouped(searched.events)
    groups = mask.shape[0]
    if credit.control == "permute":
        keys = jax.vmap(lambda at: jax.random.fold_in(key, at))(jnp.arange(groups))
        rises = jax.vmap(permute)(rises, executed, keys)
    flat = jax.vmap(is_flat)(grouped(rewards), mask)
    bonus = jnp.zeros_like(rewards)
    local = jnp.zeros_like(rises)
    if credit.signal != "none" and credit.incorporation == "scalar":
        one = partial(scalar_bonus, weight=credit.scalar_weight)
        bonus = jax.vmap(jax.vmap(one))(rises).reshape(-1)
    elif credit.signal != "none":
        local = jax.vmap(partial(local_credit, weight=credit.local_weight))(
            rises,
            executed,
            grouped(searched.call_tokens),
            grouped(searched.query_tokens),
            mask & ~grouped(truncated),
        )
        control: Any = credit.control
        local = jnp.where(kept(control, flat)[:, None, None], local, 0.0)
    total = rewards + bonus
    scale: Any = grpo.scale
    advantage = batch_advantages(grouped(total), mask, eps=grpo.eps, scale=scale)
    if grpo.shuffle_advantages:
        # Members alone change places, so that the others keep their zeros.
        draws = jax.random.uniform(jax.random.fold_in(key, 2**31 - 1), mask.shape)
        order = jnp.argsort(jnp.where(mask, draws, 2.0), axis=1, stable=True)
        place = jnp.maximum(jnp.cumsum(mask, axis=1, dtype=jnp.int32) - 1, 0)
        moved = jnp.take_along_axis(advantage, order, axis=1)
        advantage = jnp.where(mask, jnp.take_along_axis(moved, place, axis=1), 0.0)
    return Credited(
        reward=total,
        bonus=bonus,
        member=member,
        advantage=advantage.reshape(-1),
        credit=local.reshape(-1, local.shape[-1]),
        flat=flat,
    )


@jax.jit
def spread_advantages(
    advantage: jax.Array, credit: jax.Array, action: jax.Array, query: jax.Array
) -> jax.Array:
    """Advantages of tokens: float32 [B], [B, Q], bool [B, W], int32 [B, W] -> float32 [B, W]."""
    return jax.vmap(token_advantages)(advantage, action, credit, query)


def query_places(
    spans: Sequence[Sequence[tuple[int, int] | None]], places: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Which search's query each trained token belongs to, PAD elsewhere: int32 [B, W].

    Args:
        spans: for each rollout, where the query of each of its searches stands.
        places: int32 [B, W], where the trained tokens stand.
    """
    found = np.full(places.shape, PAD, np.int32)
    for row, queries in enumerate(spans):
        for k, span in enumerate(queries):
            if span is not None:
                found[row, (places[row] >= span[0]) & (places[row] < span[1])] = k
    return found


@partial(jax.jit, static_argnames=("group", "grpo"))
def detector_signals(
    rewards: jax.Array,
    bits: jax.Array,
    member: jax.Array,
    penalties: jax.Array,
    *,
    group: int,
    grpo: Grpo,
) -> Signal:
    """Whether the penalty of each detector reaches the advantages: `Signal` with leaves [D].

    Args:
        rewards: float32 [B] as they were paid.
        bits: bool [D, B], detectors.
        member: bool [B], rollouts that count in their groups.
        penalties: float32 [D], λ in the reward; 0 for a detector that is not paid.
        group: M.
        grpo: eps and scale.
    """
    scale: Any = grpo.scale
    count = penalties.shape[0]
    paid = jnp.where(member, rewards, 0.0)[None]
    without = paid + penalties[:, None] * bits.astype(jnp.float32)
    return signals(
        without.reshape(count, -1, group),
        bits.reshape(count, -1, group),
        member.reshape(-1, group),
        penalties,
        eps=grpo.eps,
        scale=scale,
    )
