"""From the margins of all edits of a trajectory to the one that a selector takes (SPEC section 6).

*First-visible* takes the first isolated pair; *oracle-worst* takes, for each contract by itself,
the isolated pair of largest margin.
"""

import jax
import jax.numpy as jnp

from herald_jax.types import pytree


@pytree
class Selected:
    """Margins of the selected edit; a margin counts only where `valid`."""

    first_visible: jax.Array  # float32 [J]
    first_valid: jax.Array  # bool [J]
    oracle_worst: jax.Array  # float32 [J]
    worst_valid: jax.Array  # bool [J]


def lowest_true(mask: jax.Array) -> jax.Array:
    """Index of the first True along the first axis: bool [E, ...] -> int32 [...], E if none."""
    index = jnp.arange(mask.shape[0], dtype=jnp.int32).reshape((-1,) + (1,) * (mask.ndim - 1))
    return jnp.min(jnp.where(mask, index, mask.shape[0]), axis=0, initial=mask.shape[0])


def select(margins: jax.Array, isolated: jax.Array) -> Selected:
    """The margins of the two selectors.

    Args:
        margins: float32 [J, E].
        isolated: bool [E].

    Returns:
        `Selected`. A margin that is not finite leaves: oracle-worst drops that candidate,
        first-visible that trajectory (SPEC section 13.9).
    """
    edits = jnp.arange(isolated.shape[0], dtype=jnp.int32)
    finite = jnp.isfinite(margins)
    first = (edits == lowest_true(isolated))[None] & finite
    usable = isolated[None] & finite
    return Selected(
        first_visible=jnp.sum(jnp.where(first, margins, 0.0), axis=1),
        first_valid=jnp.any(first, axis=1),
        oracle_worst=jnp.max(jnp.where(usable, margins, -jnp.inf), axis=1),
        worst_valid=jnp.any(usable, axis=1),
    )
