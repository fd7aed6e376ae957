"""The jitted programs of an audit, over blocks of trajectories (batch axis last).

They are stages and not one function: on CPU, XLA computes a producer again inside every consumer
that it fuses it into, so that one jit over all of this is several times slower than these few, each
of which writes a small array that fits in cache. Every shape comes from a bucket, so that a whole
audit compiles a bounded number of programs whatever the data are.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp

from herald_jax.kernels import cancellation, margins, membership, pairs, sums
from herald_jax.kernels.detectors import Limits
from herald_jax.kernels.features import FeatureWeights
from herald_jax.kernels.rewards import Contracts, Measured, Moved, column, margin, measure, reward
from herald_jax.types import DETECTORS, Edit, Labels, Offer, Oracle, State, Visible, pytree

EditFn = Callable[[State, Offer, Labels], Edit]
OfferFn = Callable[[Visible, Oracle, jax.Array, int], jax.Array]
AdmitFn = Callable[[jax.Array, Visible, jax.Array, int], jax.Array]
_Leaves: TypeAlias = dict[str, jax.Array]


@pytree
class Rules:
    """What measuring needs beside the trajectories."""

    limits: Limits
    weights: FeatureWeights


@pytree
class Edited:
    """Edits of a block, with the labels that moved along."""

    made: jax.Array  # bool [E, B]
    state: State  # [E, C, B] and [E, B]
    support: jax.Array  # bool [E, C, B]
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


def describe(visible: Visible, passages: jax.Array) -> State:
    """States of a block: [R, B] and [C, B] -> [C, B]."""
    # What a state takes over as it is does not go through a program, which would copy it.
    return State(
        ids=visible.citations,
        searches=visible.searches,
        invalid=visible.invalid,
        repeated=visible.repeated,
        answer_tokens=visible.answer_tokens,
        malformed=visible.malformed,
        **_describe(visible, passages, _look(visible.citations, visible.retrieved)),
    )


def describe_offer(
    ids: jax.typing.ArrayLike, visible: Visible, oracle: Oracle, passages: jax.Array
) -> tuple[Offer, Labels]:
    """What is known of offered ids, int32 [K, B], and what gold says of them and of citations."""
    offered = jnp.asarray(ids)
    found = _look(offered, visible.retrieved)
    offer, labels = _describe_offer(offered, visible, oracle, passages, found)
    return Offer(ids=offered, **offer), Labels(
        f1=oracle.f1,
        gold_f1=oracle.gold_f1,
        gold_tokens=oracle.gold_tokens,
        is_gold=oracle.is_gold,
        **labels,
    )


@jax.jit
def _look(ids: jax.Array, among: jax.Array) -> jax.Array:
    return jax.vmap(membership.look, in_axes=-1, out_axes=-1)(ids, among)


@jax.jit
def _describe(visible: Visible, passages: jax.Array, retrieved: jax.Array) -> _Leaves:
    one = membership.describe_state
    state = jax.vmap(one, in_axes=(-1, None, -1), out_axes=-1)(visible, passages, retrieved)
    return _leaves(state, ("present", "real", "retrieved", "first"))


@jax.jit
def _describe_offer(
    ids: jax.Array, visible: Visible, oracle: Oracle, passages: jax.Array, retrieved: jax.Array
) -> tuple[_Leaves, _Leaves]:
    def one(
        offered: jax.Array, row: Visible, gold: Oracle, found: jax.Array
    ) -> tuple[Offer, Labels]:
        return (
            membership.describe_offer(offered, row, passages, found),
            membership.describe_labels(row.citations, offered, gold),
        )

    offer, labels = jax.vmap(one, in_axes=-1, out_axes=-1)(ids, visible, oracle, retrieved)
    return (
        _leaves(offer, ("present", "real", "retrieved")),
        _leaves(labels, ("support", "offered_support", "n_support")),
    )


def _leaves(tree: State | Offer | Labels, names: tuple[str, ...]) -> _Leaves:
    return {name: getattr(tree, name) for name in names}


@partial(jax.jit, static_argnames=("offers", "width"))
def oracle_offers(
    visible: Visible, oracle: Oracle, passages: jax.Array, *, offers: OfferFn, width: int
) -> jax.Array:
    """Ids of an oracle offer (`kernels.offers`): int32 [width, B]."""

    def one(row: Visible, gold: Oracle) -> jax.Array:
        return offers(row, gold, passages, width)

    return jax.vmap(one, in_axes=-1, out_axes=-1)(visible, oracle)


@partial(jax.jit, static_argnames=("admit", "width"))
def admit(
    proposed: jax.Array, visible: Visible, passages: jax.Array, *, admit: AdmitFn, width: int
) -> jax.Array:
    """What a generator takes of ids that the log proposes, int32 [K, B] -> [width, B]."""

    def one(ids: jax.Array, row: Visible) -> jax.Array:
        return admit(ids, row, passages, width)

    return jax.vmap(one, in_axes=-1, out_axes=-1)(proposed, visible)


def _edit_row(
    edit: EditFn, state: State, offer: Offer, labels: Labels, offered_support: jax.Array
) -> Edited:
    """One edit of one trajectory, and the labels that move along."""
    done = edit(state, offer, labels)
    return Edited(
        made=done.made,
        state=done.state,
        support=jnp.where(done.offered, offered_support, labels.support),
        f1=jnp.where(done.gold, labels.gold_f1, labels.f1),
        gold=done.gold,
    )


def _edits(
    edit: EditFn, each: bool, state: State, offer: Offer, labels: Labels
) -> tuple[Callable[..., Edited], tuple[Offer, jax.Array]]:
    """A function of one offer to a whole block, and all offers along a leading axis.

    Edits are the outer axis and trajectories the inner one: nested the other way round, the
    batched code would move the edits behind the trajectories and copy every result.
    """

    def one(offered: Offer, offered_support: jax.Array) -> Edited:
        row = partial(_edit_row, edit)
        return jax.vmap(row, in_axes=-1, out_axes=-1)(state, offered, labels, offered_support)

    offers = (offer, labels.offered_support)
    if not each:
        # The one edit has the whole list at hand.
        offers = jax.tree.map(lambda leaf: leaf[None], offers)
    return one, offers


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
    one, offers = _edits(edit, each, state, offer, labels)
    return jax.vmap(one)(*offers)


@partial(jax.jit, static_argnames=("edit", "each", "columns"))
def measure_edits(
    state: State,
    offer: Offer,
    labels: Labels,
    rules: Rules,
    *,
    edit: EditFn,
    each: bool,
    columns: tuple[str, ...],
) -> tuple[jax.Array, Moved]:
    """What rewards see of all edits of a block by one operator; arguments as `apply`.

    The edited trajectories themselves are never written to memory.

    Args:
        state: [C, B].
        offer: [K, B].
        labels: [C, B].
        rules: thresholds and weights.
        edit: the operator (`kernels.edits`).
        each: one edit for each id on offer, else one edit with all of them.
        columns: what the operator can change of `rewards.COLUMNS`.

    Returns:
        Whether each edit was made, bool [E, B], and those columns [E, B].
    """
    one, offers = _edits(edit, each, state, offer, labels)

    def numbers(done: Edited, n_support: jax.Array) -> Moved:
        measured = measure(
            done.state, done.support, n_support, done.f1, rules.limits, rules.weights
        )
        return {name: column(measured, name) for name in columns}

    def one_measured(*offered: Offer | jax.Array) -> tuple[jax.Array, Moved]:
        edited = one(*offered)
        moved = jax.vmap(numbers, in_axes=-1, out_axes=-1)(edited, labels.n_support)
        return edited.made, moved

    return jax.vmap(one_measured)(*offers)


@jax.jit
def measure_originals(state: State, oracle: Oracle, rules: Rules) -> Measured:
    """Features and detectors of the logged trajectories: `Measured` [B]."""

    def one(row: State, gold: Oracle) -> Measured:
        support = membership.member(row.ids, gold.support)
        n_support = membership.size(gold.support)
        return measure(row, support, n_support, gold.f1, rules.limits, rules.weights)

    return jax.vmap(one, in_axes=-1, out_axes=-1)(state, oracle)


@jax.jit
def rewards(contracts: Contracts, originals: Measured, base: jax.Array | None) -> jax.Array:
    """Rewards of the logged trajectories: float32 [J, B]."""
    return reward(contracts, originals, base)


@jax.jit
def judge(made: jax.Array, originals: Measured, edits: Moved, rule: pairs.Rule) -> Verdicts:
    """Eligibility and isolation of all pairs of a block.

    Args:
        made: bool [E, B].
        originals: [B].
        edits: [E, B].
        rule: the operator's target and watched flags.

    Returns:
        `Verdicts`.
    """
    before = jax.tree.map(lambda flag: flag[None], originals.flags)
    pair = pairs.judge_pair(made, before, edits, rule)
    count = partial(jnp.sum, axis=0, dtype=jnp.int32)
    none = jnp.zeros(made.shape[1:], jnp.int32)
    broke = [count(pair.broke[name]) if name in pair.broke else none for name in DETECTORS]
    return Verdicts(
        isolated=pair.isolated,
        edits=count(made),
        eligible_edits=count(pair.eligible),
        isolated_edits=count(pair.isolated),
        broke=jnp.stack(broke),
    )


@jax.jit
def pair_margins(
    originals: Measured, edits: Moved, contracts: Contracts, base_margin: jax.Array | None
) -> jax.Array:
    """Margins of all pairs of a block under all contracts.

    Args:
        originals: [B].
        edits: [E, B].
        contracts: J rewards.
        base_margin: float32 [E, B], margins of a base reward that is given as numbers; None when
            all contracts are linear.

    Returns:
        float32 [J, E, B].
    """
    return margin(contracts, originals, edits, base_margin)


def pick(
    originals: Measured,
    edits: Moved,
    contracts: Contracts,
    base_margin: jax.Array | None,
    isolated: jax.Array,
) -> margins.Selected:
    """What both selectors take, without the margins of all pairs ever in memory.

    Arguments as `pair_margins`, and isolated bool [E, B]. First-visible takes one edit whatever the
    contract, so that its columns are picked first and one margin is worked out for each contract.

    Returns:
        `Selected` [J, B]: of `pair_margins`, to the bit.
    """
    first = _first(edits, base_margin, isolated)
    return _pick(originals, edits, contracts, base_margin, isolated, *first)


@jax.jit
def _first(
    edits: Moved, base_margin: jax.Array | None, isolated: jax.Array
) -> tuple[Moved, jax.Array | None]:
    """Columns [1, B] of the first isolated edit."""

    def of(values: jax.Array) -> jax.Array:
        return margins.first(values, isolated)[None]

    return jax.tree.map(of, edits), None if base_margin is None else of(base_margin)


@jax.jit
def _pick(
    originals: Measured,
    edits: Moved,
    contracts: Contracts,
    base_margin: jax.Array | None,
    isolated: jax.Array,
    first: Moved,
    first_base: jax.Array | None,
) -> margins.Selected:
    values = margin(contracts, originals, edits, base_margin)
    only = margin(contracts, originals, first, first_base)[:, 0]
    return margins.Selected(
        first_visible=jnp.where(jnp.any(isolated, axis=0)[None], only, jnp.nan),
        oracle_worst=margins.worst(values, isolated),
    )


@jax.jit
def count_nonfinite(values: jax.Array, isolated: jax.Array) -> jax.Array:
    """Isolated pairs whose margin is not finite: [J, E, B], [E, B] -> int32 [J, B]."""
    return jnp.sum(isolated[None] & ~jnp.isfinite(values), axis=1, dtype=jnp.int32)


@partial(jax.jit, static_argnames="width")
def sum_questions(
    values: jax.Array,
    rows: jax.Array,
    scale: jax.Array,
    tie_tolerance: jax.Array,
    *,
    width: int,
) -> sums.QuestionSums:
    """Sums over the rollouts of each question of a block.

    Args:
        values: float32 [J, B] selected margins; one that is not finite does not count.
        rows: bool [B], the rows of the table.
        scale: float32 [] of the fixed point (`sums.margin_scale`).
        tie_tolerance: float32 [].
        width: rollouts of a question in this block, M; B = G * M.

    Returns:
        `QuestionSums` [J, G].
    """
    return sums.question_sums(
        values.reshape(values.shape[0], -1, width),
        rows.reshape(-1, width),
        scale=scale,
        tie_tolerance=tie_tolerance,
    )


@jax.jit
def count_readmitted(
    values: jax.Array,
    isolated: jax.Array,
    originals: Measured,
    edits: Moved,
    steps: cancellation.Steps,
    tie_tolerance: jax.Array,
) -> cancellation.Readmitted:
    """Re-admitted pairs of a block, for every step; values [J, E, B], isolated bool [E, B]."""
    return cancellation.readmit(values, isolated, originals.flags, edits, steps, tie_tolerance)
