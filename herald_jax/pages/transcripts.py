"""Transcripts of rollouts: who wrote what, and what it is, readable without colour.

A policy's tokens may decode to anything: all of it is escaped, and what has no glyph, or would turn
the text around it, is named by its code point.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

from herald_jax.pages.numbers import quantity, signed

Kind = Literal["think", "query", "answer", "citation"]
Author = Literal["prompt", "policy", "tool"]

MOST_CHARACTERS = 6000
"""Characters of one author's turn that are shown; how many more there are is said."""
STOPS = {
    "answer": "ended with its answer",
    "turns": "cut off at the limit of turns",
    "length": "cut off at the limit of a turn's tokens",
}
_TAGS: dict[Kind, str] = {"think": "em", "query": "u", "answer": "strong", "citation": "b"}
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters that are of the same kinds.

    Attributes:
        text: as it was decoded.
        kinds: of the characters, outermost first.
        credit: what the tokens of the query that ends here are credited with; 0 for none.
    """

    text: str
    kinds: tuple[Kind, ...] = ()
    credit: float = 0.0


@dataclass(frozen=True, slots=True)
class Said:
    """What one author wrote in one go; `turn` counts the policy's, from 1."""

    author: Author
    marks: tuple[Mark, ...]
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """One rollout and what it was paid: its reward is the sum of terms and bonus."""

    name: str
    reward: float | None
    terms: Mapping[str, float]
    bonus: float
    advantage: float
    em: float
    f1: float
    stop: str
    action_tokens: int
    said: tuple[Said, ...]

    @property
    def paid(self) -> list[tuple[str, str]]:
        """Terms that are not 0, the largest first."""
        order = sorted((n for n, v in self.terms.items() if v), key=lambda n: -abs(self.terms[n]))
        return [(name, signed(self.terms[name])) for name in order]

    @property
    def ended(self) -> str:
        """Why it ended, in words."""
        return STOPS.get(self.stop, self.stop)


@dataclass(frozen=True, slots=True)
class Sample:
    """The best and the worst rollout of a group, one where all have the same reward."""

    update: int
    question: str
    rewards: tuple[float | None, ...]
    shown: tuple[Transcript, ...]


def written(said: Said) -> Markup:
    """One author's words, kinds as elements of their own."""
    left, whole = MOST_CHARACTERS, sum(len(mark.text) for mark in said.marks)
    found = Markup("")
    for at, mark in enumerate(said.marks):
        text = mark.text[:left]
        left -= len(text)
        if mark.text and not text:
            break
        shown = visible(text)
        shown = edge(shown, first=True) if at == 0 else shown
        shown = edge(shown, first=False) if at == len(said.marks) - 1 else shown
        body = escape(shown)
        for kind in reversed(mark.kinds):
            body = Markup('<{0} class="is-{1}">{2}</{0}>').format(Markup(_TAGS[kind]), kind, body)
        if mark.credit:
            body += note(f"credit {signed(mark.credit)}")
        found += body
    if whole > MOST_CHARACTERS:
        more = quantity(whole - MOST_CHARACTERS, "character")
        found += note(f"{more} more, not shown")
    return found


def note(text: str) -> Markup:
    """A remark that is no part of what was written."""
    return Markup(' <span class="remark">{}</span>').format(text)


def edge(text: str, *, first: bool) -> str:
    """Line breaks at the beginning or the end as signs: there they would not be seen."""
    bare = text.lstrip("\n") if first else text.rstrip("\n")
    signs = "↵" * (len(text) - len(bare))
    return signs + bare if first else bare + signs


def visible(text: str) -> str:
    """Text in which controls, marks of direction and what has no glyph are named."""
    return "".join(
        f"⟨U+{ord(c):04X}⟩" if unicodedata.category(c) in _UNSEEN and c not in "\n\t" else c
        for c in text
    )
