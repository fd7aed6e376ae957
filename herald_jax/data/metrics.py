"""Answer metrics: exact match, token F1, and gold answers found in a text (SPEC section 2).

A null answer, an answer without golds and, under the `unicode` rules, an EMPTY side score 0. When
either side is exactly yes, no or noanswer, F1 is exact match, as the HotpotQA scorer has it.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from herald_jax.data.text import normalise

_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


class _Form:
    """Normal form of an answer, with its words counted once."""

    __slots__ = ("distinct", "text", "words")

    def __init__(self, text: str, rules: str):
        self.text = normalise(text, rules)
        self.words = self.text.split()
        self.distinct = set(self.words)


def _golds(golds: Sequence[str] | str) -> tuple[str, ...]:
    # A bare string is one gold, not a sequence of its letters.
    return (golds,) if isinstance(golds, str) else tuple(golds)


def _same(answer: _Form, gold: _Form, rules: str) -> bool:
    return answer.text == gold.text and (answer.text != "" or rules == "squad")


def _shared(answer: _Form, gold: _Form) -> int:
    """Words that two bags have in common, each as often as in both."""
    common = answer.distinct & gold.distinct
    for side in (answer, gold):
        if len(side.distinct) == len(side.words):  # each common word counts once
            return len(common)
    ours, theirs = Counter(answer.words), Counter(gold.words)
    return sum(min(ours[word], theirs[word]) for word in common)


def _overlap(answer: _Form, gold: _Form, rules: str) -> float:
    if answer.text in _CLOSED_ANSWERS or gold.text in _CLOSED_ANSWERS:
        return float(_same(answer, gold, rules))
    shared = _shared(answer, gold)
    # 2pr / (p + r) of precision shared/words and recall shared/words, rounded once.
    return 2 * shared / (len(answer.words) + len(gold.words)) if shared else 0.0


def _scores(answer: _Form, golds: Sequence[_Form], rules: str) -> tuple[float, float]:
    return (
        float(any(_same(answer, gold, rules) for gold in golds)),
        max((_overlap(answer, gold, rules) for gold in golds), default=0.0),
    )


def exact_match(answer: str | None, golds: Sequence[str] | str, rules: str = "unicode") -> float:
    """1.0 when the normal form of the answer equals that of any gold, else 0.0."""
    return float(answer_metrics([answer], [golds], rules)[0][0])


def f1(answer: str | None, golds: Sequence[str] | str, rules: str = "unicode") -> float:
    """Bag-of-tokens F1 against the best gold, in [0, 1]."""
    return float(answer_metrics([answer], [golds], rules)[1][0])


def contains(text: str, golds: Sequence[str] | str, rules: str = "unicode") -> bool:
    """Whether the tokens of any gold are a contiguous run of the text's, both normalised.

    This is how retrieval credit finds a gold alias in a passage (SPEC section 10). An EMPTY gold
    is found nowhere.
    """
    haystack = f" {normalise(text, rules)} "
    normal = (normalise(gold, rules) for gold in _golds(golds))
    return any(gold != "" and f" {gold} " in haystack for gold in normal)


def answer_metrics(
    answers: Sequence[str | None], golds: Sequence[Sequence[str] | str], rules: str = "unicode"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Exact match and F1 of many answers, each distinct (answer, golds) pair scored once.

    Args:
        answers: n answers, None for none.
        golds: n lists of gold answers.
        rules: see `normalise`.

    Returns:
        Exact match and F1, float64 [n] each.

    Raises:
        ValueError: the two sequences differ in length, or there are no such rules.
    """
    forms: dict[tuple[str, ...], list[_Form]] = {}
    scores: dict[tuple[str, tuple[str, ...]], tuple[float, float]] = {}

    out = []
    for answer, given in zip(answers, golds, strict=True):
        if answer is None:
            out.append((0.0, 0.0))
            continue
        theirs = _golds(given)
        pair = (answer, theirs)
        if pair not in scores:
            if theirs not in forms:
                forms[theirs] = [_Form(gold, rules) for gold in theirs]
            scores[pair] = _scores(_Form(answer, rules), forms[theirs], rules)
        out.append(scores[pair])
    columns = np.array(out, np.float64).reshape(-1, 2)
    return columns[:, 0].copy(), columns[:, 1].copy()
