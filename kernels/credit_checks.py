"""What retrieval credit does to a run, counted: orders it reverses, evidence it reaches.

The two checks of arXiv 2610.10179 (SPEC section 10). A bonus on the reward can place a rollout with
the worse answer above one with the better; and credit is worth something only where searches reach
evidence at all. Kernels take one question, callers vmap; all results are sums, so that those of
questions and of updates add up leaf by leaf. Axis M holds the rollouts of the question, Q searches.
"""

import chex
import jax
import jax.numpy as jnp

from herald_jax.types import pytree

SAME = 1e-6
"""Scores no further apart than this are equal, as rewards are in a group (`groups.is_flat`)."""

GAPS = 10
"""Bins of `Reversals.gaps`, a tenth of a score each."""

CLASSES = ("none", "some", "all")
"""Classes of a rollout by its coverage, the order of `Reach.rollouts` and `Reach.f1`."""


@pytree
class Reversals:
    """Pairs of rollouts of one question with unequal outcome scores, and what a bonus made of them.

    The share reversed is reversed / pairs, not measured where there is no pair.
    """

    pairs: jax.Array  # int32 [] pairs with unequal outcome scores
    reversed: jax.Array  # int32 [] those in which the lower score has the higher reward
    tied: jax.Array  # int32 [] those in which both have the same reward
    gap: jax.Array  # float32 [] gaps between outcome scores of reversed pairs, summed
    gaps: jax.Array  # int32 [GAPS] reversed pairs by gap: bin i from i/10, the last one open


@pytree
class Reach:
    """How much evidence the rollouts of a question reached.

    The means of a run are coverage / measured and searches / measured, each question counting
    alike; F1 given coverage is f1 / rollouts.
    """

    questions: jax.Array  # int32 [] questions with a rollout
    measured: jax.Array  # int32 [] those whose evidence has nodes
    zero: jax.Array  # int32 [] measured questions of which no rollout covered a node
    complete: jax.Array  # int32 [] measured questions of which some rollout covered all
    coverage: jax.Array  # float32 [] mean coverage at the end of the question's rollouts
    searches: jax.Array  # float32 [] mean number of executed searches of its rollouts
    rollouts: jax.Array  # int32 [3] rollouts that covered none, some or all of the nodes
    f1: jax.Array  # float32 [3] answer F1 of those rollouts, summed


def order_reversals(outcomes: jax.Array, bonus: jax.Array, mask: jax.Array) -> Reversals:
    """Pairs whose order by outcome score the bonus reverses.

    Of two rollouts whose scores differ by more than SAME, the bonus ties them when the rewards
    (score + bonus) differ by SAME at most and reverses them when the lower score has the higher
    reward by more than that.

    Args:
        outcomes: float32 [M] answer scores; a missing or truncated answer has its score, 0, and
            stays a member.
        bonus: float32 [M], what is added to the reward (`retrieval_credit.scalar_bonus`).
        mask: bool [M], the question's rollouts; finite inside.

    Returns:
        The question's counts.
    """
    chex.assert_rank([outcomes, bonus, mask], 1)
    chex.assert_equal_shape([outcomes, bonus, mask])
    chex.assert_type([outcomes, bonus, mask], [jnp.float32, jnp.float32, jnp.bool_])
    outcomes, bonus = jnp.where(mask, outcomes, 0.0), jnp.where(mask, bonus, 0.0)
    gap = outcomes[:, None] - outcomes[None, :]
    # Every pair once, seen from its better rollout.
    pair = (gap > SAME) & mask[:, None] & mask[None, :]
    # Differences of each term and not of the sums, which would round what sets them apart.
    lead = gap + (bonus[:, None] - bonus[None, :])
    reverse = pair & (lead < -SAME)
    tie = pair & (jnp.abs(lead) <= SAME)
    bins = jnp.floor((gap + SAME) * float(GAPS)).astype(jnp.int32)
    bins = jnp.where(reverse, jnp.clip(bins, 0, GAPS - 1), -1)
    each = jnp.arange(GAPS, dtype=jnp.int32)[:, None, None]
    return Reversals(
        pairs=jnp.sum(pair, dtype=jnp.int32),
        reversed=jnp.sum(reverse, dtype=jnp.int32),
        tied=jnp.sum(tie, dtype=jnp.int32),
        gap=jnp.sum(jnp.where(reverse, gap, 0.0)),
        gaps=jnp.sum(bins[None] == each, axis=(1, 2), dtype=jnp.int32),
    )


def reach(
    coverage: jax.Array,
    searches: jax.Array,
    f1: jax.Array,
    answered: jax.Array,
    mask: jax.Array,
    has_nodes: jax.Array,
) -> Reach:
    """The coverage report of one question.

    Every rollout stays in the denominators: one without an answer, or cut off before it, has F1 0
    whatever stands in `f1`. A question without nodes is not measured, it is not of zero coverage:
    it is counted in `questions` and nowhere else.

    Args:
        coverage: float32 [M], at the end of each rollout (`retrieval_credit.coverage`), 0 for one
            that executed no search.
        searches: int32 [M], executed searches.
        f1: float32 [M] of the answers.
        answered: bool [M], the rollout ended with an answer.
        mask: bool [M], the question's rollouts.
        has_nodes: bool [], the question's evidence has a node.

    Returns:
        The question's counts and means, to be added up over questions.
    """
    chex.assert_rank([coverage, searches, f1, answered, mask, has_nodes], [1, 1, 1, 1, 1, 0])
    chex.assert_equal_shape([coverage, searches, f1, answered, mask])
    chex.assert_type([coverage, searches, f1], [jnp.float32, int, jnp.float32])
    chex.assert_type([answered, mask, has_nodes], jnp.bool_)
    some_rollout = jnp.any(mask)
    mask = mask & has_nodes
    measured = jnp.any(mask)
    size = jnp.maximum(jnp.sum(mask, dtype=jnp.int32), 1).astype(jnp.float32)
    coverage = jnp.where(mask, coverage, 0.0)
    f1 = jnp.where(mask & answered, f1, 0.0)
    none, all_nodes = mask & (coverage <= SAME), mask & (coverage >= 1.0 - SAME)
    kinds = jnp.stack([none, mask & ~none & ~all_nodes, all_nodes])  # [3, M]
    runs = jnp.sum(jnp.where(mask, searches, 0)).astype(jnp.float32)
    return Reach(
        questions=some_rollout.astype(jnp.int32),
        measured=measured.astype(jnp.int32),
        zero=(measured & ~jnp.any(mask & ~none)).astype(jnp.int32),
        complete=jnp.any(all_nodes).astype(jnp.int32),
        coverage=jnp.sum(coverage) / size,
        searches=runs / size,
        rollouts=jnp.sum(kinds, axis=1, dtype=jnp.int32),
        f1=jnp.sum(jnp.where(kinds, f1[None, :], 0.0), axis=1),
    )
