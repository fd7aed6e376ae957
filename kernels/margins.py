"""From the margins of all edits of a trajectory to the one that a selector takes (SPEC section 6).

*First-visible* takes the first isolated pair; *oracle-worst* takes, for each contract by itself,
the isolated pair of largest margin.
"""

from typing import TypeAlias

import jax
import jax.numpy as jnp

from herald_jax.types import pytree

# Edits are gone through in order; up to so many as straight code, which XLA fuses into one pass.
_UNROLL = 16

_Carry: TypeAlias = "tuple[Selected, jax.Array]"


@pytree
class Selected:
    """Margins of the selected edit; a margin counts only where `valid`."""

    first_visible: jax.Array  # float32 [J]
    first_valid: jax.Array  # bool [J]
    oracle_worst: jax.Array  # float32 [J], -inf where none counts
    worst_valid: jax.Array  # bool [J]
    worst_edit: jax.Array  # int32 [J] the lowest edit of that margin, E where none counts


def select(margins: jax.Array, isolated: jax.Array) -> Selected:
    """The margins of the two selectors.

    Takes any axes behind its own instead of being mapped over them: under `vmap` the batch axis
    would be moved to the front and back, which costs more than the selection.

    Args:
        margins: float32 [J, E, ...].
        isolated: bool [E, ...].

    Returns:
        `Selected` [J, ...]. A margin that is not finite leaves: oracle-worst drops that candidate,
        first-visible that trajectory (SPEC section 13.9).
    """
    edits = margins.shape[1]
    shape = (margins.shape[0], *margins.shape[2:])
    nothing = Selected(
        first_visible=jnp.zeros(shape, jnp.float32),
        first_valid=jnp.zeros(shape, bool),
        oracle_worst=jnp.full(shape, -jnp.inf, jnp.float32),
        worst_valid=jnp.zeros(shape, bool),
        worst_edit=jnp.full(shape, edits, jnp.int32),
    )

    def look(so_far: _Carry, number: jax.Array | int) -> _Carry:
        picked, taken = so_far
        margin, counts = margins[:, number], isolated[number]
        finite = counts[None] & jnp.isfinite(margin)
        first = finite & ~taken[None]
        better = finite & (margin > picked.oracle_worst)
        found = Selected(
            first_visible=jnp.where(first, margin, picked.first_visible),
            first_valid=picked.first_valid | first,
            oracle_worst=jnp.where(better, margin, picked.oracle_worst),
            worst_valid=picked.worst_valid | finite,
            worst_edit=jnp.where(better, jnp.int32(number), picked.worst_edit),
        )
        return found, taken | counts

    so_far = (nothing, jnp.zeros(isolated.shape[1:], bool))
    if edits > _UNROLL:
        return jax.lax.fori_loop(0, edits, lambda e, carry: look(carry, e), so_far)[0]
    for e in range(edits):
        so_far = look(so_far, e)
    return so_far[0]
