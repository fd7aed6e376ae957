"""The questions of a pool and their gold labels, as arrays (oracle)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herald_jax.data.ids import IdTable
from herald_jax.data.metrics import answer_metrics
from herald_jax.data.ragged import Int32, Ragged
from herald_jax.data.records import OracleRow
from herald_jax.data.text import answer_tokens
from herald_jax.types import NO_ANSWER

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Questions:
    """Q questions sorted by id.

    Attributes:
        ids: Q ids, sorted by code point.
        golds: their gold answers.
        support: Q lists of distinct support codes in the order of the file.
        gold_em: float64 [Q] exact match of the first gold answer against all; NaN without gold.
        gold_f1: float64 [Q] the same for F1.
        gold_tokens: int32 [Q] white-space tokens of the first gold answer, or `NO_ANSWER`.
    """

    ids: list[str]
    golds: list[list[str]]
    support: Ragged
    gold_em: Float64
    gold_f1: Float64
    gold_tokens: Int32

    def __len__(self) -> int:
        return len(self.ids)


def questions_of(rows: Sequence[OracleRow], ids: IdTable, rules: str) -> Questions:
    """Questions of oracle rows with distinct ids; support ids enter the table of ids.

    Args:
        rows: Q rows in any order.
        ids: codes of passages.
        rules: answer rules, `unicode` or `squad`.
    """
    rows = sorted(rows, key=lambda row: row.question_id)
    golds = [row.answers for row in rows]
    firsts = [answers[0] if answers else None for answers in golds]
    gold_em, gold_f1 = answer_metrics(firsts, golds, rules)
    without = np.array([first is None for first in firsts], bool)
    gold_em[without] = gold_f1[without] = np.nan
    support = [list(dict.fromkeys(row.support_ids)) for row in rows]
    return Questions(
        ids=[row.question_id for row in rows],
        golds=golds,
        support=Ragged.of_lengths(
            ids.encode([name for names in support for name in names]), [len(s) for s in support]
        ),
        gold_em=gold_em,
        gold_f1=gold_f1,
        gold_tokens=np.array(
            [NO_ANSWER if first is None else answer_tokens(first) for first in firsts], np.int32
        ),
    )
