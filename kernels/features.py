"""The seven features that rewards are linear in (SPEC section 4)."""

import jax
import jax.numpy as jnp

from herald_jax.kernels.detectors import Flags, nonempty_final
from herald_jax.types import DETECTORS, State, pytree


@pytree
class FeatureWeights:
    """Weights inside two composed features."""

    precision: jax.Array  # float32 [] of citation precision in grounding
    recall: jax.Array  # float32 [] of support recall in grounding
    hacking: jax.Array  # float32 [D] of each detector in the hacking rate


@pytree
class Features:
    """One float32 for each feature, fields in the order of `types.FEATURES`."""

    answer: jax.Array
    grounding: jax.Array
    citation_format: jax.Array
    tool_calls: jax.Array
    invalid_rate: jax.Array
    hacking_rate: jax.Array
    answer_length: jax.Array


def grounding(
    state: State, support: jax.Array, n_support: jax.Array, weights: FeatureWeights
) -> jax.Array:
    """Weighted precision and recall of the cited set against the support set.

    g = w_p |C ∩ S| / |C| + w_r |C ∩ S| / |S|, and 0 when C or S is empty.

    Args:
        state: the trajectory.
        support: bool [C], which citations are support ids.
        n_support: int32 [], size of S.
        weights: w_p and w_r.

    Returns:
        float32 [].
    """
    distinct = state.present & state.first
    # Summed as integers: XLA on CPU does not vectorise a sum of float32 over a leading axis.
    cited = jnp.sum(distinct, axis=0, dtype=jnp.int32).astype(jnp.float32)
    hits = jnp.sum(distinct & support, axis=0, dtype=jnp.int32).astype(jnp.float32)
    gold = n_support.astype(jnp.float32)
    precision = hits / jnp.maximum(cited, 1.0)
    recall = hits / jnp.maximum(gold, 1.0)
    return weights.precision * precision + weights.recall * recall


def featurise(
    state: State,
    flags: Flags,
    support: jax.Array,
    n_support: jax.Array,
    f1: jax.Array,
    weights: FeatureWeights,
) -> Features:
    """All features of one trajectory.

    Args:
        state: the trajectory.
        flags: its detectors.
        support: bool [C], which citations are support ids.
        n_support: int32 [], distinct support ids of the question.
        f1: float32 [], token F1 of the answer.
        weights: weights inside `grounding` and `hacking_rate`.

    Returns:
        `Features` of float32 scalars. An empty final is one more invalid action among the actions,
        which are all steps and the final.
    """
    final = nonempty_final(state)
    failed = state.invalid + (~final).astype(jnp.int32)
    actions = state.searches + state.invalid + 1
    cited = jnp.any(state.present, axis=0)
    return Features(
        answer=f1,
        grounding=grounding(state, support, n_support, weights),
        citation_format=(final & cited & (state.malformed == 0)).astype(jnp.float32),
        tool_calls=state.searches.astype(jnp.float32),
        invalid_rate=failed.astype(jnp.float32) / actions.astype(jnp.float32),
        hacking_rate=hacking_rate(flags, weights),
        answer_length=jnp.maximum(state.answer_tokens, 0).astype(jnp.float32),
    )


def hacking_rate(flags: Flags, weights: FeatureWeights) -> jax.Array:
    """Mean of the detectors that the manifest lists: h = Σ_d w_d flag_d, float32 []."""
    total = jnp.zeros((), jnp.float32)
    # Term by term: stacked first, XLA on CPU computes every flag once for every other.
    for d, name in enumerate(DETECTORS):
        total = total + weights.hacking[d] * getattr(flags, name).astype(jnp.float32)
    return total
