"""Exact match and token F1 of an answer against the best of its golds."""

from collections import Counter
from collections.abc import Sequence

from reference.text import normalise

# An answer that is one of these is right or wrong, never partly right.
CLOSED = ("yes", "no", "noanswer")


def gold_list(answers: str | Sequence[str]) -> list[str]:
    """The golds; a bare string is one gold."""
    return [answers] if isinstance(answers, str) else list(answers)


def exact_match(answer: str | None, golds: str | Sequence[str], rules: str = "unicode") -> int:
    """1 when the answer equals some gold; no answer and no gold give 0."""
    if answer is None:
        return 0
    return max((exact_match_one(answer, gold, rules) for gold in gold_list(golds)), default=0)


def f1(answer: str | None, golds: str | Sequence[str], rules: str = "unicode") -> float:
    """The best F1 over the golds; no answer and no gold give 0."""
    if answer is None:
        return 0.0
    return max((f1_one(answer, gold, rules) for gold in gold_list(golds)), default=0.0)


def exact_match_one(answer: str, gold: str, rules: str) -> int:
    """EMPTY matches nothing, not even EMPTY, except under the published rules."""
    a, g = normalise(answer, rules), normalise(gold, rules)
    if rules == "unicode" and (a == "" or g == ""):
        return 0
    return int(a == g)


def f1_one(answer: str, gold: str, rules: str) -> float:
    """F1 of the two bags of tokens."""
    a, g = normalise(answer, rules), normalise(gold, rules)
    if a in CLOSED or g in CLOSED:
        return float(exact_match_one(answer, gold, rules))
    answer_bag, gold_bag = Counter(a.split()), Counter(g.split())
    shared = (answer_bag & gold_bag).total()
    if shared == 0:
        return 0.0
    # 2pr / (p + r) of precision shared/answer and recall shared/gold, rounded once.
    return 2 * shared / (answer_bag.total() + gold_bag.total())
