"""Candidates that a log itself proposes, cut to those that a generator may return (SPEC 6)."""

import jax

from herald_jax.kernels.membership import first_occurrence, is_real, member
from herald_jax.kernels.offers import compact
from herald_jax.types import Visible


def admitted(proposed: jax.Array, visible: Visible, passages: jax.Array, width: int) -> jax.Array:
    """The first distinct passages of P \\ (E ∪ C) among some ids, in their order.

    Args:
        proposed: int32 [K] ids, best first, PAD behind.
        visible: the trajectory.
        passages: int32 [], size of the corpus.
        width: how many are wanted.

    Returns:
        int32 [width], PAD where fewer.
    """
    taken = member(proposed, visible.retrieved) | member(proposed, visible.citations)
    free = is_real(proposed, passages) & ~taken & first_occurrence(proposed)
    return compact(proposed, free, width)
