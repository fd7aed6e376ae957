"""Selections of rows, and the best rollout of each question under a reward."""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence

from reference.metrics import exact_match, f1
from reference.rewards import Judged
from reference.settings import Settings

SELECTIONS = ("stored", "first", "hash_random", "all", "r0_best", "gold_informed")


def by_question(rows: Iterable[Judged]) -> list[list[Judged]]:
    """The rollouts of every question, by `rollout`, then by trajectory id."""
    groups: dict[str, list[Judged]] = {}
    for row in rows:
        groups.setdefault(row.trajectory["question_id"], []).append(row)
    return [
        sorted(group, key=lambda r: (r.trajectory["rollout"], r.trajectory["trajectory_id"]))
        for group in groups.values()
    ]


def highest(
    group: Sequence[Judged], score: Callable[[Judged], float], tolerance: float
) -> list[Judged]:
    """Those within the tolerance of the maximum; what is not finite is below all."""
    scores = [score(row) for row in group]
    finite = [s for s in scores if math.isfinite(s)]
    if not finite:
        return list(group)
    limit = max(finite) - tolerance
    return [row for row, s in zip(group, scores, strict=True) if math.isfinite(s) and s >= limit]


def highest_r0(group: Sequence[Judged], settings: Settings) -> Judged:
    return highest(group, lambda row: row.base["R0"], settings.tie_tolerance)[0]


def hashed_index(question_id: str, rollouts: int) -> int:
    """SHA-256 of the UTF-8 question id, first 8 bytes big-endian, modulo the rollouts."""
    digest = hashlib.sha256(question_id.encode("utf-8")).digest()
    return int.from_bytes(digest[:8], "big") % rollouts


def gold_informed(group: Sequence[Judged], golds: dict[str, dict], settings: Settings) -> Judged:
    """Highest EM, among those highest F1, among those highest R0, the first of those."""
    answers = golds[group[0].trajectory["question_id"]]["answers"]

    def em_of(row: Judged) -> float:
        return exact_match(row.trajectory["answer"], answers, settings.rules)

    def f1_of(row: Judged) -> float:
        return f1(row.trajectory["answer"], answers, settings.rules)

    left = highest(group, em_of, settings.tie_tolerance)
    left = highest(left, f1_of, settings.tie_tolerance)
    return highest_r0(left, settings)


def select(
    selection: str, rows: Iterable[Judged], golds: dict[str, dict], settings: Settings
) -> list[Judged]:
    """The rows of one selection."""
    rows = list(rows)
    if selection == "all":
        return rows
    if selection == "stored":
        return [row for row in rows if row.trajectory["selected"]]
    pick: dict[str, Callable[[list[Judged]], Judged]] = {
        "first": lambda group: group[0],
        "hash_random": lambda group: group[
            hashed_index(group[0].trajectory["question_id"], len(group))
        ],
        "r0_best": lambda group: highest_r0(group, settings),
        "gold_informed": lambda group: gold_informed(group, golds, settings),
    }
    return [pick[selection](group) for group in by_question(rows)]
