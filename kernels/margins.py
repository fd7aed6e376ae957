"""From the margins of all edits of a trajectory to the one that a selector takes (SPEC section 6).

*First-visible* takes the first isolated pair; *oracle-worst* takes, for each contract by itself,
the isolated pair of largest margin.
"""

import jax
import jax.numpy as jnp

from herald_jax.types import pytree

# Edits are gone through in order; up to so many as straight code, which XLA fuses into one pass.
_UNROLL = 16


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

    Args:
        margins: float32 [J, E].
        isolated: bool [E].

    Returns:
        `Selected`. A margin that is not finite leaves: oracle-worst drops that candidate,
        first-visible that trajectory (SPEC section 13.9).
    """
    contracts, edits = margins.shape
    nothing = Selected(
        first_visible=jnp.zeros(contracts, jnp.float32),
        first_valid=jnp.zeros(contracts, bool),
        oracle_worst=jnp.full(contracts, -jnp.inf, jnp.float32),
        worst_valid=jnp.zeros(contracts, bool),
        worst_edit=jnp.full(contracts, edits, jnp.int32),
    )

    def look(
        so_far: tuple[Selected, jax.Array], edit: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[Selected, jax.Array], None]:
        picked, taken = so_far
        number, margin, counts = edit
        finite = counts & jnp.isfinite(margin)
        first = finite & ~taken
        better = finite & (margin > picked.oracle_worst)
        found = Selected(
            first_visible=jnp.where(first, margin, picked.first_visible),
            first_valid=picked.first_valid | first,
            oracle_worst=jnp.where(better, margin, picked.oracle_worst),
            worst_valid=picked.worst_valid | finite,
            worst_edit=jnp.where(better, number, picked.worst_edit),
        )
        return (found, taken | counts), None

    numbers = jnp.arange(edits, dtype=jnp.int32)
    (selected, _), _ = jax.lax.scan(
        look, (nothing, jnp.zeros((), bool)), (numbers, margins.T, isolated), unroll=_UNROLL
    )
    return selected
