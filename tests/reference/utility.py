"""Offline utility: what the rollout that a contract likes best is worth, question by question."""

from collections.abc import Iterable

from reference.cells import mean
from reference.detectors import has_final
from reference.metrics import exact_match, f1
from reference.pools import by_question, highest
from reference.records import executed_searches
from reference.rewards import Contract, Judged, precision_recall, reward
from reference.settings import Settings


def worth(row: Judged, gold: dict, settings: Settings) -> dict[str, float]:
    """The measures of one rollout; a rate over no citation or no support is 0."""
    trajectory = row.trajectory
    cited, support = set(trajectory["citations"]), set(gold["support_ids"])
    precision, recall = precision_recall(cited, support)
    return {
        "em": exact_match(trajectory["answer"], gold["answers"], settings.rules),
        "f1": f1(trajectory["answer"], gold["answers"], settings.rules),
        "citation_precision": precision,
        "support_recall": recall,
        "unsupported_rate": len(cited - support) / len(cited) if cited else 0.0,
        "valid_final": float(has_final(trajectory)),
        "searches": float(len(executed_searches(trajectory))),
    }


def utility(
    rows: Iterable[Judged], golds: dict[str, dict], contract: Contract, settings: Settings
) -> dict[str, float]:
    """Means over questions of the first of the rollouts with the highest reward."""
    chosen = [
        highest(group, lambda row: reward(row, contract), settings.tie_tolerance)[0]
        for group in by_question(rows)
    ]
    found = [worth(row, golds[row.trajectory["question_id"]], settings) for row in chosen]
    return {name: mean([w[name] for w in found]) for name in found[0]}
