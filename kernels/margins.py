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

_Carry: TypeAlias = tuple[jax.Array, jax.Array, jax.Array]


@pytree
class Selected:
    """Margins of the selected edit of each trajectory; one that is not finite does not count."""

    first_visible: jax.Array  # float32 [J], NaN where there is no isolated pair
    oracle_worst: jax.Array  # float32 [J], -inf where there is none


def select(margins: jax.Array, isolated: jax.Array) -> Selected:
    """The margins of the two selectors.

    Takes any axes behind its own instead of being mapped over them: under `vmap` the batch axis
    would be moved to the front and back, which costs more than the selection.

    Args:
        margins: float32 [J, E, ...].
        isolated: bool [E, ...].

    Returns:
        `Selected` [J, ...]. Where a margin is not finite, oracle-worst drops that candidate and
        first-visible that trajectory (SPEC section 13.9).
    """
    edits = margins.shape[1]
    shape = (margins.shape[0], *margins.shape[2:])

    def look(so_far: _Carry, number: jax.Array | int) -> _Carry:
        first, worst, taken = so_far
        margin, counts = margins[:, number], isolated[number]
        first = jnp.where((counts & ~taken)[None], margin, first)
        better = counts[None] & jnp.isfinite(margin) & (margin > worst)
        return first, jnp.where(better, margin, worst), taken | counts

    so_far = (
        jnp.full(shape, jnp.nan, jnp.float32),
        jnp.full(shape, -jnp.inf, jnp.float32),
        jnp.zeros(isolated.shape[1:], bool),
    )
    if edits > _UNROLL:
        first, worst, _ = jax.lax.fori_loop(0, edits, lambda e, carry: look(carry, e), so_far)
    else:
        for e in range(edits):
            so_far = look(so_far, e)
        first, worst, _ = so_far
    return Selected(first_visible=first, oracle_worst=worst)
