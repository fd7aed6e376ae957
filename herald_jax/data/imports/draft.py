"""A question between its file and the oracle: its passages are known, their ids are not yet."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from herald_jax.data.checks import Report
from herald_jax.data.imports.passages import Passages


class Hop(msgspec.Struct, gc=False):
    """One step of a question's decomposition; steps count from 1."""

    depends_on: list[int]
    answer: str
    support: int  # number of a passage


class Draft(msgspec.Struct, gc=False):
    """The gold labels of one question.

    Attributes:
        question_id: as the file has it.
        answers: gold answers, the main one first.
        support: distinct numbers of passages, and titles that the question's own context lacks.
        hops: its decomposition; empty where the benchmark has none.
        answer_id: Wikidata id of the answer, "" when not known.
    """

    question_id: str
    answers: list[str]
    support: list[int | str]
    hops: list[Hop] = []
    answer_id: str = ""


@dataclass
class Found:
    """What the questions of all files hold together.

    Attributes:
        passages: distinct passages of the contexts.
        left_out: reason -> questions without an oracle row.
        noted: oddity -> how many; nothing is left out for it.
    """

    passages: Passages = field(default_factory=Passages)
    left_out: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)


# Reads one labelled question; None when it is left out or has a fault.
ReadQuestion = Callable[[dict[str, Any], Report, Found], Draft | None]
