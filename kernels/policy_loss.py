"""The policy's loss, token by token: clipped objective, KL to a reference, weights of the mean.

The objective is PPO's clipped surrogate (arXiv 1707.06347, equation 7) with one advantage a token
as GRPO has it (arXiv 2402.03300) and the two sides of the clip apart (DAPO, arXiv 2503.14476). The
KL is the estimator known as k3: e^d - d - 1, d = log reference - log policy, of samples of the
policy (J. Schulman, "Approximating KL divergence", 2020).

What stands outside the mask, a tool's text or padding, may be anything, infinities and NaN
included, and does not exist for the arithmetic: it is replaced before `exp` and not only cut from
the result, where 0 · NaN would come back in the gradient. What is not finite inside the mask shows.
Elementwise kernels take arrays of any one shape.
"""

from typing import Literal

import chex
import jax
import jax.numpy as jnp

from herald_jax.types import PAD, pytree

Aggregation = Literal["token_mean", "row_mean", "fixed_length"]


@pytree
class TokenObjective:
    """The clipped objective of each token, to be made large. T stands for any axes."""

    value: jax.Array  # float32 [T], 0 outside the mask
    ratio: jax.Array  # float32 [T] probability of the token over that it was sampled with, or 1
    clipped_low: jax.Array  # bool [T] the lower side of the clip binds
    clipped_high: jax.Array  # bool [T] the upper side binds


def objective(
    logp: jax.Array,
    old_logp: jax.Array,
    advantage: jax.Array,
    mask: jax.Array,
    *,
    clip_low: float,
    clip_high: float,
    log_ratio_bound: float = 20.0,
) -> TokenObjective:
    """min(ρ A, clip(ρ, 1 - clip_low, 1 + clip_high) A), ρ = exp(logp - old_logp).

    The clip binds where ρ < 1 - clip_low and A < 0, or ρ > 1 + clip_high and A > 0: there the value
    is the bound times A and has no gradient. Everywhere else, on the bounds too, it is ρ A. The log
    ratio is held within ± log_ratio_bound, without gradient beyond, so that ρ stays finite.

    Args:
        logp: float32 [T], any shape, of the policy that is trained.
        old_logp: float32 [T], of the policy that sampled.
        advantage: float32 [T].
        mask: bool [T], tokens that the policy sampled.
        clip_low: 0 or more; 1 or more never binds.
        clip_high: 0 or more; infinity never binds.
        log_ratio_bound: above 0.

    Returns:
        `TokenObjective` of the same shape.

    Raises:
        ValueError: a clip below 0, or a bound that is not above 0.
    """
    chex.assert_equal_shape([logp, old_logp, advantage, mask])
    chex.assert_type([logp, old_logp, advantage], jnp.float32)
    chex.assert_type(mask, jnp.bool_)
    if clip_low < 0 or clip_high < 0:
        raise ValueError(f"clips are 0 or more, got low {clip_low} and high {clip_high}")
    if not log_ratio_bound > 0:
        raise ValueError(f"the bound of the log ratio is above 0, got {log_ratio_bound}")
    logp, old_logp = jnp.where(mask, logp, 0.0), jnp.where(mask, old_logp, 0.0)
    advantage = jnp.where(mask, advantage, 0.0)
    ratio = jnp.exp(jnp.clip(logp - old_logp, -log_ratio_bound, log_ratio_bound))
    low = (ratio < 1.0 - clip_low) & (advantage < 0.0)
    high = (ratio > 1.0 + clip_high) & (advantage > 0.0)
    # Chosen and not `minimum`, which splits the gradient where both sides are equal.
    factor = jnp.where(low, 1.0 - clip_low, jnp.where(high, 1.0 + clip_high, ratio))
    return TokenObjective(value=factor * advantage, ratio=ratio, clipped_low=low, clipped_high=high)


