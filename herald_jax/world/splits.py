"""Splits of counties, and so of questions and evidence: no county serves two splits."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

from herald_jax.data.text import normalise
from herald_jax.world.questions import Question
from herald_jax.world.streams import Stream

Key = TypeVar("Key")

SHARES: Final = MappingProxyType({"train": 60, "dev": 20, "test": 20})


def portions(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """`total` in whole parts in proportion to `weights`, by largest remainder, first ones first."""
    whole = sum(weights.values())
    parts = {key: total * weight // whole for key, weight in weights.items()}
    by_remainder = sorted(weights, key=lambda key: -(total * weights[key] % whole))
    for key in by_remainder[: total - sum(parts.values())]:
        parts[key] += 1
    return parts


def split_counties(seed: int, counties: int) -> dict[str, list[int]]:
    """Counties of each split, in random order."""
    order = iter(Stream(seed, "splits").shuffled(range(counties)))
    return {
        split: [next(order) for _ in range(size)]
        for split, size in portions(counties, SHARES).items()
    }


def overlaps(questions: Sequence[Question]) -> list[str]:
    """What is in two splits, or twice in one where that is wrong: ids, questions, evidence."""
    return [
        *_shared("question id", ((q.question_id, q.question_id) for q in questions)),
        *_shared("question", ((normalise(q.text), q.question_id) for q in questions)),
        *_shared(
            "evidence passage",
            dict.fromkeys((passage, q.split) for q in questions for passage in q.support_ids),
        ),
    ]


def _shared(what: str, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Keys that occur with more than one owner."""
    owners: dict[str, list[str]] = {}
    for key, owner in pairs:
        owners.setdefault(key, []).append(owner)
    return [
        f"{what} {key!r} is in {', '.join(held)}" for key, held in owners.items() if len(held) > 1
    ]
