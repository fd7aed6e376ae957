"""Which record fields operators, generators and contracts read and write, from their jaxprs.

Everything is traced on one small trajectory before an audit touches its first row; a visible-only
part that gold labels reach is refused there (`audit.boundary`).
"""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any, cast

import jax
import numpy as np
import numpy.typing as npt

from herald_jax.audit import boundary
from herald_jax.audit.generators import Generator
from herald_jax.audit.operators import FAKE, Operator
from herald_jax.data.blocks import Widths
from herald_jax.kernels import membership
from herald_jax.kernels.detectors import Limits
from herald_jax.kernels.features import FeatureWeights
from herald_jax.kernels.rewards import COLUMNS, column, measure
from herald_jax.manifest.contracts import ContractSet
from herald_jax.search import CorpusIndex
from herald_jax.search.batches import BATCH
from herald_jax.types import DETECTORS, Edit, Labels, Offer, Oracle, State, Visible

# From leaves of the arrays to fields of the records they were made from (SPEC section 1).
RECORD_FIELDS: Mapping[str, tuple[str, ...]] = {
    "visible.retrieved": ("steps.query", "steps.retrieved", "steps.valid"),
    "visible.citations": ("citations",),
    "visible.searches": ("steps.query", "steps.valid"),
    "visible.invalid": ("steps.query", "steps.valid"),
    "visible.repeated": ("steps.query", "steps.valid"),
    "visible.answer_tokens": ("answer",),
    "visible.malformed": ("malformed_citations",),
    "oracle.support": ("support_ids",),
    "oracle.em": ("answer", "answers"),
    "oracle.f1": ("answer", "answers"),
    "oracle.gold_em": ("answers",),
    "oracle.gold_f1": ("answers",),
    "oracle.gold_tokens": ("answers",),
    "oracle.is_gold": ("answer", "answers"),
    "passages": ("corpus",),
    "index": ("corpus",),
    "query": ("answer", "question"),
    "taken": ("citations", "steps.query", "steps.retrieved", "steps.valid"),
    "offered": ("candidates",),
    "proposed": ("candidates",),
    "fake": ("trajectory_id",),
}

# From leaves of an edited state to the fields that the edit writes. `real` and `retrieved` are left
# out: they follow from a citation or from the steps.
WRITTEN_FIELDS: Mapping[str, str] = {
    "state.ids": "citations",
    "state.present": "citations",
    "state.searches": "steps",
    "state.invalid": "steps",
    "state.repeated": "steps",
    "state.answer_tokens": "answer",
    "state.malformed": "malformed_citations",
}

ORACLE_FIELDS = ("answers", "support_ids", "nodes")

# Lengths of lists where no pool gives them. An audit passes those of its blocks, so that what is
# traced is what runs.
SMALL = Widths(retrieved=4, citations=3, support=2)
_OFFERED = 2
# Lengths of the queries that generators are traced at: those of `search.batches`, where most are.
_QUERY_WIDTHS = (64, 256, 1024)


def _shape(dtype: npt.DTypeLike, *shape: int) -> jax.Array:
    """A shape that stands for an array while a function is traced."""
    return cast(jax.Array, jax.ShapeDtypeStruct(shape, dtype))


_INT, _FLOAT, _BOOL = np.int32, np.float32, np.bool_


def _limits() -> Limits:
    return Limits(min_searches=_shape(_INT), max_searches=_shape(_INT))


def _weights() -> FeatureWeights:
    return FeatureWeights(
        precision=_shape(_FLOAT),
        recall=_shape(_FLOAT),
        hacking=_shape(_FLOAT, len(DETECTORS)),
    )


def visible_shapes(widths: Widths = SMALL) -> Visible:
    """Shapes of one small trajectory."""
    return Visible(
        retrieved=_shape(_INT, widths.retrieved),
        citations=_shape(_INT, widths.citations),
        searches=_shape(_INT),
        invalid=_shape(_INT),
        repeated=_shape(_BOOL),
        answer_tokens=_shape(_INT),
        malformed=_shape(_INT),
    )


def oracle_shapes(widths: Widths = SMALL) -> Oracle:
    """Shapes of its labels."""
    return Oracle(
        support=_shape(_INT, widths.support),
        em=_shape(_FLOAT),
        f1=_shape(_FLOAT),
        gold_em=_shape(_FLOAT),
        gold_f1=_shape(_FLOAT),
        gold_tokens=_shape(_INT),
        is_gold=_shape(_BOOL),
    )


