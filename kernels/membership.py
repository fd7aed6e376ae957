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
# As many answers as go into one word of `look`.
_TOGETHER = 4


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


def look(ids: jax.Array, among: jax.Array) -> jax.Array:
    """`member`, with the answers for a few ids packed into one word.

    Each place of the list is read once for all ids of a word and not once for every id: on CPU that
    is twice as fast over a block's retrieved lists. But only while the word is written to memory:
    what reads it (`looked_up`) must be a program of its own, or XLA works out the whole word again
    for every answer.

    Args:
        ids: int32 [X], PAD where absent.
        among: int32 [Y], PAD where absent.

    Returns:
        uint8 [X / T], T the largest divisor of X up to 4: bit t of word i says whether id T i + t
        stands in the list.
    """
    chex.assert_rank([ids, among], 1)
    chex.assert_type([ids, among], int)
    together = _together(ids.shape[0])
    columns = ids.reshape(-1, together)

    def word(piece: jax.Array) -> jax.Array:
        out = jnp.zeros(columns.shape[:1], jnp.uint8)
        for t in range(together):
            column = columns[:, t]
            found = jnp.zeros(column.shape, bool)
            for y in range(piece.shape[0]):
                found |= column == piece[y]
            out |= (found & (column >= 0)).astype(jnp.uint8) << t
        return out

    whole = among.shape[0] // _UNROLL * _UNROLL
    found = word(among[whole:])
    if whole:
        pieces = among[:whole].reshape(-1, _UNROLL)
        found, _ = jax.lax.scan(lambda so_far, piece: (so_far | word(piece), None), found, pieces)
    return found


def looked_up(words: jax.Array, count: int) -> jax.Array:
    """The answers in the words of `look` for `count` ids: uint8 [X / T] -> bool [X]."""
    bits = jnp.arange(_together(count), dtype=jnp.uint8)
    return ((words[:, None] >> bits[None, :]) & 1).astype(bool).reshape(count)


def _together(count: int) -> int:
    return next(t for t in range(_TOGETHER, 0, -1) if count % t == 0)


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


def describe_state(
    visible: Visible, passages: jax.Array, retrieved: jax.Array | None = None
) -> State:
    """The state of a logged trajectory.

    Args:
        visible: one trajectory.
        passages: int32 [], size of the corpus.
        retrieved: words of `look` for its citations among what it retrieved; None looks here.

    Returns:
        Its `State`, citations as wide as in `visible`.
    """
    ids = visible.citations
    return State(
        ids=ids,
        present=ids >= 0,
        real=is_real(ids, passages),
        retrieved=_retrieved(ids, visible, retrieved),
        first=first_occurrence(ids),
        searches=visible.searches,
        invalid=visible.invalid,
        repeated=visible.repeated,
        answer_tokens=visible.answer_tokens,
        malformed=visible.malformed,
    )


def describe_offer(
    ids: jax.Array, visible: Visible, passages: jax.Array, retrieved: jax.Array | None = None
) -> Offer:
    """What is known of ids on offer: int32 [K] -> `Offer` of shape [K]; as `describe_state`."""
    return Offer(
        ids=ids,
        present=ids >= 0,
        real=is_real(ids, passages),
        retrieved=_retrieved(ids, visible, retrieved),
    )


def _retrieved(ids: jax.Array, visible: Visible, words: jax.Array | None) -> jax.Array:
    return member(ids, visible.retrieved) if words is None else looked_up(words, ids.shape[0])


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
