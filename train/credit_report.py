"""The two checks of the retrieval-credit paper, summed over a run (SPEC section 10).

Does a scalar bonus place worse answers above better ones, and do searches reach evidence at all?
Truncated rollouts and missing answers stay in every denominator.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.kernels.credit_checks import CLASSES, Reach, Reversals, order_reversals, reach
from herald_jax.kernels.retrieval_credit import scalar_bonus
from herald_jax.train.evidence import Searched

_LEAVES = {
    "pairs": 0,
    "reversed": 0,
    "tied": 0,
    "gap": 0.0,
    "questions": 0,
    "measured": 0,
    "zero": 0,
    "complete": 0,
    "coverage": 0.0,
    "searches": 0.0,
}
_ROWS = {"gaps": 10, "rollouts": len(CLASSES), "f1": len(CLASSES)}


def _nothing() -> dict[str, Any]:
    return dict(_LEAVES) | {name: [0.0] * n for name, n in _ROWS.items()}


@dataclass(slots=True)
class CreditReport:
    """Sums over updates, plain values."""

    sums: dict[str, Any] = field(default_factory=_nothing)

    def add(
        self,
        f1: np.ndarray,
        answered: np.ndarray,
        searched: Searched,
        *,
        group: int,
        weight: float,
    ) -> dict[str, float | int]:
        """Add the rollouts of an update, and give its numbers for the log.

        Args:
            f1: float32 [B] of the answers.
            answered: bool [B].
            searched: their searches.
            group: rollouts of a question, side by side.
            weight: of the scalar bonus.
        """
        found = _check(jnp.asarray(f1), jnp.asarray(answered), searched, group=group, weight=weight)
        now: dict[str, Any] = {}
        for tree in jax.device_get(found):
            now |= {name: np.asarray(getattr(tree, name)).tolist() for name in vars(tree)}
        for name, value in now.items():
            if isinstance(value, list):
                self.sums[name] = [a + b for a, b in zip(self.sums[name], value, strict=True)]
            else:
                self.sums[name] += value
        measured = now["measured"]
        return {
            "credit/pairs": now["pairs"],
            "credit/reversed": now["reversed"],
            "evidence/measured": measured,
            "evidence/coverage": now["coverage"] / measured if measured else float("nan"),
            "evidence/zero": now["zero"],
            "evidence/complete": now["complete"],
        }

    def summary(self) -> dict[str, Any]:
        """What the sums say; None where nothing was measured."""
        s = self.sums

        def share(part: float, whole: float) -> float | None:
            return part / whole if whole else None

        return {
            "unequal_pairs": s["pairs"],
            "reversed_pairs": s["reversed"],
            "tied_pairs": s["tied"],
            "reversed_share": share(s["reversed"], s["pairs"]),
            "mean_gap_of_reversed": share(s["gap"], s["reversed"]),
            "gaps_of_reversed": s["gaps"],
            "questions": s["questions"],
            "questions_with_evidence": s["measured"],
            "zero_coverage": s["zero"],
            "complete_coverage": s["complete"],
            "mean_coverage": share(s["coverage"], s["measured"]),
            "searches_per_question": share(s["searches"], s["measured"]),
            "rollouts_by_coverage": dict(zip(CLASSES, s["rollouts"], strict=True)),
            "f1_by_coverage": {
                name: share(f1, n)
                for name, f1, n in zip(CLASSES, s["f1"], s["rollouts"], strict=True)
            },
        }


@partial(jax.jit, static_argnames=("group", "weight"))
def _check(
    f1: jax.Array, answered: jax.Array, searched: Searched, *, group: int, weight: float
) -> tuple[Reversals, Reach]:
    def grouped(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(-1, group, *leaf.shape[1:])

    bonus = jax.vmap(partial(scalar_bonus, weight=weight))(searched.events)
    every = jnp.ones_like(answered)
    f1 = jnp.where(answered, f1, 0.0)
    reversals = jax.vmap(order_reversals)(grouped(f1), grouped(bonus), grouped(every))
    reached = jax.vmap(reach)(
        grouped(searched.coverage),
        grouped(jnp.sum(searched.executed, axis=1, dtype=jnp.int32)),
        grouped(f1),
        grouped(answered),
        grouped(every),
        grouped(searched.has_nodes)[:, 0],
    )
    total = partial(jax.tree.map, lambda leaf: jnp.sum(leaf, axis=0))
    return total(reversals), total(reached)
