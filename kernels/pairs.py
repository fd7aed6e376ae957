"""Which pairs of an original and its edit count: eligibility and isolation (SPEC section 5)."""

import jax
import jax.numpy as jnp

from herald_jax.kernels.detectors import Flags
from herald_jax.kernels.rewards import Moved
from herald_jax.types import DETECTORS, pytree


@pytree
class Rule:
    """What an operator must do to the detectors."""

    target: jax.Array  # bool [D], one True: must be off before and on after
    watched: jax.Array  # bool [D]: must not differ


@pytree
class Pair:
    """Verdict on one pair; each implies the one before."""

    eligible: jax.Array  # bool []
    isolated: jax.Array  # bool []
    broke: Moved  # bool []: watched flags that differ on an eligible pair


def judge_pair(made: jax.Array, before: Flags, after: Moved, rule: Rule) -> Pair:
    """Whether a pair is eligible and isolated.

    eligible = made ∧ ¬target(original) ∧ target(edit); isolated = eligible ∧ no watched flag
    differs.

    Args:
        made: bool [], or with any axes, those of `after`.
        before: detectors of the original.
        after: detectors of the edit that it can change, by name; other columns are not read.
        rule: the operator's.

    Returns:
        `Pair`.
    """
    switched = jnp.zeros_like(made)
    differs = {}
    for d, name in enumerate(DETECTORS):
        if name in after:
            off, on = ~getattr(before, name), after[name]
            switched |= rule.target[d] & off & on
            differs[name] = rule.watched[d] & (off == on)
    eligible = made & switched
    isolated = eligible
    for differ in differs.values():
        isolated &= ~differ
    broke = {name: eligible & differ for name, differ in differs.items()}
    return Pair(eligible=eligible, isolated=isolated, broke=broke)
