"""Pairs that a smaller set of penalties rejects and a larger one admits again (SPEC section 8).

For contracts S ⊆ T: M_T = M_S − Σ_{j ∈ T∖S} λ_j (d_j(edit) − d_j(original)), so that a penalty that
the edit turns off pays for the attack.
"""

import jax
import jax.numpy as jnp

from herald_jax.kernels.detectors import Flags
from herald_jax.kernels.rewards import Moved
from herald_jax.types import DETECTORS, pytree


@pytree
class Steps:
    """P steps from a contract to one with more penalties."""

    start: jax.Array  # int32 [P] row of S among the contracts
    end: jax.Array  # int32 [P] row of T
    added: jax.Array  # float32 [P, D] λ_j for j in T∖S, else 0


@pytree
class Readmitted:
    """Counts over the edits of one trajectory."""

    pairs: jax.Array  # int32 [P] isolated pairs with finite margins under S and T
    readmitted: jax.Array  # int32 [P] of these, failing under S and succeeding under T
    paid: jax.Array  # int32 [P, D] of these, with λ_j (d_j(original) − d_j(edit)) > 0


def readmit(
    margins: jax.Array,
    isolated: jax.Array,
    before: Flags,
    after: Moved,
    steps: Steps,
    tie_tolerance: jax.Array,
) -> Readmitted:
    """Count re-admitted pairs, for every step.

    Args:
        margins: float32 [J, E, ...].
        isolated: bool [E, ...].
        before: detectors of the originals, [...].
        after: columns that the edits can change, [E, ...].
        steps: pairs of contracts.
        tie_tolerance: float32 [].

    Returns:
        `Readmitted`, summed over every axis of the pairs.
    """
    unmoved = jnp.zeros(isolated.shape, bool)
    freed = jnp.stack(
        [
            getattr(before, name)[None] & ~after[name] if name in after else unmoved
            for name in DETECTORS
        ]
    )

    def one(step: tuple[jax.Array, jax.Array, jax.Array]) -> Readmitted:
        start, end, added = step
        low, high = margins[start], margins[end]
        counted = isolated & jnp.isfinite(low) & jnp.isfinite(high)
        again = counted & (low < -tie_tolerance) & (high >= -tie_tolerance)
        shape = (-1,) + (1,) * again.ndim
        paid = again[None] & freed & (added.reshape(shape) > 0)
        over = tuple(range(again.ndim))
        return Readmitted(
            pairs=jnp.sum(counted, dtype=jnp.int32),
            readmitted=jnp.sum(again, dtype=jnp.int32),
            paid=jnp.sum(paid, axis=tuple(axis + 1 for axis in over), dtype=jnp.int32),
        )

    # One step at a time: a lattice of ten detectors has thousands, and all at once would not fit.
    return jax.lax.map(one, (steps.start, steps.end, steps.added))
