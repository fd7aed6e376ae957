"""JSON Lines of trajectories as flat columns, without a Python object a row.

The quotes of a block cut it into strings and what stands between them. Every distinct piece of the
latter is parsed once (`json_skeleton`), and what it means is looked up by its number; the strings
themselves are copied into columns as they lie. A line is taken only when all of it is accounted
for: each byte belongs to a string or to a piece of known meaning, the pieces follow upon each other
as the grammar has it, no key comes twice in an object and none that is required is missing. Any
other line is named, to be read in another way.

Axis letters: L lines, S strings in them, K of these that are keys.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from herald_jax.data.flat import Flat
from herald_jax.data.json_skeleton import (
    CLOSES_AND_ENDS,
    ENDS,
    GIVES,
    KEY,
    KEYS,
    LEVEL,
    LIST,
    NEEDS,
    NEXT,
    NULL,
    OPENS,
    SAME,
    STRING,
    TRUE,
    UNKNOWN,
    Skeleton,
)
from herald_jax.data.string_lists import StringLists, spread, starts

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

_NEWLINE, _RETURN, _SPACE, _QUOTE, _COLON, _COMMA, _BACKSLASH, _BRACE = b'\n\r ":,\\{'
_REQUIRED = [KEY[name] for name in ("trajectory_id", "question_id", "question", "steps", "answer")]

_decode_string = msgspec.json.Decoder(str).decode


def read_columns(
    raw: bytes, first: int, skeleton: Skeleton
) -> tuple[Flat, list[tuple[int, bytes]]]:
    """Read a block of lines.

    Args:
        raw: whole lines, each ended by a line feed.
        first: number of the first line.
        skeleton: what is known of the file.

    Returns:
        The lines that were taken, and all others with their numbers, blank ones included.
    """
    block = _Block(raw)
    keys = block.keys(skeleton)
    taken = _columns(block, keys, first)
    ends = (block.newline + 1).tolist()
    others = [
        (first + at, raw[ends[at - 1] if at else 0 : ends[at]])
        for at in np.flatnonzero(block.bad).tolist()
    ]
    return taken, others


@dataclass(frozen=True, eq=False)
class _Keys:
    """Keys of the lines that are good, in order.

    Attributes:
        string: int64 [K] its place among the strings.
        line: int64 [K].
        key: int64 [K] its number in the skeleton.
        kind: int64 [K] what its value is.
        number: int64 [K] the value, if it is an integer.
        strings: int64 [K] how many strings the value has.
        step: int64 [K] the step it is in, or was opened before it.
        opens: bool [K] whether it is the first key of a step.
    """

    string: Int64
    line: Int64
    key: Int64
    kind: Int64
    number: Int64
    strings: Int64
    step: Int64
    opens: Bool

    @cached_property
    def _by_key(self) -> tuple[Int64, Int64]:
        """Places in the order of their keys, and where each key of the record begins in it."""
        key = self.key.astype(np.uint16)  # sorted by radix
        order = np.argsort(key, kind="stable")
        return order, np.searchsorted(key[order], np.arange(len(KEYS) + 1))

    def of(self, name: str) -> Int64:
        """Where a key of the record comes."""
        order, begins = self._by_key
        return order[begins[KEY[name]] : begins[KEY[name] + 1]]


class _Block:
    """The strings of a block; `bad`, bool [L], are the lines that cannot be taken."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.data: Bytes = np.frombuffer(raw, np.uint8)
        self.newline = np.flatnonzero(self.data == _NEWLINE)
        self.lines = len(self.newline)
        self.bad = np.zeros(self.lines, bool)
        control = self.data < _SPACE
        if np.count_nonzero(control) > self.lines:
            others = np.flatnonzero(control & (self.data != _NEWLINE))
            ends = (self.data[others] == _RETURN) & (self.data[others + 1] == _NEWLINE)
            self._refuse(others[~ends])
        if not _is_utf8(raw):
            self.bad |= [not _is_utf8(line) for line in raw.split(b"\n")[:-1]]
        self._find_strings()

    def _refuse(self, places: Int64) -> None:
        """Take no line that has a byte at one of these places."""
        self.bad[np.searchsorted(self.newline, places)] = True

    def _find_strings(self) -> None:
        quotes = self._quotes()
        begins = np.concatenate([[0], self.newline[:-1] + 1]) if self.lines else self.newline
        counts = np.diff(np.searchsorted(quotes, np.append(begins, len(self.data))))
        self.bad |= (counts % 2 == 1) | (counts == 0) | (self.data[begins] != _BRACE)
        if self.bad.any():
            quotes = quotes[~np.repeat(self.bad, counts)]
            counts[self.bad] = 0
        begin, end = quotes[0::2] + 1, quotes[1::2].copy()
        line = np.repeat(np.arange(self.lines), counts // 2)
        is_key = self.data[end + 1] == _COLON
        at = np.cumsum(counts // 2) - counts // 2
        some = counts > 0
        at, begins = at[some], begins[some]
        odd = (begin[at] != begins + 2) | ~is_key[at]
        behind = np.append(begin[1:], 0)
        lasts = np.append(at[1:], len(begin))[: len(at)] - 1
        behind[lasts] = self.newline[line[lasts]] + 1
        if odd.any():
            self.bad[line[at[odd]]] = True
            kept = ~self.bad[line]
            begin, end, line = begin[kept], end[kept], line[kept]
            is_key, behind = is_key[kept], behind[kept]
        self.begin, self.end, self.line = begin, end, line  # int64 [S] each
        self.is_key = is_key  # bool [S]
        self.behind = behind  # int64 [S] behind the quote of the next string, or behind the line

    def _quotes(self) -> Int64:
        """Places of the quotes that begin and end strings."""
        quotes = np.flatnonzero(self.data == _QUOTE)
        if b"\\" not in self.raw:
            return quotes
        slashes = np.zeros(len(quotes), np.int64)  # in a row before the quote
        at, distance = np.arange(len(quotes)), 1
        while len(at):
            at = at[self.data[quotes[at] - distance] == _BACKSLASH]
            slashes[at] += 1
            distance += 1
        return quotes[slashes % 2 == 0]

    def texts(self, begin: Int64, end: Int64, kind: pa.DataType) -> pa.Array:
        """Parts of the block that follow upon each other, copied."""
        offsets = np.empty(2 * len(begin), np.int32)
        offsets[0::2], offsets[1::2] = begin, end
        cut = pa.Array.from_buffers(
            kind,
            max(len(offsets) - 1, 0),
            [None, pa.py_buffer(offsets), pa.py_buffer(self.raw)],
        )
        return cut.take(pa.array(np.arange(0, len(offsets), 2)))

    def keys(self, skeleton: Skeleton) -> _Keys:
        """The keys; refuses every line whose pieces do not make a trajectory."""
        string = np.flatnonzero(self.is_key)
        line = self.line[string]
        strings = np.diff(np.append(string, len(self.begin))) - 1
        self._check_lists()

        texts = self.texts(self.begin[string], self.behind[string], pa.binary())
        key, kind, end, number = _looked_up(texts, skeleton.heads)
        some = np.flatnonzero(strings)
        last = string[some] + strings[some]
        texts = self.texts(self.end[last], self.behind[last], pa.binary())
        kind_of_tail, end_of_tail = _looked_up(texts, skeleton.tails)
        has_strings = (kind == STRING) | (kind == LIST)
        fine = (kind != UNKNOWN) & (has_strings == (strings > 0))
        fine &= (kind != STRING) | (strings == 1)
        fine[some] &= kind[some] == kind_of_tail
        end[some] = end_of_tail

        first = np.diff(line, prepend=-1) > 0
        before = np.append(SAME, end[:-1])
        settled = first | (before != SAME)
        levels = np.where(first, 0, GIVES[before])
        level = levels[np.maximum.accumulate(np.where(settled, np.arange(len(end)), 0))]
        is_last = np.append(first[1:], True)[: len(first)]
        fine &= is_last == ((end == ENDS) | (end == CLOSES_AND_ENDS))
        fine &= (NEEDS[end] < 0) | (NEEDS[end] == level)
        known = key < len(KEYS)
        fine[known] &= LEVEL[key[known]] == level[known]
        self.bad[line[~fine]] = True

        opens = ~first & ((before == OPENS) | (before == NEXT))
        step = np.cumsum(opens) - 1
        self._check_counts(line, key, level, step, skeleton.keys)
        self._decode_escapes()
        if self.bad.any():
            good = ~self.bad[line]
            string, line, key, kind = string[good], line[good], key[good], kind[good]
            number, strings, opens = number[good], strings[good], opens[good]
            step = np.cumsum(opens) - 1
        return _Keys(string, line, key, kind, number, strings, step, opens)

    def _check_lists(self) -> None:
        """Refuse lines in which two strings follow upon each other but by a comma."""
        value = ~self.is_key
        at = np.flatnonzero(value[:-1] & value[1:])
        gaps = (self.begin[1:] - self.end[:-1])[at]
        end = self.end[at]
        fine = (gaps == 4) & (self.data[end + 2] == _SPACE) | (gaps == 3)
        fine &= self.data[end + 1] == _COMMA
        if not fine.all():
            self.bad[self.line[at[~fine]]] = True

    def _check_counts(
        self, line: Int64, key: Int64, level: Int64, step: Int64, n_keys: int
    ) -> None:
        """Refuse lines in which a key comes twice in an object, or one that is required is not."""
        top = level == 0
        counts = np.bincount(line[top] * n_keys + key[top], minlength=self.lines * n_keys)
        counts = counts.reshape(self.lines, n_keys)
        self.bad |= (counts.max(axis=1, initial=0) > 1) | (counts[:, _REQUIRED] != 1).any(axis=1)
        inside = np.flatnonzero((level == 1) & (step >= 0))
        if len(inside):
            steps = int(step[-1]) + 1
            places = step[inside] * n_keys + key[inside]
            counts = np.bincount(places, minlength=steps * n_keys).reshape(steps, n_keys)
            odd = (counts.max(axis=1) > 1) | (counts[:, KEY["query"]] != 1)
            self.bad[line[inside[odd[step[inside]]]]] = True

    def _decode_escapes(self) -> None:
        """Read the strings with a backslash; refuse lines in which one is not right."""
        self.decoded: dict[int, str] = {}
        if b"\\" not in self.raw:
            return
        slashes = np.flatnonzero(self.data == _BACKSLASH)
        at = np.unique(np.searchsorted(self.begin, slashes, side="right") - 1)
        for string in at[at >= 0].tolist():
            begin, end = int(self.begin[string]), int(self.end[string])
            try:
                self.decoded[string] = _decode_string(self.raw[begin - 1 : end + 1])
            except (msgspec.MsgspecError, ValueError):
                self.bad[self.line[string]] = True

    def values(self, strings: Int64) -> pa.Array:
        """Strings by their places, ascending."""
        found = self.texts(self.begin[strings], self.end[strings], pa.string())
        if self.decoded:
            escaped = np.isin(strings, list(self.decoded))
            if escaped.any():
                texts = [self.decoded[at] for at in strings[escaped].tolist()]
                found = pc.replace_with_mask(found, pa.array(escaped), pa.array(texts, pa.string()))
        return found


def _is_utf8(text: bytes) -> bool:
    """Arrow checks it faster than `decode`."""
    ends = pa.py_buffer(np.array([0, len(text)], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(text)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _looked_up(texts: pa.Array, meanings: Callable[[list[bytes]], Int64]) -> list[Int64]:
    """The fields of the meaning of each text, int64 [n] each, worked out for distinct texts."""
    found = texts.dictionary_encode()
    table = meanings(found.dictionary.to_pylist())
    codes = found.indices.to_numpy()
    return [row[codes] for row in table]


def _columns(block: _Block, keys: _Keys, first: int) -> Flat:
    good = np.flatnonzero(~block.bad)
    n, steps = len(good), int(np.count_nonzero(keys.opens))
    row_of_line = np.cumsum(~block.bad) - 1
    row = row_of_line[keys.line]

    def text(name: str) -> pa.Array:
        """Strings of a key that every row or step has."""
        return block.values(keys.string[keys.of(name)] + 1)

    def optional(name: str) -> pa.Array:
        """Strings [n] of a key, null where it is null or not there."""
        at = keys.of(name)
        at = at[keys.kind[at] == STRING]
        places = np.full(n, -1)
        places[row[at]] = np.arange(len(at))
        return block.values(keys.string[at] + 1).take(pa.array(places, mask=places < 0))

    def integers(name: str) -> Int64:
        at = keys.of(name)
        out = np.zeros(n, np.int64)
        out[row[at]] = keys.number[at]
        return out

    def flags(name: str, of: Int64, length: int, default: bool) -> Bool:
        at = keys.of(name)
        out = np.full(length, default)
        out[of[at]] = keys.kind[at] == TRUE
        return out

    def lists(name: str, of: Int64, length: int) -> StringLists:
        at = keys.of(name)
        lengths, logged = np.zeros(length, np.int64), np.zeros(length, bool)
        lengths[of[at]] = keys.strings[at]
        logged[of[at]] = keys.kind[at] != NULL
        strings = spread(keys.string[at] + 1, keys.strings[at])
        return StringLists(block.values(strings), starts(lengths), logged)

    return Flat(
        line=good + first,
        trajectory_id=text("trajectory_id"),
        question_id=text("question_id"),
        question=text("question"),
        answer=optional("answer"),
        model=optional("model").fill_null(""),
        pool=optional("pool").fill_null(""),
        rollout=integers("rollout"),
        selected=flags("selected", row, n, False),
        malformed=integers("malformed_citations").astype(np.int32),
        steps=starts(np.bincount(row[keys.opens], minlength=n)),
        query=text("query"),
        valid=flags("valid", keys.step, steps, True),
        retrieved=lists("retrieved", keys.step, steps),
        citations=lists("citations", row, n),
        candidates=lists("candidates", row, n),
    )
