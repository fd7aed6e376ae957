"""One optimiser step on a batch of rollouts: the clipped objective, micro-batch by micro-batch.

What a token weighs in the loss is settled for the whole batch before it is cut, so that the sum
over micro-batches is the whole batch's gradient up to rounding, whatever the cut and the mesh. A
gradient that is not finite changes nothing and is reported.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding

from herald_jax.kernels.policy_loss import kl, objective
from herald_jax.types import PAD, pytree

Params = Any
Tree = TypeVar("Tree")


@pytree
class Batch:
    """B rows of T tokens, all of one update; of each row at most W tokens are trained."""

    tokens: jax.Array  # int32 [B, T]
    length: jax.Array  # int32 [B]
    places: jax.Array  # int32 [B, W] where the trained tokens stand, PAD at the end
    old_logps: jax.Array  # float32 [B, W] of the policy that wrote them
    reference: jax.Array  # float32 [B, W] log-probabilities of the frozen reference; 0 without KL
    advantage: jax.Array  # float32 [B, W]
    weight: jax.Array  # float32 [B, W] of each token in the loss, `policy_loss.token_weights`


@pytree
class TrainState:
    """What training changes."""

    params: Params  # what is trained
    frozen: Params  # what is not: base weights under LoRA, otherwise empty
    optimizer: optax.OptState
    step: jax.Array  # int32 [] optimiser steps taken


@pytree
class Stats:
    """What one step looked like; sums are over trained tokens."""

    loss: jax.Array  # float32 []
    tokens: jax.Array  # int32 [] trained
    entropy: jax.Array  # float32 [] summed
    kl: jax.Array  # float32 [] summed, to the reference
    clipped_low: jax.Array  # int32 []
    clipped_high: jax.Array  # int32 []
    ratio_low: jax.Array  # float32 [] smallest
    ratio_high: jax.Array  # float32 [] largest
    gap: jax.Array  # float32 [] largest |log-probability - sampler's|
    credited: jax.Array  # int32 [] tokens whose advantage is not 0
    grad_norm: jax.Array  # float32 [] before clipping
    finite: jax.Array  # bool [] loss and gradient are


Step = Callable[[TrainState, Batch], tuple[TrainState, Stats]]


def causal(length: jax.Array, width: int) -> jax.Array:
    """Which keys a query sees: bool [B, T, T], its own row up to itself, padding none."""
    place = jnp.arange(width, dtype=jnp.int32)
    inside = place[None] < length[:, None]
    return (place[None, :, None] >= place[None, None]) & inside[:, None] & inside[:, :, None]


def token_logps(
    policy: Any, tokens: jax.Array, length: jax.Array, places: jax.Array, temperature: float
) -> tuple[jax.Array, jax.Array]:
    """Log-probabilities of some tokens given all before them, and entropies of what they are of.

    Args:
        policy: a `train.model.Decoder`.
        tokens: int32 [B, T].
        length: int32 [B].
        places: int32 [B, W] which tokens, none of them the first of its row; PAD elsewhere.
        temperature: of the sampler.

    Returns:
        float32 [B, W] and [B, W]; finite and without meaning at PAD.
    """
    width = tokens.shape[1]
    positions = jnp.broadcast_to(jnp.arange(width, dtype=jnp.int32), tokens.shape)
    hidden, _ = policy.hidden(tokens, positions, causal(length, width))
    before = jnp.take_along_axis(hidden, jnp.maximum(places - 1, 0)[..., None], axis=1)
    wanted = jnp.take_along_axis(tokens, jnp.maximum(places, 0), axis=1)
    normal = jax.nn.log_softmax(policy.logits(before) / temperature, axis=-1)
    chosen = jnp.take_along_axis(normal, wanted[..., None], axis=-1)[..., 0]
    return chosen, -jnp.sum(jnp.exp(normal) * normal, axis=-1)


def micro_batches(batch: Tree, rows: int) -> Tree:
    """Arrays [B, ...] as [B / rows, rows, ...], to be scanned over.

    On a CPU small ones are twice as fast as the whole: what a layer writes is still in cache when
    the next one reads it.

    Args:
        batch: any tree of arrays with the same first axis.
        rows: of a micro-batch; divides B.
    """
    # Every n-th row to the same micro-batch: rows that are split over devices stay there.
    return jax.tree.map(
        lambda leaf: leaf.reshape(rows, leaf.shape[0] // rows, *leaf.shape[1:]).swapaxes(0, 1),
        batch,
    )


def make_step(
    graph: nnx.GraphDef[Any],
    optimizer: optax.GradientTransformation,
    *,
    micro_rows: int,
    temperature: float,
    clip_low: float,
    clip_high: float,
    kl_weight: float,
) -> Step:
    """The step as a pure function, not yet jitted.

    Args:
        graph: structure of the policy, merged with trained and frozen state.
        optimizer: what turns a gradient into an update.
        micro_rows: rows of a micro-batch; divides B.
        temperature: of the sampler.
        clip_low: ε_low.
        clip_high: ε_high.
        kl_weight: β; 0 leaves the reference unread.
    """

    def loss_of(params: Params, frozen: Params, batch: Batch) -> tuple[jax.Array, dict[str, Any]]:
        policy = nnx.merge(graph, params, frozen)
        logps, entropy = token_logps(policy, batch.tokens, batch.length, batch.places, temperature)
        action = batch.places != PAD
        found = objective(
            logps,
            batch.old_logps,
            batch.advantage,
            action,
            clip_low=clip_low,
            clip_high=clip_high,
        )
        losses = -found.value
        far = jnp.zeros((), jnp.float32)
        if kl_weight:
            distance = kl(logps, batch.reference, action)
            losses = losses + kl_weight * distance
            far = jnp.sum(distance)
        loss = jnp.sum(jnp.where(action, batch.weight * losses, 0.0))
        return loss, {
            "entropy": jnp.sum(jnp.where(action, entropy, 0.0)),
            "kl": far,
            "clipped_low": jnp.sum(found.clipped_low, dtype=jnp.int32),
            "clipped_high": jnp.sum(found.clipped_high, dtype=jnp.int32),
            "ratio_low": jnp.min(jnp.where(action, found.ratio, jnp.inf)),
            "ratio_high": jnp.max(jnp.where(action, found.ratio, -jnp.inf)),
            "gap": jnp.max(jnp.where(action, jnp.abs(logps - batch.old_logps), 0.0)),
        }

    gradient = jax.value_and_grad(loss_of, has_aux=True)

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Stats]:
        cut = micro_batches(batch, micro_rows)

        def one(carry: tuple[jax.Array, Params], part: Batch) -> tuple[Any, dict[str, Any]]:
            total, grads = carry
            (loss, seen), more = gradient(state.params, state.frozen, part)
            return (total + loss, jax.tree.map(jnp.add, grads, more)), seen

        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), state.params)
        (loss, grads), seen = jax.lax.scan(one, (jnp.zeros((), jnp.float32), zeros), cut)
        norm = optax.tree.norm(grads)
        finite = jnp.isfinite(loss) & jnp.isfinite(norm)
        updates, moved = optimizer.update(grads, state.optimizer, state.params)
        stepped = TrainState(
            params=optax.apply_updates(state.params, updates),
            frozen=state.frozen,
            optimizer=moved,
            step=state.step + 1,
        )
        after = jax.tree.map(lambda new, old: jnp.where(finite, new, old), stepped, state)
        stats = Stats(
            loss=loss,
            tokens=jnp.sum(batch.places != PAD, dtype=jnp.int32),
            entropy=jnp.sum(seen["entropy"]),
            kl=jnp.sum(seen["kl"]),
            clipped_low=jnp.sum(seen["clipped_low"]),
            clipped_high=jnp.sum(seen["clipped_high"]),
            ratio_low=jnp.min(seen["ratio_low"]),
            ratio_high=jnp.max(seen["ratio_high"]),
            gap=jnp.max(seen["gap"]),
            credited=jnp.sum((batch.places != PAD) & (batch.advantage != 0), dtype=jnp.int32),
            grad_norm=norm,
            finite=finite,
        )
        return after, stats

    return step


@partial(jax.jit, static_argnames=("graph", "temperature", "told"))
def reference_logps(
    graph: nnx.GraphDef[Any],
    params: Params,
    frozen: Params,
    tokens: jax.Array,
    length: jax.Array,
    places: jax.Array,
    *,
    temperature: float,
    told: NamedSharding,
) -> jax.Array:
    """Log-probabilities of tokens under a frozen policy: float32 [B, W], lying as `told` says."""
    policy = nnx.merge(graph, params, frozen)
    logps, _ = token_logps(policy, tokens, length, places, temperature)
    return jax.lax.with_sharding_constraint(logps, told)
