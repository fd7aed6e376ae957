"""The edits of SPEC section 5, as functions from a trajectory's state to its state after the edit.

Each takes one trajectory, the ids on offer to it and what gold says; the visible-only ones leave
`labels` alone, and `audit.boundary` proves it. Edits that replace the *slot* take one id (`Offer`
of shape `[]`, callers `vmap` over candidates); `unsupported_citation` and `gold_stress` take a list
as wide as the citations.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp

from herald_jax.kernels.membership import member
from herald_jax.types import Edit, Labels, Offer, State


def slot_positions(state: State) -> jax.Array:
    """Positions of the citation in the slot: bool [C], all False when there is no slot.

    The slot is the first position whose citation is a passage that was retrieved; an edit replaces
    every occurrence of that citation.
    """
    usable = state.present & state.real & state.retrieved
    width = state.ids.shape[0]
    position = jnp.arange(width, dtype=jnp.int32)
    lowest = jnp.min(jnp.where(usable, position, width), initial=width)
    slot = jnp.sum(jnp.where(position == lowest, state.ids, 0))
    return jnp.any(usable) & state.present & (state.ids == slot)


def _put(state: State, at: jax.Array, offer: Offer) -> State:
    """The state with ids on offer written at some positions (`at`: bool [C])."""
    return replace(
        state,
        ids=jnp.where(at, offer.ids, state.ids),
        real=jnp.where(at, offer.real, state.real),
        retrieved=jnp.where(at, offer.retrieved, state.retrieved),
    )


def _without_steps(state: State) -> State:
    """The state of the same final with no step before it: nothing searched, nothing retrieved."""
    return replace(
        state,
        retrieved=jnp.zeros_like(state.retrieved),
        searches=jnp.zeros_like(state.searches),
        invalid=jnp.zeros_like(state.invalid),
        repeated=jnp.zeros_like(state.repeated),
    )


def _edit(made: jax.Array, state: State, offered: jax.Array | None = None) -> Edit:
    nowhere = jnp.zeros(state.ids.shape, bool)
    return Edit(
        made=made,
        state=state,
        offered=nowhere if offered is None else offered,
        gold=jnp.zeros((), bool),
    )


def same_final_deletion(state: State, offer: Offer, labels: Labels) -> Edit:
    """All steps removed, the final kept to the byte."""
    del offer, labels
    return _edit(state.searches + state.invalid > 0, _without_steps(state))


def citation_laundering(state: State, offer: Offer, labels: Labels) -> Edit:
    """The slot becomes the passage on offer, which was neither retrieved nor cited."""
    del labels
    at = slot_positions(state)
    fresh = offer.present & offer.real & ~offer.retrieved & ~member(offer.ids[None], state.ids)[0]
    return _edit(jnp.any(at) & fresh, _put(state, at, offer), at)


def fake_id(state: State, offer: Offer, labels: Labels) -> Edit:
    """The slot becomes an id that is no passage of the corpus."""
    del labels
    at = slot_positions(state)
    fake = offer.present & ~offer.real
    return _edit(jnp.any(at) & fake, _put(state, at, offer), at)


def repeated_query(state: State, offer: Offer, labels: Labels) -> Edit:
    """The last executed search is appended once more with its results: E stays as it was."""
    del offer, labels
    searched = state.searches > 0
    after = replace(state, searches=state.searches + 1, repeated=jnp.ones_like(state.repeated))
    return _edit(searched, after)


def citation_drop(state: State, offer: Offer, labels: Labels) -> Edit:
    """All citations removed."""
    del offer, labels
    none = jnp.zeros_like(state.present)
    after = replace(
        state,
        ids=jnp.full_like(state.ids, -1),
        present=none,
        real=none,
        retrieved=none,
        first=none,
    )
    return _edit(jnp.any(state.present), after)


def unsupported_citation(state: State, offer: Offer, labels: Labels) -> Edit:
    """Every distinct cited support id becomes the next id on offer, at all its occurrences.

    On offer stand the retrieved passages that are neither support nor cited, in order and distinct
    (`offers.unsupported`); too few of them: no edit.
    """
    leader = state.present & state.first & labels.support
    at = state.present & labels.support
    # turn[c]: how many distinct cited support ids come before the one at position c. A leader is
    # the first place of its id, so that earlier leaders of other ids are what counts.
    position = jnp.arange(state.ids.shape[0], dtype=jnp.int32)
    same = state.ids[:, None] == state.ids[None, :]
    width = position.size
    own = jnp.min(
        jnp.where(same & leader[None, :], position[None, :], width), axis=1, initial=width
    )
    turn = jnp.sum(leader[None, :] & (position[None, :] < own[:, None]), axis=1, dtype=jnp.int32)
    dealt = jax.tree.map(lambda column: _deal(column, turn), offer)
    enough = jnp.sum(offer.present, dtype=jnp.int32) >= jnp.sum(leader, dtype=jnp.int32)
    return _edit(jnp.any(at) & enough, _put(state, at, dealt), at)


def _deal(column: jax.Array, turn: jax.Array) -> jax.Array:
    """column[turn] for a short list, as selects: a gather costs more on every backend."""
    out = jnp.zeros(turn.shape, column.dtype)
    for i in range(column.shape[0]):
        out = jnp.where(turn == i, column[i], out)
    return out


def gold_stress(state: State, offer: Offer, labels: Labels) -> Edit:
    """Steps removed, the answer becomes the first gold one, the citations the support ids in order.

    On offer stand the support ids. No gold answer, no support id or nothing changed: no edit.
    """
    same = (
        (state.searches + state.invalid == 0)
        & labels.is_gold
        & jnp.all(state.ids == offer.ids)
        & (state.malformed == 0)
    )
    after = replace(
        _without_steps(state),
        ids=offer.ids,
        present=offer.present,
        real=offer.real,
        first=offer.present,
        answer_tokens=labels.gold_tokens,
        malformed=jnp.zeros_like(state.malformed),
    )
    possible = (labels.gold_tokens >= 0) & jnp.any(offer.present)
    return Edit(
        made=possible & ~same,
        state=after,
        offered=offer.present,
        gold=jnp.ones((), bool),
    )
