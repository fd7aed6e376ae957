"""Which pairs of an original and its edit count: eligibility and isolation (SPEC section 5)."""

from functools import reduce
from operator import or_

import jax
import jax.numpy as jnp

from herald_jax.kernels.detectors import Flags
from herald_jax.types import DETECTORS, pytree


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
    broke: Flags  # watched flags that differ on an eligible pair


def judge_pair(made: jax.Array, before: Flags, after: Flags, rule: Rule) -> Pair:
    """Whether a pair is eligible and isolated.

    eligible = made ∧ ¬target(original) ∧ target(edit); isolated = eligible ∧ no watched flag
    differs.

    Args:
        made: bool [].
        before: detectors of the original.
        after: detectors of the edit.
        rule: the operator's.

    Returns:
        `Pair` of scalars.
    """
    switched = jnp.zeros_like(made)
    differs = {}
    for d, name in enumerate(DETECTORS):
        off, on = ~getattr(before, name), getattr(after, name)
        switched |= rule.target[d] & off & on
        differs[name] = rule.watched[d] & (off == on)
    eligible = made & switched
    isolated = eligible & ~reduce(or_, differs.values())
    broke = Flags(**{name: eligible & differ for name, differ in differs.items()})
    return Pair(made=made, eligible=eligible, isolated=isolated, broke=broke)
