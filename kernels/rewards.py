"""Reward contracts: linear in features and detectors, all of them in one matrix product.

R(τ) = Σ_k w_k φ_k(τ) − Σ_j λ_j d_j(τ) (+ b · base(τ)), SPEC section 4. Features and detectors stand
under one another as the column x(τ) of length X = F + D; a contract is a row of length X. A reward
that is no linear function of x (a user's own) enters as the number base(τ).
"""

import chex
import jax
import jax.numpy as jnp

from herald_jax.kernels.detectors import Limits, detect, stack_flags
from herald_jax.kernels.features import FeatureWeights, featurise, stack_features
from herald_jax.types import State, pytree


@pytree
class Contracts:
    """Rewards as rows of a matrix."""

    weights: jax.Array  # float32 [J, X], penalties with their sign
    base: jax.Array  # float32 [J] share of a base reward that is given as numbers


def measure(
    state: State,
    support: jax.Array,
    n_support: jax.Array,
    f1: jax.Array,
    limits: Limits,
    weights: FeatureWeights,
) -> tuple[jax.Array, jax.Array]:
    """Features and detectors of one trajectory.

    Args:
        state: the trajectory.
        support: bool [C].
        n_support: int32 [].
        f1: float32 [].
        limits: thresholds of detectors.
        weights: weights inside features.

    Returns:
        x: float32 [X], features then detectors; and the detectors alone, bool [D].
    """
    flags = detect(state, support, limits)
    features = featurise(state, flags, support, n_support, f1, weights)
    bits = stack_flags(flags)
    return jnp.concatenate([stack_features(features), bits.astype(jnp.float32)]), bits


def reward(contracts: Contracts, x: jax.Array, base: jax.Array | None) -> jax.Array:
    """Every contract's reward of every trajectory: r = W x + b · base.

    A margin is the reward of a difference: by linearity `reward(contracts, x' − x, base' − base)`
    is R(edit) − R(original) without the rounding of either, so that ties stay ties.

    Args:
        contracts: J rewards.
        x: float32 [X, ...], any axes behind.
        base: float32 [...] or None when every contract is linear in x.

    Returns:
        float32 [J, ...].
    """
    chex.assert_axis_dimension(x, 0, contracts.weights.shape[1])
    # HIGHEST: an accelerator's default product keeps 8 to 10 bits, less than the tie tolerance.
    out = jnp.tensordot(contracts.weights, x, axes=1, precision=jax.lax.Precision.HIGHEST)
    if base is None:
        return out
    share = contracts.base.reshape((-1,) + (1,) * base.ndim)
    # A contract without the base stays finite where the base is not.
    return out + jnp.where(share == 0, 0.0, share * base[None])
