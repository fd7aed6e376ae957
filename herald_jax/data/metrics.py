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


def _golds(golds: Sequence[str] | str) -> Sequence[str]:
    # A bare string is one gold, not a sequence of its letters.
    return (golds,) if isinstance(golds, str) else golds


def _same(answer: str, gold: str, rules: str) -> bool:
    return answer == gold and (answer != "" or rules == "squad")


def _overlap(answer: str, gold: str, rules: str) -> float:
    if answer in _CLOSED_ANSWERS or gold in _CLOSED_ANSWERS:
        return float(_same(answer, gold, rules))
    ours, theirs = answer.split(), gold.split()
    shared = sum((Counter(ours) & Counter(theirs)).values())
    # 2pr / (p + r) of precision shared/ours and recall shared/theirs, rounded once.
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0


def exact_match(answer: str | None, golds: Sequence[str] | str, rules: str = "unicode") -> float:
    """1.0 when the normal form of the answer equals that of any gold, else 0.0."""
    if answer is None:
        return 0.0
    ours = normalise(answer, rules)
    return float(any(_same(ours, normalise(gold, rules), rules) for gold in _golds(golds)))


def f1(answer: str | None, golds: Sequence[str] | str, rules: str = "unicode") -> float:
    """Bag-of-tokens F1 against the best gold, in [0, 1]."""
    if answer is None:
        return 0.0
    ours = normalise(answer, rules)
    theirs = (normalise(gold, rules) for gold in _golds(golds))
    return max((_overlap(ours, gold, rules) for gold in theirs), default=0.0)


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
        Exact match and F1, float64 [n] each, equal to `exact_match` and `f1` to the last bit.

    Raises:
        ValueError: the two sequences differ in length.
    """
    normal: dict[str, str] = {}
    scores: dict[tuple[str | None, tuple[str, ...]], tuple[float, float]] = {}

    def normal_form(text: str) -> str:
        if text not in normal:
            normal[text] = normalise(text, rules)
        return normal[text]

    def score(answer: str | None, golds: tuple[str, ...]) -> tuple[float, float]:
        if answer is None:
            return 0.0, 0.0
        ours = normal_form(answer)
        theirs = [normal_form(gold) for gold in golds]
        return (
            float(any(_same(ours, gold, rules) for gold in theirs)),
            max((_overlap(ours, gold, rules) for gold in theirs), default=0.0),
        )

    out = np.empty((len(answers), 2))
    for row, (answer, given) in enumerate(zip(answers, golds, strict=True)):
        pair = (answer, tuple(_golds(given)))
        if pair not in scores:
            scores[pair] = score(*pair)
        out[row] = scores[pair]
    return out[:, 0].copy(), out[:, 1].copy()