def record_fields(sources: Iterable[str]) -> list[str]:
    """Fields of the records behind some leaves, sorted."""
    fields: set[str] = set()
    for source in sources:
        leaf = source if source in RECORD_FIELDS else source.split(".")[0]
        fields.update(RECORD_FIELDS.get(leaf, (source,)))
    return sorted(fields)


def _described(
    operator: Operator,
    widths: Widths,
    visible: Visible,
    oracle: Oracle,
    passages: jax.Array,
    offered: jax.Array,
    fake: jax.Array,
) -> tuple[State, Offer, Labels]:
    """What an operator is given of a trajectory, computed from its records' arrays."""
    if callable(operator.offers):
        ids = operator.offers(visible, oracle, passages, widths.citations)
    else:
        ids = fake if operator.offers == FAKE else offered
    state = membership.describe_state(visible, passages)
    offer = membership.describe_offer(ids, visible, passages)
    labels = membership.describe_labels(visible.citations, ids, oracle)
    if operator.each:
        offer = jax.tree.map(lambda leaf: leaf[0], offer)
    return state, offer, labels


def _inputs(widths: Widths) -> dict[str, Any]:
    """Shapes of everything that an operator can be computed from."""
    return {
        "visible": visible_shapes(widths),
        "oracle": oracle_shapes(widths),
        "passages": _shape(_INT),
        "offered": _shape(_INT, _OFFERED),
        "fake": _shape(_INT, 1),
    }


def described_shapes(operator: Operator, widths: Widths) -> tuple[State, Offer, Labels]:
    """Shapes of what an operator is given of one trajectory."""
    return jax.eval_shape(partial(_described, operator, widths), *_inputs(widths).values())


@cache
def trace_operator(operator: Operator, widths: Widths) -> tuple[boundary.Reach, boundary.Reach]:
    """What reaches an edit: from the records' arrays, and from the state alone."""

    def from_records(**inputs: Any) -> Edit:
        return operator.edit(*_described(operator, widths, **inputs))

    def from_state(state: State, offer: Offer, labels: Labels) -> Edit:
        return operator.edit(state, offer, labels)

    state, offer, labels = described_shapes(operator, widths)
    return (
        boundary.reach(from_records, closure_of=operator.edit, **_inputs(widths)),
        boundary.reach(from_state, state=state, offer=offer, labels=labels),
    )


def operator_fields(operator: Operator, widths: Widths = SMALL) -> dict[str, list[str]]:
    """What an operator reads and writes.

    Raises:
        BoundaryError: if it is visible-only and gold labels reach its edit.
    """
    records, state = trace_operator(operator, widths)
    if not operator.oracle:
        boundary.require_visible(
            f"operator {operator.name!r}",
            records,
            allowed=("visible", "passages", "offered", "fake"),
        )
    changed = state.changed()
    return {
        "reads": record_fields(records.reads(changed)),
        "writes": sorted({WRITTEN_FIELDS[name] for name in changed if name in WRITTEN_FIELDS}),
    }


@cache
def moved_columns(operator: Operator, widths: Widths = SMALL) -> tuple[str, ...]:
    """Columns of x (`kernels.rewards`) that an operator can change, from its jaxpr.

    A lone citation that moves changes a few features and detectors; the matrix product of an audit
    is over these alone. Labels move with citations and with the answer: support counts as changed
    unless the operator never offers an id, F1 unless it never writes the gold answer.
    """
    _, state = trace_operator(operator, widths)
    moved = set(state.changed())
    labels = {"offered": "support", "gold": "f1"}
    moved |= {label for part, label in labels.items() if not _never(operator, widths, state, part)}

    def columns(
        state: State,
        support: jax.Array,
        n_support: jax.Array,
        f1: jax.Array,
        limits: Limits,
        weights: FeatureWeights,
    ) -> dict[str, jax.Array]:
        measured = measure(state, support, n_support, f1, limits, weights)
        return {name: column(measured, name) for name in COLUMNS}

    described = jax.eval_shape(membership.describe_state, visible_shapes(widths), _shape(_INT))
    found = boundary.reach(
        columns,
        state=described,
        support=_shape(_BOOL, widths.citations),
        n_support=_shape(_INT),
        f1=_shape(_FLOAT),
        limits=_limits(),
        weights=_weights(),
    )
    return tuple(name for name in COLUMNS if moved & found.outputs[name].keys())


