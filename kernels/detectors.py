"""The eight detectors of SPEC section 3, each a boolean of one trajectory.

Source: HERALD (arXiv 2608.06012), detectors U, L, F and those of its full reward.
"""

import jax
import jax.numpy as jnp

from herald_jax.types import State, pytree


@pytree
class Limits:
    """Thresholds of the two detectors that count searches."""

    min_searches: jax.Array  # int32 [] fewer is under-retrieval
    max_searches: jax.Array  # int32 [] more is over-retrieval


@pytree
class Flags:
    """One boolean for each detector, fields in the order of `types.DETECTORS`."""

    no_search: jax.Array
    cited_not_retrieved: jax.Array
    fake_citation: jax.Array
    under_retrieval: jax.Array
    repeated_query: jax.Array
    answer_without_citation: jax.Array
    over_retrieval: jax.Array
    support_id_mismatch: jax.Array


def nonempty_final(state: State) -> jax.Array:
    """The answer has a character that is not white space: bool []."""
    return state.answer_tokens > 0


def detect(state: State, support: jax.Array, limits: Limits) -> Flags:
    """All detectors of one trajectory.

    Args:
        state: the trajectory.
        support: bool [C], which citations are support ids; only `support_id_mismatch` reads it.
        limits: thresholds.

    Returns:
        `Flags` of scalars.
    """
    final = nonempty_final(state)
    cited = jnp.any(state.present, axis=0)
    return Flags(
        no_search=final & (state.searches == 0),
        cited_not_retrieved=jnp.any(state.present & state.real & ~state.retrieved, axis=0),
        fake_citation=jnp.any(state.present & ~state.real, axis=0),
        under_retrieval=final & (state.searches < limits.min_searches),
        repeated_query=state.repeated,
        answer_without_citation=final & ~cited,
        over_retrieval=state.searches > limits.max_searches,
        support_id_mismatch=cited & ~jnp.any(state.present & support, axis=0),
    )
