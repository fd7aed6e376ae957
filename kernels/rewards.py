"""Reward contracts: linear in features and detectors, all of them in one matrix product.

R(τ) = Σ_k w_k φ_k(τ) − Σ_j λ_j d_j(τ) (+ b · base(τ)), SPEC section 4. Features and detectors stand
under one another as the column x(τ) of length X = F + D; a contract is a row of length X. A reward
that is no linear function of x (a user's own) enters as the number base(τ).
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import chex
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from herald_jax.kernels.detectors import Flags, Limits, detect
from herald_jax.kernels.features import Features, FeatureWeights, featurise
from herald_jax.types import DETECTORS, FEATURES, State, pytree

# Columns of x, in order.
COLUMNS = (*FEATURES, *DETECTORS)

# The columns of edits that an operator can change at all, by name: features as float32, detectors
# as bool. The others are those of the original and have no part in a margin.
Moved: TypeAlias = Mapping[str, jax.Array]


@pytree
class Contracts:
    """Rewards as rows of a matrix."""

    weights: jax.Array  # float32 [J, X], penalties with their sign
    base: jax.Array  # float32 [J] share of a base reward that is given as numbers


@pytree
class Measured:
    """What rewards see of a trajectory."""

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
    """A feature or a detector by its name: float32 or bool."""
    values: jax.Array = getattr(measured.features if name in FEATURES else measured.flags, name)
    return values


def reward(contracts: Contracts, measured: Measured, base: jax.Array | None) -> jax.Array:
    """Every contract's reward of every trajectory: r = W x + b · base.

    Args:
        contracts: J rewards.
        measured: trajectories, any axes behind: [...].
        base: float32 [...] or None when every contract is linear in x.

    Returns:
        float32 [J, ...].
    """
    x = {name: column(measured, name).astype(jnp.float32) for name in COLUMNS}
    return _product(contracts, x, base)


def margin(
    contracts: Contracts, originals: Measured, edits: Moved, base: jax.Array | None
) -> jax.Array:
    """Every contract's margin of every pair: M = W (x(edit) − x(original)) + b · base margin.

    By linearity this is R(edit) − R(original) without the rounding of either, so that ties stay
    ties.

    Args:
        contracts: J rewards.
        originals: trajectories [...].
        edits: columns that their edits can change, [E, ...].
        base: float32 [E, ...] margins of the base reward, or None.

    Returns:
        float32 [J, E, ...].
    """
    delta = {
        name: values.astype(jnp.float32) - column(originals, name).astype(jnp.float32)[None]
        for name, values in edits.items()
    }
    return _product(contracts, delta, base)


def told_apart(
    weights: npt.NDArray[np.floating[Any]], base: npt.NDArray[np.bool_], columns: Sequence[str]
) -> tuple[list[int], npt.NDArray[np.intp]]:
    """The contracts that differ where edits can change something at all.

    Contracts with the same weights there have the same margins to the last bit: of the default
    eleven, laundering tells six apart. On the host.

    Args:
        weights: [J, X], which enter as float32.
        base: bool [J], contracts with a base reward that is given as numbers.
        columns: features and detectors that change.

    Returns:
        The first contract of each kind, ascending, and which kind each contract is, int [J].
    """
    changed = [COLUMNS.index(name) for name in columns]
    seen = np.column_stack([np.asarray(weights, np.float32)[:, changed], base])
    # A zero is a zero whatever its sign.
    rows = [row.tobytes() for row in seen.astype(np.float32) + np.float32(0)]
    kinds = list(dict.fromkeys(rows))
    return [rows.index(kind) for kind in kinds], np.array([kinds.index(row) for row in rows])


def _product(contracts: Contracts, x: Moved, base: jax.Array | None) -> jax.Array:
    """The matrix product of W with some of the rows of x: float32 [J, ...]."""
    chex.assert_axis_dimension(contracts.weights, 1, len(COLUMNS))
    rows = [(i, x[name][None]) for i, name in enumerate(COLUMNS) if name in x]
    behind = (-1,) + (1,) * (rows[0][1].ndim - 1)
    # Written out over its short inner axis: a library's product rounds in an order that depends on
    # the shape of the block (and on accelerators to fewer bits), and a margin must not. On CPU it
    # takes the same time.
    out = jnp.zeros((), jnp.float32)
    for i, row in rows:
        out = out + contracts.weights[:, i].reshape(behind) * row
    if base is None:
        return out
    share = contracts.base.reshape(behind)
    # A contract without the base stays finite where the base is not.
    return out + jnp.where(share == 0, 0.0, share * base[None])
