"""Offline utility: what the rollouts are worth that each contract likes best (SPEC section 8)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from herald_jax.audit.counts import Counts, add_exactly, bump, exact_total, leaf
from herald_jax.audit.selections import best, first_of
from herald_jax.audit.staging import Block, Mask

METRICS = (
    "em",
    "f1",
    "citation_precision",
    "support_recall",
    "unsupported_rate",
    "valid_final",
    "searches",
)


def count_utility(counts: Counts, contracts: tuple[str, ...], block: Block, rows: Mask) -> None:
    """Count the questions of a block, choosing among some of its rows; sums are exact."""
    among = rows.reshape(block.grouped)
    bump(counts, "questions", by=among.any(axis=1).sum())
    worth = _worth(block)
    for j, contract in enumerate(contracts):
        scores = block.rewards[j].reshape(block.grouped)
        chosen = first_of(best(scores, among, block.setup.tie_tolerance)).reshape(-1)
        for metric in METRICS:
            add_exactly(counts, contract, metric, values=worth[metric][chosen])


def report_utility(
    counts: Mapping[str, Any], contracts: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """`{contract: {metric: mean over questions}}`; {} without a question."""
    questions = leaf(counts, "questions")
    if not questions:
        return {}
    return {
        contract: {
            metric: float(exact_total(counts, contract, metric) / questions) for metric in METRICS
        }
        for contract in contracts
    }


def _worth(block: Block) -> dict[str, npt.NDArray[np.float64]]:
    """Each metric of every row: float64 [B]. A rate over nothing is 0."""
    distinct = np.asarray(block.state.present) & np.asarray(block.state.first)
    cited = distinct.sum(axis=0)
    hits = (distinct & np.asarray(block.labels.support)).sum(axis=0)
    support = np.asarray(block.labels.n_support)
    return {
        "em": block.gather("em", 0.0),
        "f1": block.gather("f1", 0.0),
        "citation_precision": hits / np.maximum(cited, 1),
        "support_recall": hits / np.maximum(support, 1),
        "unsupported_rate": (cited - hits) / np.maximum(cited, 1),
        "valid_final": (np.asarray(block.state.answer_tokens) > 0).astype(np.float64),
        "searches": np.asarray(block.state.searches).astype(np.float64),
    }