def kl(logp: jax.Array, reference: jax.Array, mask: jax.Array, *, cap: float = 20.0) -> jax.Array:
    """e^d - d - 1 at min(d, cap), d = reference - logp; a capped token has no gradient.

    Args:
        logp: float32 [T], any shape, of the policy that is trained.
        reference: float32 [T], of the reference; no gradient should reach it, and none is stopped.
        mask: bool [T], tokens that the policy sampled.
        cap: above 0; e^cap is finite up to 88.

    Returns:
        float32 [T], 0 outside the mask. Never negative but for rounding of the size of d.

    Raises:
        ValueError: the cap is not above 0 or too large for float32.
    """
    chex.assert_equal_shape([logp, reference, mask])
    chex.assert_type([logp, reference], jnp.float32)
    chex.assert_type(mask, jnp.bool_)
    if not 0 < cap <= 88:
        raise ValueError(f"the cap is above 0 and at most 88, got {cap}")
    d = jnp.where(mask, reference, 0.0) - jnp.where(mask, logp, 0.0)
    d = jnp.where(d > cap, cap, d)
    # expm1 and not exp - 1: policies that are close differ in d² / 2, below one step of 1.
    return jnp.expm1(d) - d


def token_weights(
    mask: jax.Array, aggregation: Aggregation, length: float | None = None
) -> jax.Array:
    """Weights w of the tokens of a whole batch: the loss is Σ w · (loss of the token).

    Counted once over all rows, before they are cut into micro-batches or laid on devices: sums over
    the pieces with these weights give the same loss however they are cut.

    - token_mean: 1 / (tokens of the batch);
    - row_mean: 1 / (tokens of the row · rows that have a token);
    - fixed_length: 1 / (length · rows that have a token).

    Args:
        mask: bool [B, T], tokens that the policy sampled.
        aggregation: as above.
        length: L of `fixed_length`, above 0; the others do not read it.

    Returns:
        float32 [B, T], 0 outside the mask; all 0 for a batch without a token.

    Raises:
        ValueError: another aggregation, or `fixed_length` without a length above 0.
    """
    chex.assert_rank(mask, 2)
    chex.assert_type(mask, jnp.bool_)
    tokens = jnp.sum(mask, axis=1, dtype=jnp.int32)
    rows = jnp.sum(tokens > 0, dtype=jnp.int32).astype(jnp.float32)
    if aggregation == "token_mean":
        count = jnp.broadcast_to(jnp.sum(tokens).astype(jnp.float32), tokens.shape)
    elif aggregation == "row_mean":
        count = tokens.astype(jnp.float32) * rows
    elif aggregation == "fixed_length":
        if length is None or not length > 0:
            raise ValueError(f"fixed_length takes a length above 0, got {length}")
        count = jnp.broadcast_to(rows * float(length), tokens.shape)
    else:
        raise ValueError(
            f"aggregation is token_mean, row_mean or fixed_length, got {aggregation!r}"
        )
    # Where there is no token the weight is 0 whatever it is divided by.
    each = 1.0 / jnp.where(tokens > 0, count, 1.0)
    return jnp.where(mask, each[:, None], 0.0)


def token_advantages(
    advantage: jax.Array, action: jax.Array, credit: jax.Array, query: jax.Array
) -> jax.Array:
    """A_t = A · action mask + A_call[k(t)] · query mask, of one rollout.

    Args:
        advantage: float32 [], of the whole rollout.
        action: bool [T], tokens that the policy sampled.
        credit: float32 [Q], of the query of each search (`retrieval_credit.local_credit`).
        query: int32 [T], which search's query a token belongs to, PAD elsewhere. Tokens outside
            `action` get nothing whatever stands here.

    Returns:
        float32 [T], 0 outside `action`.
    """
    chex.assert_rank([advantage, action, credit, query], [0, 1, 1, 1])
    chex.assert_equal_shape([action, query])
    chex.assert_type([advantage, action, credit, query], [jnp.float32, jnp.bool_, jnp.float32, int])
    # One compare a search and no gather: a code that is no search of this rollout finds nothing.
    searches = jnp.arange(credit.shape[0], dtype=query.dtype)
    belongs = (query[:, None] == searches[None, :]) & (query != PAD)[:, None]
    local = jnp.sum(jnp.where(belongs, credit[None, :], 0.0), axis=1)
    return jnp.where(action, advantage + local, 0.0)
