"""From ids to what is known of them: the one look at the retrieved ids that an audit takes.

Everything after this works on a few booleans for each citation (`types.State`), so that detectors
of an edit cost nothing that depends on how much was retrieved. Written for one trajectory; callers
`vmap` over the last axis. Source: SPEC sections 1 and 3.
"""

import chex
import jax
import jax.numpy as jnp

from herald_jax.types import Labels, Offer, Oracle, State, Visible

# A list longer than this is gone through in pieces, so that programs stay short.
_UNROLL = 64


def member(ids: jax.Array, among: jax.Array) -> jax.Array:
    """Which of some ids stand in a list: out[x] = any_y ids[x] = among[y], never for PAD.

    Args:
        ids: int32 [X], PAD where absent.
        among: int32 [Y], PAD where absent.

    Returns:
        bool [X].
    """
    chex.assert_rank([ids, among], 1)
    chex.assert_type([ids, among], int)

    def any_of(piece: jax.Array) -> jax.Array:
        found = jnp.zeros(ids.shape, bool)
        # Unrolled over the list: XLA fuses the compares with each of its places into one pass over
        # the block, where a table [X, Y] would be written to memory first.
        for y in range(piece.shape[0]):
            found |= ids == piece[y]
        return found

    whole = among.shape[0] // _UNROLL * _UNROLL
    found = any_of(among[whole:])
    if whole:
        pieces = among[:whole].reshape(-1, _UNROLL)
        found, _ = jax.lax.scan(lambda so_far, piece: (so_far | any_of(piece), None), found, pieces)
    return found & (ids >= 0)


def first_occurrence(ids: jax.Array) -> jax.Array:
    """True where an id does not stand at an earlier position; False for PAD. int32 [C] -> bool."""
    chex.assert_rank(ids, 1)
    position = jnp.arange(ids.shape[0], dtype=jnp.int32)
    earlier = position[None, :] < position[:, None]
    return ~jnp.any((ids[:, None] == ids[None, :]) & earlier, axis=1) & (ids >= 0)


def size(ids: jax.Array) -> jax.Array:
    """How many ids a list holds: int32 [X] -> int32 []."""
    return jnp.sum(ids >= 0, dtype=jnp.int32)


def is_real(ids: jax.Array, passages: jax.Array) -> jax.Array:
    """True for ids of the corpus: codes 0 .. passages - 1 (`types.arrays`)."""
    return (ids >= 0) & (ids < passages)


def describe_state(visible: Visible, passages: jax.Array) -> State:
    """The state of a logged trajectory.

    Args:
        visible: one trajectory.
        passages: int32 [], size of the corpus.

    Returns:
        Its `State`, citations as wide as in `visible`.
    """
    ids = visible.citations
    return State(
        ids=ids,
        present=ids >= 0,
        real=is_real(ids, passages),
        retrieved=member(ids, visible.retrieved),
        first=first_occurrence(ids),
        searches=visible.searches,
        invalid=visible.invalid,
        repeated=visible.repeated,
        answer_tokens=visible.answer_tokens,
        malformed=visible.malformed,
    )


def describe_offer(ids: jax.Array, visible: Visible, passages: jax.Array) -> Offer:
    """What is known of ids on offer: int32 [K] -> `Offer` of shape [K]."""
    return Offer(
        ids=ids,
        present=ids >= 0,
        real=is_real(ids, passages),
        retrieved=member(ids, visible.retrieved),
    )


def describe_labels(citations: jax.Array, offered: jax.Array, oracle: Oracle) -> Labels:
    """What gold says of the cited and the offered ids.

    Args:
        citations: int32 [C].
        offered: int32 [K].
        oracle: labels of the trajectory's question.

    Returns:
        `Labels` with `offered_support` of shape [K].
    """
    return Labels(
        support=member(citations, oracle.support),
        offered_support=member(offered, oracle.support),
        n_support=size(oracle.support),
        f1=oracle.f1,
        gold_f1=oracle.gold_f1,
        gold_tokens=oracle.gold_tokens,
        is_gold=oracle.is_gold,
    )
