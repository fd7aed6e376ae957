"""Reward contracts: linear in features and detectors, all of them in one matrix product.

R(τ) = Σ_k w_k φ_k(τ) − Σ_j λ_j d_j(τ) (+ b · base(τ)), SPEC section 4. Features and detectors stand
under one another as the column x(τ) of length X = F + D; a contract is a row of length X. A reward
that is no linear function of x (a user's own) enters as the number base(τ).
"""

from collections.abc import Sequence

import chex
import jax
import jax.numpy as jnp

from herald_jax.kernels.detectors import Flags, Limits, detect
from herald_jax.kernels.features import Features, FeatureWeights, featurise
from herald_jax.types import DETECTORS, FEATURES, State, pytree

# Columns of x, in order.
COLUMNS = (*FEATURES, *DETECTORS)


@pytree
class Contracts:
    """Rewards as rows of a matrix."""

    weights: jax.Array  # float32 [J, X], penalties with their sign
    base: jax.Array  # float32 [J] share of a base reward that is given as numbers


@pytree
class Measured:
    """What rewards see of a trajectory, or of edits with one more axis."""

    features: Features
    flags: Flags


def measure(
    state: State,
    support: jax.Array,
    n_support: jax.Array,
    f1: jax.Array,
    limits: Limits,
    weights: FeatureWeights,
) -> Measured:
    """Features and detectors of one trajectory.

    Args:
        state: the trajectory.
        support: bool [C].
        n_support: int32 [].
        f1: float32 [].
        limits: thresholds of detectors.
        weights: weights inside features.

    Returns:
        `Measured` of scalars.
    """
    flags = detect(state, support, limits)
    features = featurise(state, flags, support, n_support, f1, weights)
    return Measured(features=features, flags=flags)


def column(measured: Measured, name: str) -> jax.Array:
    """One column of x, as float32: a feature or a detector by its name."""
    found = measured.features if name in FEATURES else measured.flags
    values: jax.Array = getattr(found, name)
    return values.astype(jnp.float32)


def reward(contracts: Contracts, measured: Measured, base: jax.Array | None) -> jax.Array:
    """Every contract's reward of every trajectory: r = W x + b · base.

    Args:
        contracts: J rewards.
        measured: trajectories, any axes behind: [...].
        base: float32 [...] or None when every contract is linear in x.

    Returns:
        float32 [J, ...].
    """
    x = [column(measured, name) for name in COLUMNS]
    return _product(contracts, x, COLUMNS, base)


def margin(
    contracts: Contracts,
    originals: Measured,
    edits: Measured,
    base: jax.Array | None,
    columns: Sequence[str],
) -> jax.Array:
    """Every contract's margin of every pair: M = W (x(edit) − x(original)) + b · base margin.

    By linearity this is R(edit) − R(original) without the rounding of either, so that ties stay
    ties.

    Args:
        contracts: J rewards.
        originals: trajectories [...].
        edits: their edits [E, ...].
        base: float32 [E, ...] margins of the base reward, or None.
        columns: the columns of x that the edit can change; the others have no part in a margin.

    Returns:
        float32 [J, E, ...].
    """
    delta = [column(edits, name) - column(originals, name)[None] for name in columns]
    return _product(contracts, delta, columns, base)


def _product(
    contracts: Contracts,
    x: Sequence[jax.Array],
    columns: Sequence[str],
    base: jax.Array | None,
) -> jax.Array:
    """The matrix product of some columns of W with as many rows of x: float32 [J, ...]."""
    chex.assert_axis_dimension(contracts.weights, 1, len(COLUMNS))
    behind = (-1,) + (1,) * x[0].ndim
    out = jnp.zeros((contracts.weights.shape[0], *x[0].shape), jnp.float32)
    # Written out over its short inner axis: a library's product rounds in an order that depends on
    # the shape of the block (and on accelerators to fewer bits), and a margin must not. On CPU it
    # takes the same time.
    for name, row in zip(columns, x, strict=True):
        out += contracts.weights[:, COLUMNS.index(name)].reshape(behind) * row[None]
    if base is None:
        return out
    share = contracts.base.reshape(behind)
    # A contract without the base stays finite where the base is not.
    return out + jnp.where(share == 0, 0.0, share * base[None])
