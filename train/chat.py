"""The one place where a conversation gets its form: roles, tags, markers.

A policy's turn is its text up to the end token; what it means is read from two tags. A search:
`<search>words</search>`; an answer: `<answer>words [passage-id][passage-id]</answer>`. What a tool
says comes back between `<tool_response>` tags as a message of the user, which is how Qwen3's own
template shows it, one passage a line with its id in brackets.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from herald_jax.data.records import Passage

START: Final = "<|im_start|>"
END: Final = "<|im_end|>"
PAD: Final = "<|endoftext|>"
TAGS: Final = (
    "<search>",
    "</search>",
    "<answer>",
    "</answer>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
# What a tokeniser of our own holds as single tokens.
SPECIAL: Final = (PAD, START, END, *TAGS)

# From the opening tag nearest to the closing one.
_ACTION = re.compile(r"<(search|answer)>((?:(?!<(?:search|answer)>).)*?)</\1>", re.DOTALL)
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))
_MARKER = re.compile(r"\[([^\[\]]*)\]")
_IDS = re.compile(r"\s*[^\s,]+(?:\s*,\s*[^\s,]+)*\s*")
Failure = Literal["no_action", "empty_query", "unclosed_thought"]

ERRORS: Final[dict[Failure, str]] = {
    "no_action": "write <search>…</search> or <answer>…</answer>",
    "empty_query": "the search is empty",
    "unclosed_thought": "the thought has no </think>",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters first .. last - 1 of a turn, and what they are."""

    kind: Literal["think", "query", "answer", "citation"]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What a policy's turn asks for.

    Attributes:
        query: words of a search, None when the turn is none.
        answer: the answer without its markers, None when the turn gives none.
        citations: ids in markers of the answer, in order, repeats kept.
        malformed: markers of the answer that hold no id.
        failure: why neither can be executed, None when one can.
        pieces: where thoughts, the query, the answer and its citations stand.
    """

    query: str | None = None
    answer: str | None = None
    citations: tuple[str, ...] = ()
    malformed: int = 0
    failure: Failure | None = None
    pieces: tuple[Piece, ...] = ()


def plain(text: str) -> str:
    """Text of others in which no marker of a conversation is left: a space breaks each.

    A passage that holds an end token or a closing tag would otherwise speak as the user.
    """
    return _SPECIAL.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)


def prompt(question: str) -> str:
    """What stands before the policy's first turn."""
    return f"{START}user\n{plain(question)}{END}\n{START}assistant\n"


def tool_message(body: str) -> str:
    """What stands between the end token of a turn and the next turn."""
    return f"\n{START}user\n<tool_response>\n{body}\n</tool_response>{END}\n{START}assistant\n"


def shown(passage: Passage) -> str:
    """A passage as the policy sees it; a title that its text begins with is not said twice."""
    title = passage.title
    told = not title or passage.text.startswith(title)
    return plain(f"[{passage.passage_id}] {passage.text if told else f'{title}. {passage.text}'}")


def search_turn(query: str) -> str:
    """A turn that searches."""
    return f"<search>{query}</search>"


def answer_turn(answer: str, citations: Sequence[str]) -> str:
    """A turn that answers and cites."""
    markers = "".join(f"[{id_}]" for id_ in citations)
    return f"<answer>{answer}{' ' if markers else ''}{markers}</answer>"


def read_turn(text: str) -> Turn:
    """What a turn asks for: its first whole search or answer behind the last thought.

    Whatever else the turn holds is not executed: a second search of the same turn, tags inside a
    thought, a tool's response that the policy wrote itself.
    """
    thought = text.rfind("</think>")
    begun = text.find("<think>")
    pieces: list[Piece] = []
    if begun >= 0:
        if thought < begun:
            return Turn(failure="unclosed_thought", pieces=(Piece("think", begun, len(text)),))
        pieces.append(Piece("think", begun, thought + len("</think>")))
    start = thought + len("</think>") if thought >= 0 else 0
    action = _ACTION.search(text, start)
    if action is None:
        return Turn(failure="no_action", pieces=tuple(pieces))
    first, last = action.span(2)
    if action[1] == "search":
        pieces.append(Piece("query", first, last))
        query = action[2].strip()
        if not query:
            return Turn(query="", failure="empty_query", pieces=tuple(pieces))
        return Turn(query=query, pieces=tuple(pieces))
    pieces.append(Piece("answer", first, last))
    citations: list[str] = []
    malformed = 0
    for marker in _MARKER.finditer(action[2]):
        if _IDS.fullmatch(marker[1]):
            citations += [name.strip() for name in marker[1].split(",")]
            pieces.append(Piece("citation", first + marker.start(), first + marker.end()))
        else:
            malformed += 1
    rest = _MARKER.sub("", action[2])
    # A bracket without its partner is a marker that cannot be read.
    malformed += max(rest.count("["), rest.count("]"))
    answer = " ".join(rest.replace("[", " ").replace("]", " ").split())
    return Turn(
        answer=answer, citations=tuple(citations), malformed=malformed, pieces=tuple(pieces)
    )
