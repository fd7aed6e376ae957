"""What stands between the strings of a line of JSON, read once however often it comes.

Take the strings out of the lines of one writer, and little is left, the same again and again:

    "rollout": 3, "steps": [{"query": "…", "retrieved": ["…", "…"]}, {"query": …

A *head* goes from a key to the next string, `rollout": 3, "` or `retrieved": ["`; a *tail* from the
last string of a value to the next key, `"]}, {"`. Each distinct one is parsed here, in full, and
kept. One that is not certain to be right (other white space, an object in an unknown key, a number
out of range) has no meaning, and the line that it stands in is read in another way.
"""

import math
import re
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# What a value is.
STRING, LIST, EMPTY, NULL, FALSE, TRUE, INTEGER, NUMBER, STEPS = range(9)
# How it ends: the next key is in the same object; it opens the first step; it is in the next step;
# it is behind the steps; the line ends, at the top or behind the steps.
SAME, OPENS, NEXT, CLOSES, ENDS, CLOSES_AND_ENDS = range(6)
UNKNOWN = -1  # in place of a kind or an end

_TOP, _IN_STEP = 0, 1
# The level that an end is possible at (-1: any), and the one of the key behind it.
NEEDS = np.array([-1, _TOP, _IN_STEP, _IN_STEP, _TOP, _IN_STEP])
GIVES = np.array([-1, _IN_STEP, _IN_STEP, _TOP, -1, -1])

_COUNT = (0, 2**31 - 1)
_LISTS = {LIST, EMPTY, NULL}
_FLAGS = {FALSE, TRUE}


class Key(NamedTuple):
    """A key of the record: where it stands, which values it takes, within which bounds."""

    name: str
    level: int
    kinds: set[int]
    bounds: tuple[int, int] = (-(2**63), 2**63 - 1)


KEYS = (
    Key("trajectory_id", _TOP, {STRING}),
    Key("question_id", _TOP, {STRING}),
    Key("question", _TOP, {STRING}),
    Key("steps", _TOP, {STEPS, EMPTY}),
    Key("answer", _TOP, {STRING, NULL}),
    Key("citations", _TOP, _LISTS),
    Key("model", _TOP, {STRING}),
    Key("pool", _TOP, {STRING}),
    Key("rollout", _TOP, {INTEGER}),
    Key("selected", _TOP, _FLAGS),
    Key("malformed_citations", _TOP, {INTEGER}, _COUNT),
    Key("generated_tokens", _TOP, {INTEGER, NULL}, _COUNT),
    Key("candidates", _TOP, _LISTS),
    Key("query", _IN_STEP, {STRING}),
    Key("retrieved", _IN_STEP, _LISTS),
    Key("valid", _IN_STEP, _FLAGS),
)
KEY = {key.name: number for number, key in enumerate(KEYS)}
LEVEL = np.array([key.level for key in KEYS])

_HEAD = re.compile(rb'([^"\\]*)": ?(.*)', re.DOTALL)
_LITERAL = re.compile(
    rb"(null|true|false|\[\]|-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)(.*)", re.DOTALL
)
_KINDS = {b"null": NULL, b"true": TRUE, b"false": FALSE, b"[]": EMPTY}
_END = {
    b', "': SAME,
    b',"': SAME,
    b'}, {"': NEXT,
    b'},{"': NEXT,
    b'}], "': CLOSES,
    b'}],"': CLOSES,
    b"}\n": ENDS,
    b"}\r\n": ENDS,
    b"}]}\n": CLOSES_AND_ENDS,
    b"}]}\r\n": CLOSES_AND_ENDS,
}
_REMEMBERED = 1 << 16  # numbers make ever new heads
_MOST_KEYS = 256  # a file with more has no fixed set of them

Int64 = NDArray[np.int64]
_Meaning = tuple[int, ...]  # key, kind, end, integer; of a tail, kind and end
_NONE: _Meaning = (0, UNKNOWN, SAME, 0)


class Skeleton:
    """The heads and tails of one file, to be asked by any number of threads.

    Keys have the numbers of `KEYS`, unknown ones those that follow, in the order they are met.
    """

    def __init__(self) -> None:
        self._heads: dict[bytes, _Meaning] = {}
        self._tails: dict[bytes, _Meaning] = {}
        self._names = {key.name.encode(): number for number, key in enumerate(KEYS)}
        self._lock = threading.Lock()

    @property
    def keys(self) -> int:
        """How many keys were met, those of the record included."""
        return len(self._names)

    def heads(self, texts: list[bytes]) -> Int64:
        """Meaning of heads, int64 [4, n]: key, kind, end and integer; kind `UNKNOWN` for none.

        The end of a string or of a list is with its tail, here it is `SAME`.
        """
        return self._meanings(texts, self._heads, self._head, 4)

    def tails(self, texts: list[bytes]) -> Int64:
        """Meaning of tails, int64 [2, n]: kind, which is `STRING`, `LIST` or `UNKNOWN`, and end."""
        return self._meanings(texts, self._tails, _tail, 2)

    def _meanings(
        self,
        texts: list[bytes],
        known: dict[bytes, _Meaning],
        parse: Callable[[bytes], _Meaning],
        width: int,
    ) -> Int64:
        found = []
        for text in texts:
            meaning = known.get(text)
            if meaning is None:
                with self._lock:
                    if len(known) >= _REMEMBERED:
                        known.clear()
                    meaning = known[text] = parse(text)
            found.append(meaning)
        return np.ascontiguousarray(np.array(found, np.int64).reshape(-1, width).T)

    def _head(self, text: bytes) -> _Meaning:
        match = _HEAD.fullmatch(text)
        if match is None:
            return _NONE
        name, rest = match.groups()
        if name not in self._names and self.keys >= _MOST_KEYS:
            return _NONE
        key = self._names.setdefault(name, len(self._names))
        kind, end, number = _value(rest)
        if key < len(KEYS):
            least, most = KEYS[key].bounds
            if kind not in KEYS[key].kinds or not least <= number <= most:
                return _NONE
        elif kind == STEPS:
            return _NONE
        elif kind == INTEGER:
            number = 0
        return key, kind, end, number


def _value(text: bytes) -> tuple[int, int, int]:
    """Kind, end and integer of what follows a colon."""
    if text == b'"':
        return STRING, SAME, 0
    if text == b'["':
        return LIST, SAME, 0
    if text == b'[{"':
        return STEPS, OPENS, 0
    match = _LITERAL.fullmatch(text)
    if match is None or match[4] not in _END:
        return UNKNOWN, SAME, 0
    literal, end = match[1], _END[match[4]]
    if literal in _KINDS:
        return _KINDS[literal], end, 0
    if match[2] or match[3]:
        return (NUMBER if math.isfinite(float(literal)) else UNKNOWN), end, 0
    return (INTEGER, end, int(literal)) if len(literal) < 40 else (UNKNOWN, end, 0)


def _tail(text: bytes) -> _Meaning:
    rest = text[1:]
    kind = LIST if rest[:1] == b"]" else STRING
    end = _END.get(rest[kind == LIST :])
    return (UNKNOWN, SAME) if end is None else (kind, end)
