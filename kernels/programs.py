"""The jitted programs of an audit, over blocks of trajectories (batch axis last).

They are stages and not one function: on CPU, XLA computes a producer again inside every consumer
that it fuses it into, so that one jit over all of this is several times slower than these few, each
of which writes a small array that fits in cache. Every shape comes from a bucket, so that a whole
audit compiles a bounded number of programs whatever the data are.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from herald_jax.kernels import cancellation, margins, membership, pairs, sums
from herald_jax.kernels.detectors import Limits
from herald_jax.kernels.features import FeatureWeights
from herald_jax.kernels.rewards import Contracts, measure, reward
from herald_jax.types import Edit, Labels, Offer, Oracle, State, Visible, pytree

EditFn = Callable[[State, Offer, Labels], Edit]
OfferFn = Callable[[Visible, Oracle, jax.Array, int], jax.Array]


@pytree
class Rules:
    """What measuring needs beside the trajectories."""

    limits: Limits
    weights: FeatureWeights


@pytree
class Measured:
    """Trajectories (or edits, with one more axis E before the last) as numbers."""

    x: jax.Array  # float32 [X, B] features and detectors
    flags: jax.Array  # bool [D, B]


@pytree
class Edited:
    """Edits of a block, with the labels that moved along."""

    made: jax.Array  # bool [E, B]
    state: State  # [C, E, B] and [E, B]
    support: jax.Array  # bool [C, E, B]
    f1: jax.Array  # float32 [E, B]
    gold: jax.Array  # bool [E, B] the answer became the first gold answer


@pytree
class Outcome:
    """What one operator did to each trajectory of a block, under every contract."""

    selected: margins.Selected  # [J, B]
    worst_edit: jax.Array  # int32 [J, B] which edit oracle-worst took, lowest among equals
    made: jax.Array  # int32 [B] edits
    eligible: jax.Array  # int32 [B]
    isolated: jax.Array  # int32 [B]
    broke: jax.Array  # int32 [D, B] eligible edits on which a watched flag differs
    nonfinite: jax.Array  # int32 [J, B] isolated edits whose margin is not finite


@jax.jit
def describe(visible: Visible, passages: jax.Array) -> State:
    """States of a block: [R, B] and [C, B] -> [C, B]."""
    return jax.vmap(membership.describe_state, in_axes=(-1, None), out_axes=-1)(visible, passages)


@jax.jit
def describe_offer(ids: jax.Array, visible: Visible, passages: jax.Array) -> Offer:
    """What is known of offered ids: int32 [K, B] -> `Offer` [K, B]."""
    batched = jax.vmap(membership.describe_offer, in_axes=(-1, -1, None), out_axes=-1)
    return batched(ids, visible, passages)


@jax.jit
def label(citations: jax.Array, offered: jax.Array, oracle: Oracle) -> Labels:
    """Labels of cited [C, B] and offered [K, B] ids."""
    return jax.vmap(membership.describe_labels, in_axes=-1, out_axes=-1)(citations, offered, oracle)


@partial(jax.jit, static_argnames=("offers", "width"))
def oracle_offers(
    visible: Visible, oracle: Oracle, passages: jax.Array, *, offers: OfferFn, width: int
) -> jax.Array:
    """Ids of an oracle offer (`kernels.offers`): int32 [width, B]."""

    def one(row: Visible, gold: Oracle) -> jax.Array:
        return offers(row, gold, passages, width)

    return jax.vmap(one, in_axes=-1, out_axes=-1)(visible, oracle)


def edit_each(edit: EditFn, state: State, offer: Offer, labels: Labels) -> Edited:
    """One edit for each id on offer to one trajectory: offer [K] -> edits along the last axis."""

    def one(one_offer: Offer, offered_support: jax.Array) -> Edited:
        # An id on offer is one id: it goes to every position alike.
        return _moved(edit, state, one_offer, labels, offered_support)

    return jax.vmap(one, in_axes=0, out_axes=-1)(offer, labels.offered_support)


def edit_once(edit: EditFn, state: State, offer: Offer, labels: Labels) -> Edited:
    """The one edit of a trajectory, which has the whole offer at hand: edits axis of length 1."""
    edited = _moved(edit, state, offer, labels, labels.offered_support)
    return jax.tree.map(lambda leaf: leaf[..., None], edited)


def _moved(
    edit: EditFn, state: State, offer: Offer, labels: Labels, offered_support: jax.Array
) -> Edited:
    done = edit(state, offer, labels)
    return Edited(
        made=done.made,
        state=done.state,
        support=jnp.where(done.offered, offered_support, labels.support),
        f1=jnp.where(done.gold, labels.gold_f1, labels.f1),
        gold=done.gold,
    )


@partial(jax.jit, static_argnames=("edit", "each"))
def apply(state: State, offer: Offer, labels: Labels, *, edit: EditFn, each: bool) -> Edited:
    """All edits of a block by one operator.

    Args:
        state: [C, B].
        offer: [K, B].
        labels: [C, B].
        edit: the operator (`kernels.edits`).
        each: one edit for each id on offer, else one edit with all of them.

    Returns:
        `Edited` with E = K or 1.
    """
    edits = partial(edit_each if each else edit_once, edit)
    return jax.vmap(edits, in_axes=-1, out_axes=-1)(state, offer, labels)


@jax.jit
def measure_originals(state: State, labels: Labels, rules: Rules) -> Measured:
    """Features and detectors of the logged trajectories: x [X, B], flags [D, B]."""

    def one(row: State, gold: Labels) -> tuple[jax.Array, jax.Array]:
        return measure(row, gold.support, gold.n_support, gold.f1, rules.limits, rules.weights)

    x, flags = jax.vmap(one, in_axes=-1, out_axes=-1)(state, labels)
    return Measured(x=x, flags=flags)


@jax.jit
def measure_edits(edited: Edited, n_support: jax.Array, rules: Rules) -> Measured:
    """Features and detectors of edits: x [X, E, B], flags [D, E, B]; n_support int32 [B]."""

    def one(row: Edited, gold: jax.Array) -> tuple[jax.Array, jax.Array]:
        return measure(row.state, row.support, gold, row.f1, rules.limits, rules.weights)

    over_edits = jax.vmap(one, in_axes=(-1, None), out_axes=-1)
    x, flags = jax.vmap(over_edits, in_axes=-1, out_axes=-1)(edited, n_support)
    return Measured(x=x, flags=flags)


@jax.jit
def rewards(contracts: Contracts, originals: Measured, base: jax.Array | None) -> jax.Array:
    """Rewards of the logged trajectories: float32 [J, B]."""
    return reward(contracts, originals.x, base)


def pair_margins(
    contracts: Contracts, originals: Measured, edits: Measured, base_margin: jax.Array | None
) -> jax.Array:
    """Margins of all pairs: float32 [J, E, B]; base_margin float32 [E, B] or None."""
    return reward(contracts, edits.x - originals.x[:, None], base_margin)


@jax.jit
def judge(
    made: jax.Array,
    originals: Measured,
    edits: Measured,
    contracts: Contracts,
    rule: pairs.Rule,
    base_margin: jax.Array | None,
) -> Outcome:
    """Margins, eligibility, isolation and both selectors, for all pairs of a block.

    Args:
        made: bool [E, B].
        originals: [X, B].
        edits: [X, E, B].
        contracts: J rewards.
        rule: the operator's target and watched flags.
        base_margin: float32 [E, B], margins of a base reward that is given as numbers; None when
            all contracts are linear.

    Returns:
        `Outcome`.
    """
    values = pair_margins(contracts, originals, edits, base_margin)
    before = jnp.broadcast_to(originals.flags[:, None], edits.flags.shape)
    over_edits = jax.vmap(pairs.judge_pair, in_axes=(-1, -1, -1, None), out_axes=-1)
    over_rows = jax.vmap(over_edits, in_axes=(-1, -1, -1, None), out_axes=-1)
    pair = over_rows(made, before, edits.flags, rule)
    selected = jax.vmap(margins.select, in_axes=-1, out_axes=-1)(values, pair.isolated)
    usable = pair.isolated[None] & jnp.isfinite(values)
    top = usable & (values == selected.oracle_worst[:, None])
    count = partial(jnp.sum, axis=0, dtype=jnp.int32)
    return Outcome(
        selected=selected,
        worst_edit=margins.lowest_true(jnp.moveaxis(top, 1, 0)),
        made=count(pair.made),
        eligible=count(pair.eligible),
        isolated=count(pair.isolated),
        broke=jnp.sum(pair.broke, axis=1, dtype=jnp.int32),
        nonfinite=jnp.sum(pair.isolated[None] & ~jnp.isfinite(values), axis=1, dtype=jnp.int32),
    )


@partial(jax.jit, static_argnames="width")
def sum_questions(
    values: jax.Array,
    valid: jax.Array,
    rows: jax.Array,
    scale: jax.Array,
    tie_tolerance: jax.Array,
    *,
    width: int,
) -> sums.QuestionSums:
    """Sums over the rollouts of each question of a block.

    Args:
        values: float32 [J, B] selected margins.
        valid: bool [J, B].
        rows: bool [B], the rows of the table.
        scale: float32 [] of the fixed point (`sums.margin_scale`).
        tie_tolerance: float32 [].
        width: rollouts of a question in this block, M; B = G * M.

    Returns:
        `QuestionSums` [J, G].
    """
    grouped = (values.shape[0], -1, width)
    one = partial(sums.question_sums, scale=scale, tie_tolerance=tie_tolerance)
    return jax.vmap(one, in_axes=1, out_axes=1)(
        values.reshape(grouped), (valid & rows).reshape(grouped)
    )


@jax.jit
def count_readmitted(
    made: jax.Array,
    originals: Measured,
    edits: Measured,
    contracts: Contracts,
    rule: pairs.Rule,
    base_margin: jax.Array | None,
    rows: jax.Array,
    steps: cancellation.Steps,
    tie_tolerance: jax.Array,
) -> cancellation.Readmitted:
    """Re-admitted pairs among the rows of a block (`rows`: bool [B]), for every step."""
    values = pair_margins(contracts, originals, edits, base_margin)
    before = jnp.broadcast_to(originals.flags[:, None], edits.flags.shape)
    over_edits = jax.vmap(pairs.judge_pair, in_axes=(-1, -1, -1, None), out_axes=-1)
    over_rows = jax.vmap(over_edits, in_axes=(-1, -1, -1, None), out_axes=-1)
    pair = over_rows(made, before, edits.flags, rule)
    return cancellation.readmit(
        values, pair.isolated & rows, originals.flags, edits.flags, steps, tie_tolerance
    )
