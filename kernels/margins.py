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


def first_true(mask: jax.Array) -> jax.Array:
    """The first True of a list alone: bool [E] -> bool [E]."""
    taken = jnp.zeros(mask.shape[1:], bool)
    out = []
    for e in range(mask.shape[0]):
        out.append(mask[e] & ~taken)
        taken |= mask[e]
    return jnp.stack(out)


def select(margins: jax.Array, isolated: jax.Array) -> Selected:
    """The margins of the two selectors.

    Args:
        margins: float32 [J, E].
        isolated: bool [E].

    Returns:
        `Selected`. A margin that is not finite leaves: oracle-worst drops that candidate,
        first-visible that trajectory (SPEC section 13.9).
    """
    first = first_true(isolated)
    finite = jnp.isfinite(margins)
    chosen = jnp.sum(jnp.where(first[None] & finite, margins, 0.0), axis=1)
    usable = isolated[None] & finite
    return Selected(
        first_visible=chosen,
        first_valid=jnp.any(first[None] & finite, axis=1),
        oracle_worst=jnp.max(jnp.where(usable, margins, -jnp.inf), axis=1),
        worst_valid=jnp.any(usable, axis=1),
    )
