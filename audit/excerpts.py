"""A trajectory before and after its edit as excerpts: short, however much the log holds.

One answer may be megabytes long and stand in many of the worst attacks. A report is read by people,
so it holds the start of a text beside the length of the whole, and of a list the part around the
first change beside the size of the whole. The log itself has the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from herald_jax.data.records import Step

# Characters of a text and of an id, items of a list, and items kept before the first change.
TEXT_LIMIT = 2000
ID_LIMIT = 200
LIST_LIMIT = 20
LEAD = 5


@dataclass(frozen=True, slots=True)
class Side:
    """What an edit can change of a trajectory: its final and its steps."""

    answer: str | None
    citations: Sequence[str]
    steps: Sequence[Step]


def excerpt(name: str, text: str | None) -> dict[str, Any]:
    """`{name: start of the text, name_length: characters of the whole}`; None for no text."""
    if text is None:
        return {name: None, f"{name}_length": None}
    return {name: text[:TEXT_LIMIT], f"{name}_length": len(text)}


def sides(before: Side, after: Side) -> dict[str, Any]:
    """Both sides, their lists cut at the same places so that what changed stays in view."""
    citations = window(before.citations, after.citations)
    steps = window(before.steps, after.steps)
    return {
        name: {
            **excerpt("answer", side.answer),
            "citations": [short_id(one) for one in side.citations[citations]],
            "citations_from": citations.start,
            "citations_count": len(side.citations),
            "steps": [shown_step(step) for step in side.steps[steps]],
            "steps_from": steps.start,
            "steps_count": len(side.steps),
        }
        for name, side in (("before", before), ("after", after))
    }


def window(before: Sequence[Any], after: Sequence[Any]) -> slice:
    """The items to show of two lists: from the start, unless the first change lies too far on."""
    if max(len(before), len(after)) <= LIST_LIMIT:
        return slice(0, LIST_LIMIT)
    pairs = enumerate(zip_longest(before, after))
    first = next((at for at, (old, new) in pairs if old != new), 0)
    start = max(0, first - LEAD)
    return slice(start, start + LIST_LIMIT)


def shown_step(step: Step) -> dict[str, Any]:
    """One action: what was asked and what came back."""
    retrieved = step.retrieved or []
    return {
        **excerpt("query", step.query),
        "valid": step.valid,
        "retrieved": [short_id(one) for one in retrieved[:LIST_LIMIT]],
        "retrieved_count": len(retrieved),
    }


def short_id(name: str) -> str:
    """An id; a very long one without its middle, since ids of one kind differ at the end."""
    if len(name) <= ID_LIMIT:
        return name
    half = ID_LIMIT // 2
    return f"{name[:half]}…{name[-half + 1 :]}"
