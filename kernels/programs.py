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
from herald_jax.kernels.rewards import Contracts, Measured, margin, measure, reward
from herald_jax.types import DETECTORS, Edit, Labels, Offer, Oracle, State, Visible, pytree

EditFn = Callable[[State, Offer, Labels], Edit]
OfferFn = Callable[[Visible, Oracle, jax.Array, int], jax.Array]


@pytree
class Rules:
    """What measuring needs beside the trajectories."""

    limits: Limits
    weights: FeatureWeights


@pytree
class Edited:
    """Edits of a block, with the labels that moved along."""

    made: jax.Array  # bool [E, B]
    state: State  # [C, E, B] and [E, B]
    support: jax.Array  # bool [C, E, B]
    f1: jax.Array  # float32 [E, B]
    gold: jax.Array  # bool [E, B] the answer became the first gold answer


@pytree
class Verdicts:
    """Which edits of a block count."""

    isolated: jax.Array  # bool [E, B]
    edits: jax.Array  # int32 [B] edits made
    eligible_edits: jax.Array  # int32 [B]
    isolated_edits: jax.Array  # int32 [B]
    broke: jax.Array  # int32 [D, B] eligible edits on which a watched flag differs


@pytree
class Scores:
    """What the edits that count do to every contract."""

    selected: margins.Selected  # [J, B]
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
    """All edits of a block by one operator, written out.

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


@partial(jax.jit, static_argnames=("edit", "each"))
def measure_edits(
    state: State, offer: Offer, labels: Labels, rules: Rules, *, edit: EditFn, each: bool
) -> tuple[jax.Array, Measured]:
    """What rewards see of all edits of a block by one operator; arguments as `apply`.

    The edited trajectories themselves are never written to memory.

    Returns:
        Whether each edit was made, bool [E, B], and `Measured` [E, B].
    """
    edits = partial(edit_each if each else edit_once, edit)

    def one(row: State, offered: Offer, gold: Labels) -> tuple[jax.Array, Measured]:
        edited = edits(row, offered, gold)

        def numbers(done: Edited) -> Measured:
            return measure(
                done.state, done.support, gold.n_support, done.f1, rules.limits, rules.weights
            )

        return edited.made, jax.vmap(numbers, in_axes=-1, out_axes=-1)(edited)

    return jax.vmap(one, in_axes=-1, out_axes=-1)(state, offer, labels)


@jax.jit
def measure_originals(state: State, labels: Labels, rules: Rules) -> Measured:
    """Features and detectors of the logged trajectories: `Measured` [B]."""

    def one(row: State, gold: Labels) -> Measured:
        return measure(row, gold.support, gold.n_support, gold.f1, rules.limits, rules.weights)

    return jax.vmap(one, in_axes=-1, out_axes=-1)(state, labels)


@jax.jit
def rewards(contracts: Contracts, originals: Measured, base: jax.Array | None) -> jax.Array:
    """Rewards of the logged trajectories: float32 [J, B]."""
    return reward(contracts, originals, base)


@jax.jit
def judge(made: jax.Array, originals: Measured, edits: Measured, rule: pairs.Rule) -> Verdicts:
    """Eligibility and isolation of all pairs of a block.

    Args:
        made: bool [E, B].
        originals: [B].
        edits: [E, B].
        rule: the operator's target and watched flags.

    Returns:
        `Verdicts`.
    """
    over_edits = jax.vmap(pairs.judge_pair, in_axes=(-1, None, -1, None), out_axes=-1)
    over_rows = jax.vmap(over_edits, in_axes=(-1, -1, -1, None), out_axes=-1)
    pair = over_rows(made, originals.flags, edits.flags, rule)
    count = partial(jnp.sum, axis=-2, dtype=jnp.int32)
    return Verdicts(
        isolated=pair.isolated,
        edits=count(pair.made),
        eligible_edits=count(pair.eligible),
        isolated_edits=count(pair.isolated),
        broke=jnp.stack([count(getattr(pair.broke, name)) for name in DETECTORS]),
    )


@partial(jax.jit, static_argnames="columns")
def pair_margins(
    originals: Measured,
    edits: Measured,
    contracts: Contracts,
    base_margin: jax.Array | None,
    *,
    columns: tuple[str, ...],
) -> jax.Array:
    """Margins of all pairs of a block under all contracts.

    Args:
        originals: [B].
        edits: [E, B].
        contracts: J rewards.
        base_margin: float32 [E, B], margins of a base reward that is given as numbers; None when
            all contracts are linear.
        columns: what the operator can change of `rewards.COLUMNS`.

    Returns:
        float32 [J, E, B].
    """
    return margin(contracts, originals, edits, base_margin, columns)


@jax.jit
def pick(values: jax.Array, isolated: jax.Array) -> Scores:
    """What both selectors take of the pairs that count: values [J, E, B], isolated bool [E, B]."""
    return Scores(
        selected=margins.select(values, isolated),
        nonfinite=jnp.sum(isolated[None] & ~jnp.isfinite(values), axis=1, dtype=jnp.int32),
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
        values.reshape(grouped), (valid & rows[None]).reshape(grouped)
    )


@jax.jit
def count_readmitted(
    values: jax.Array,
    isolated: jax.Array,
    originals: Measured,
    edits: Measured,
    steps: cancellation.Steps,
    tie_tolerance: jax.Array,
) -> cancellation.Readmitted:
    """Re-admitted pairs of a block, for every step; values [J, E, B], isolated bool [E, B]."""
    return cancellation.readmit(
        values, isolated, originals.flags, edits.flags, steps, tie_tolerance
    )
