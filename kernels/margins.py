"""From the margins of all edits of a trajectory to the one that a selector takes (SPEC section 6).

*First-visible* takes the first isolated pair; *oracle-worst* takes, for each contract by itself,
the isolated pair of largest margin.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

from herald_jax.types import pytree

# Edits are gone through in order; up to so many as straight code, which XLA fuses into one pass.
_UNROLL = 16

_Carry = TypeVar("_Carry")


@pytree
class Selected:
    """Margins of the selected edit of each trajectory; one that is not finite does not count.

    So oracle-worst drops a candidate without a finite margin, first-visible the trajectory (SPEC
    section 13.9).
    """

    first_visible: jax.Array  # float32 [J], NaN where there is no isolated pair
    oracle_worst: jax.Array  # float32 [J], -inf where there is none


# Both take any axes behind their own instead of being mapped over them: under `vmap` the batch axis
# would be moved to the front and back, which costs more than the selection.


def first(values: jax.Array, isolated: jax.Array) -> jax.Array:
    """What the first isolated edit has.

    Args:
        values: [E, ...], a number or a flag of every edit.
        isolated: bool [E, ...].

    Returns:
        [...], zero or False where no edit is isolated.
    """

    def look(
        so_far: tuple[jax.Array, jax.Array], number: jax.Array | int
    ) -> tuple[jax.Array, jax.Array]:
        found, taken = so_far
        counts = isolated[number]
        return jnp.where(counts & ~taken, values[number], found), taken | counts

    start = jnp.zeros(values.shape[1:], values.dtype), jnp.zeros(isolated.shape[1:], bool)
    return _over_edits(values.shape[0], look, start)[0]


def worst(margins: jax.Array, isolated: jax.Array) -> jax.Array:
    """The largest finite margin of an isolated edit, under each contract by itself.

    Args:
        margins: float32 [J, E, ...].
        isolated: bool [E, ...].

    Returns:
        float32 [J, ...], -inf where there is none.
    """

    def look(so_far: jax.Array, number: jax.Array | int) -> jax.Array:
        margin = margins[:, number]
        better = isolated[number][None] & jnp.isfinite(margin) & (margin > so_far)
        return jnp.where(better, margin, so_far)

    edits = margins.shape[1]
    shape = (margins.shape[0], *margins.shape[2:])
    return _over_edits(edits, look, jnp.full(shape, -jnp.inf, jnp.float32))


def _over_edits(
    edits: int, look: Callable[[_Carry, jax.Array | int], _Carry], so_far: _Carry
) -> _Carry:
    if edits > _UNROLL:
        return jax.lax.fori_loop(0, edits, lambda e, carry: look(carry, e), so_far)
    for e in range(edits):
        so_far = look(so_far, e)
    return so_far
