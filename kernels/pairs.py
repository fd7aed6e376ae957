"""Which pairs of an original and its edit count: eligibility and isolation (SPEC section 5)."""

import jax
import jax.numpy as jnp

from herald_jax.types import pytree


@pytree
class Rule:
    """What an operator must do to the detectors."""

    target: jax.Array  # bool [D], one True: must be off before and on after
    watched: jax.Array  # bool [D]: must not differ


@pytree
class Pair:
    """Verdict on one pair; each implies the one before."""

    made: jax.Array  # bool []
    eligible: jax.Array  # bool []
    isolated: jax.Array  # bool []
    broke: jax.Array  # bool [D]: watched flags that differ on an eligible pair


def judge_pair(made: jax.Array, before: jax.Array, after: jax.Array, rule: Rule) -> Pair:
    """Whether a pair is eligible and isolated.

    eligible = made ∧ ¬target(original) ∧ target(edit); isolated = eligible ∧ no watched flag
    differs.

    Args:
        made: bool [].
        before: bool [D], detectors of the original.
        after: bool [D], detectors of the edit.
        rule: the operator's.

    Returns:
        `Pair` of scalars.
    """
    eligible = made & ~jnp.any(before & rule.target) & jnp.any(after & rule.target)
    broke = eligible & (before != after) & rule.watched
    return Pair(
        made=made, eligible=eligible, isolated=eligible & ~jnp.any(broke, axis=0), broke=broke
    )