def _never(operator: Operator, widths: Widths, traced: boundary.Reach, part: str) -> bool:
    """A boolean part of the edit depends on nothing, and is False."""
    if traced.outputs[part]:
        return False
    shapes = described_shapes(operator, widths)
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    # Jitted, all but that part falls away; op by op, each would be compiled for itself.
    value = jax.jit(lambda *given: getattr(operator.edit(*given), part))(*zeros)
    return not np.asarray(value).any()


def trace_generator(
    generator: Generator, corpus: CorpusIndex | None, k: int, widths: Widths
) -> list[boundary.Reach]:
    """What reaches the candidates that a generator proposes, at every shape it is traced at."""
    if generator.offer is not None:
        offer = generator.offer
        return [
            boundary.reach(
                lambda visible, oracle, passages: offer(visible, oracle, passages, _OFFERED),
                closure_of=offer,
                visible=visible_shapes(widths),
                oracle=oracle_shapes(widths),
                passages=_shape(_INT),
            )
        ]
    if generator.admit is not None:
        admit = generator.admit
        return [
            boundary.reach(
                lambda proposed, visible, passages: admit(proposed, visible, passages, k),
                closure_of=admit,
                proposed=_shape(_INT, _OFFERED),
                visible=visible_shapes(widths),
                passages=_shape(_INT),
            )
        ]
    ranking = generator.ranking
    if ranking is None or corpus is None:
        raise ValueError(f"generator {generator.name!r} has nothing to rank")
    return [
        boundary.reach(
            lambda index, query, taken: ranking(index, query, taken, k=k),
            closure_of=ranking,
            index=getattr(corpus, generator.index),
            query=_shape(_INT, BATCH, width),
            taken=_shape(_INT, BATCH, width),
        )
        for width in _QUERY_WIDTHS
    ]


def generator_fields(
    generator: Generator, corpus: CorpusIndex | None, k: int = 1, widths: Widths = SMALL
) -> list[str]:
    """What a generator reads.

    Args:
        generator: the plug-in.
        corpus: what it ranks; None for one that searches nothing.
        k: candidates that are asked for.
        widths: lengths of lists, for one that reads trajectories.

    Raises:
        BoundaryError: if it is visible and anything but the question, the trajectory's visible
            fields and the corpus reaches its candidates.
    """
    ranks = generator.ranking is not None
    allowed = ("index", "query", "taken") if ranks else ("proposed", "visible", "passages")
    read: set[str] = set()
    for found in trace_generator(generator, corpus, k, widths):
        if not generator.oracle:
            boundary.require_visible(f"generator {generator.name!r}", found, allowed=allowed)
        read |= found.reads(found.outputs)
    return record_fields(read)


def contract_fields(contracts: ContractSet, base_reads: Iterable[str] | None) -> list[list[str]]:
    """What each contract reads: the fields behind every feature and detector of non-zero weight.

    Args:
        contracts: J contracts.
        base_reads: fields that an external base reward reads; None when the base is linear.

    Returns:
        J sorted lists.
    """

    def columns(
        visible: Visible,
        oracle: Oracle,
        passages: jax.Array,
        limits: Limits,
        weights: FeatureWeights,
    ) -> dict[str, jax.Array]:
        state = membership.describe_state(visible, passages)
        labels = membership.describe_labels(visible.citations, visible.citations, oracle)
        measured = measure(state, labels.support, labels.n_support, labels.f1, limits, weights)
        return {name: column(measured, name) for name in COLUMNS}

    found = boundary.reach(
        columns,
        visible=visible_shapes(),
        oracle=oracle_shapes(),
        passages=_shape(_INT),
        limits=_limits(),
        weights=_weights(),
    )
    weights = contracts.weights(external_base=base_reads is not None)
    out = []
    for row, base in zip(weights, contracts.base, strict=True):
        used = [name for name, weight in zip(COLUMNS, row, strict=True) if weight]
        settings = ("limits", "weights")
        sources = {s for s in found.reads(used) if s.split(".")[0] not in settings}
        fields = set(record_fields(sources))
        if base and base_reads is not None:
            fields |= set(base_reads)
        out.append(sorted(fields))
    return out
