"""Offline utility: what the rollouts are worth that each contract likes best (SPEC section 8)."""

import numpy as np
import numpy.typing as npt

from herald_jax.audit.selections import best, first_of
from herald_jax.audit.staging import Block, Mask
from herald_jax.kernels.exact import ExactSum

METRICS = (
    "em",
    "f1",
    "citation_precision",
    "support_recall",
    "unsupported_rate",
    "valid_final",
    "searches",
)


class Utility:
    """Sums over questions, exact whatever the order of blocks."""

    def __init__(self, contracts: tuple[str, ...]) -> None:
        """Start at nothing, for some contracts."""
        self._contracts = contracts
        self._sums = {(c, metric): ExactSum() for c in contracts for metric in METRICS}
        self._questions = 0

    def add(self, block: Block, rows: Mask) -> None:
        """Count the questions of a block, choosing among some of its rows."""
        among = rows.reshape(block.grouped)
        self._questions += int(among.any(axis=1).sum())
        worth = _worth(block)
        for j, contract in enumerate(self._contracts):
            scores = block.rewards[j].reshape(block.grouped)
            chosen = first_of(best(scores, among, block.setup.tie_tolerance)).reshape(-1)
            for metric in METRICS:
                self._sums[contract, metric].add(worth[metric][chosen])

    def report(self) -> dict[str, dict[str, float]]:
        """`{contract: {metric: mean over questions}}`; {} without a question."""
        if not self._questions:
            return {}
        return {
            contract: {
                metric: float(self._sums[contract, metric].fraction() / self._questions)
                for metric in METRICS
            }
            for contract in self._contracts
        }


def _worth(block: Block) -> dict[str, npt.NDArray[np.float64]]:
    """Each metric of every row: float64 [B]. A rate over nothing is 0."""
    pool = block.setup.pool.rows
    distinct = np.asarray(block.state.present) & np.asarray(block.state.first)
    cited = distinct.sum(axis=0)
    hits = (distinct & np.asarray(block.labels.support)).sum(axis=0)
    support = np.asarray(block.labels.n_support)
    return {
        "em": block.gather(pool.em, 0.0),
        "f1": block.gather(pool.f1, 0.0),
        "citation_precision": hits / np.maximum(cited, 1),
        "support_recall": hits / np.maximum(support, 1),
        "unsupported_rate": (cited - hits) / np.maximum(cited, 1),
        "valid_final": (np.asarray(block.state.answer_tokens) > 0).astype(np.float64),
        "searches": np.asarray(block.state.searches).astype(np.float64),
    }
