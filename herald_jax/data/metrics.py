"""Answer metrics: exact match, token F1, and gold answers found in a text (SPEC section 2).

A null answer, an answer without golds and, under the `unicode` rules, an EMPTY side score 0. When
either side is exactly yes, no or noanswer, F1 is exact match, as the HotpotQA scorer has it.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from herald_jax.data.golds import Golds
from herald_jax.data.strings import encoded
from herald_jax.data.text import normalise


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
    if len(answers) != len(golds):
        raise ValueError(f"{len(answers)} answers do not go with {len(golds)} lists of golds")
    number: dict[tuple[str, ...], int] = {}
    question = [number.setdefault(_golds(given), len(number)) for given in golds]
    codes, distinct = encoded(pa.array(answers, pa.string()))
    return Golds(list(number), rules).scores(distinct, codes, np.array(question, np.int32))


def _golds(golds: Sequence[str] | str) -> tuple[str, ...]:
    # A bare string is one gold, not a sequence of its letters.
    return (golds,) if isinstance(golds, str) else tuple(golds)
