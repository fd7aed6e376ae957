"""Retrieval credit and its two checks, with sets and exact fractions."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

Number = float | Fraction


def coverage(
    retrieved: Sequence[Sequence[int]],
    supports: Sequence[Sequence[int]],
    depends: Mapping[int, Sequence[int]],
) -> tuple[list[Fraction], list[Fraction]]:
    """Cov and Cov-Dep after each search; node n is supported by supports[n]."""

    def counts(node: int, covered: set[int], above: tuple[int, ...] = ()) -> bool:
        if node in above or node not in covered:
            return False
        return all(counts(other, covered, (*above, node)) for other in depends.get(node, ()))

    plain, ordered = [], []
    so_far: set[int] = set()
    for ids in retrieved:
        so_far |= set(ids)
        covered = {n for n, wanted in enumerate(supports) if wanted and set(wanted) <= so_far}
        held = [n for n in covered if counts(n, covered)]
        plain.append(Fraction(len(covered), max(len(supports), 1)))
        ordered.append(Fraction(len(held), max(len(supports), 1)))
    return plain, ordered


def events(values: Sequence[Number | None]) -> list[Number]:
    """Rises above everything before; None is a search that was not executed."""
    best: Number = 0
    found: list[Number] = []
    for value in values:
        found.append(0 if value is None else max(value - best, 0))
        best = best if value is None else max(best, value)
    return found


def local_credit(
    events: Sequence[Sequence[Number | None]],
    call_tokens: Sequence[Sequence[int]],
    query_tokens: Sequence[Sequence[int]],
    usable: Sequence[bool],
    weight: Number,
) -> list[list[Number]]:
    """Credit of each rollout's searches; None is a search that was not executed."""
    credit: list[list[Number]] = [[0] * len(row) for row in events]
    for m, row in enumerate(events):
        for k, event in enumerate(row):
            ran = [other[k] for other in events if other[k] is not None]
            if event is None or not usable[m] or query_tokens[m][k] == 0:
                continue
            centre = sum(ran, Fraction(0)) / len(ran)
            credit[m][k] = (
                weight * (event - centre) * Fraction(call_tokens[m][k], query_tokens[m][k])
            )
    return credit


def order_reversals(
    rollouts: Sequence[tuple[Number, Number]], same: Number
) -> tuple[int, int, list[Number]]:
    """Pairs of (outcome score, bonus) with unequal scores; those tied; gaps of those reversed."""
    pairs, tied, gaps = 0, 0, []
    for one, other in combinations(rollouts, 2):
        (low, low_bonus), (high, high_bonus) = sorted((one, other), key=lambda pair: pair[0])
        if high - low <= same:
            continue
        pairs += 1
        lead = high + high_bonus - low - low_bonus
        tied += abs(lead) <= same
        if lead < -same:
            gaps.append(high - low)
    return pairs, tied, gaps


def reach(questions: Sequence[Sequence[tuple[Number, int, Number | None]]]) -> dict[str, Any]:
    """The coverage report of questions whose rollouts are (coverage, searches, F1 or None).

    A None stands for no answer.
    """
    found: dict[str, Any] = {
        "questions": len(questions),
        "zero": 0,
        "complete": 0,
        "coverage": Fraction(0),
        "searches": Fraction(0),
        "rollouts": [0, 0, 0],
        "f1": [Fraction(0)] * 3,
    }
    for rollouts in questions:
        found["zero"] += all(covered == 0 for covered, _, _ in rollouts)
        found["complete"] += any(covered == 1 for covered, _, _ in rollouts)
        found["coverage"] += sum((Fraction(c) for c, _, _ in rollouts), Fraction(0)) / len(rollouts)
        found["searches"] += Fraction(sum(ran for _, ran, _ in rollouts), len(rollouts))
        for covered, _, f1 in rollouts:
            place = 0 if covered == 0 else 2 if covered == 1 else 1
            found["rollouts"][place] += 1
            found["f1"][place] += Fraction(f1 or 0)
    return found
