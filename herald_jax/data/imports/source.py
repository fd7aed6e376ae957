"""The objects of a benchmark file, one at a time, whatever the size of the file.

HotpotQA and 2WikiMultihopQA are published as one JSON array on one line, MuSiQue as JSON Lines, and
mirrors hold each of them either way: the first character tells. An array is read through a window
that slides over the file, so that no more than a megabyte, or one object if that is longer, is held
at a time.
"""

import codecs
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from herald_jax.data.checks import Report, reporter, shown
from herald_jax.data.json_faults import Found, lone_surrogates, nonfinite, object_of
from herald_jax.data.regular import require_regular
from herald_jax.types import Fault

WINDOW_BYTES = 1 << 20
_SPACE = " \t\r\n"
_BOM = codecs.BOM_UTF8
_LITERAL = 16  # characters; no escape or literal that the end of the text can cut is longer
END = "the end of the file"

Entry = tuple[int, Any]
Progress = Callable[[str, int, int], None]  # stage, done, total


def read_objects(
    path: Path | str, faults: list[Fault], progress: Progress | None
) -> Iterator[Entry]:
    """Stream the entries of a JSON array or of a JSON Lines file.

    Args:
        path: the file; faults name it as given.
        faults: gets what is wrong. The line of a fault is the physical line of JSON Lines, and the
            entry, counted from 1, of an array.
        progress: called with the megabytes that were read and their total.

    Yields:
        The number and the value of every entry that could be decoded. After broken syntax the rest
        of an array cannot be told apart, and is not read; of JSON Lines the other lines are.

    Raises:
        OSError: the file cannot be read.
    """
    require_regular(path)
    source = Path(path)
    total = math.ceil(source.stat().st_size / 1e6)
    stage = f"read {source.name} (MB)"
    with source.open("rb") as file:

        def advance() -> None:
            if progress is not None:
                progress(stage, min(total, math.ceil(file.tell() / 1e6)), total)

        is_array = file.peek(4096).removeprefix(_BOM).lstrip()[:1] == b"["
        entries = _array if is_array else _lines
        yield from entries(file, str(path), faults, advance)
        if progress is not None:
            progress(stage, total, total)


def _lines(
    file: BinaryIO, name: str, faults: list[Fault], advance: Callable[[], None]
) -> Iterator[Entry]:
    decoder = _Decoder()
    told = 0
    for number, line in enumerate(file, 1):
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", "surrogateescape").strip(_SPACE)
        if not text:
            continue
        report = reporter(name, number, faults)
        try:
            value, end = decoder.decode(text, 0)
        except ValueError as error:
            report("", "bad_json", "one JSON object", str(error), "complete or remove the line")
            continue
        if end < len(text):
            remedy = "begin a new line for each object"
            report("", "bad_json", "one JSON object a line", f"more: {shown(text[end:])}", remedy)
        elif decoder.is_whole(value, text, report):
            yield number, value
        told += len(line)
        if told >= WINDOW_BYTES:
            told = 0
            advance()


def _array(
    file: BinaryIO, name: str, faults: list[Fault], advance: Callable[[], None]
) -> Iterator[Entry]:
    decoder = _Decoder()
    window = _Window(file, advance)
    window.take_mark("[")
    number = 0
    remedy = "complete the file; what follows in it was not checked"
    closed = window.take_mark("]")
    while not closed:
        number += 1
        report = reporter(name, number, faults)
        try:
            value, text = window.take_value(decoder)
        except ValueError as error:
            report("", "bad_json", "one JSON object", str(error), remedy)
            return
        if decoder.is_whole(value, text, report):
            yield number, value
        closed = window.take_mark("]")
        if not closed and not window.take_mark(","):
            got = shown(window.next_mark()) if window.next_mark() else END
            report("", "bad_json", "a comma or ] after the entry", got, remedy)
            return
    if mark := window.next_mark():
        report = reporter(name, 0, faults)
        remedy = "keep one array a file, or write JSON Lines"
        report("", "bad_json", "nothing after the array", shown(mark), remedy)


class _Window:
    """The part of a file that is looked at."""

    def __init__(self, file: BinaryIO, advance: Callable[[], None]):
        self._file = file
        self._advance = advance
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text = ""
        self._at = 0
        self._ended = False

    def _extend(self) -> None:
        """Forget what was taken and read on, at least as much as is held.

        So an object longer than the window is scanned again only after it has doubled.
        """
        rest = self._text[self._at :]
        block = self._file.read(max(WINDOW_BYTES, len(rest)))
        self._text = rest + self._utf8.decode(block, final=not block)
        self._at = 0
        self._ended = not block
        self._advance()

    def next_mark(self) -> str:
        """The next character that is not white space, "" at the end of the file."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if self._ended:
                return ""
            self._extend()

    def take_mark(self, mark: str) -> bool:
        """Step over the next character if it is this one."""
        if self.next_mark() != mark:
            return False
        self._at += 1
        return True

    def take_value(self, decoder: "_Decoder") -> tuple[Any, str]:
        """The next value and its text.

        Raises:
            ValueError: there is none.
        """
        if not self.next_mark():
            raise ValueError(END)
        while True:
            try:
                value, end = decoder.decode(self._text, self._at)
            except CutOffError:
                if self._ended:
                    raise
            else:
                if end < len(self._text) or self._ended:  # else a number may go on
                    text = self._text[self._at : end]
                    self._at = end
                    return value, text
            self._extend()


class CutOffError(ValueError):
    """The text ended within a value."""


class _Decoder:
    """Decodes JSON values and keeps what `json` by itself lets pass."""

    def __init__(self) -> None:
        self._found: list[Found] = []
        self._json = json.JSONDecoder(object_pairs_hook=self._object, parse_constant=self._constant)

    def decode(self, text: str, at: int) -> tuple[Any, int]:
        """The value that begins at a position, and where it ends.

        Raises:
            CutOffError: the text may be the beginning of a value.
            ValueError: it is none.
        """
        self._found.clear()
        try:
            return self._json.raw_decode(text, at)
        except json.JSONDecodeError as error:
            problem = f"{error.msg} at character {error.pos - at + 1} of it"
            in_string = error.msg.startswith("Unterminated string")
            if in_string or error.pos > len(text) - _LITERAL:
                raise CutOffError(problem) from error
            raise ValueError(problem) from error
        except RecursionError as error:
            raise ValueError("too many nested brackets") from error

    def is_whole(self, value: Any, text: str, report: Report) -> bool:
        """Report what is wrong with the value decoded last, whose text this is."""
        for fault in self._found:
            report(*fault)
        sound = not self._found
        try:
            text.encode()
        except UnicodeEncodeError as error:
            got = (
                f"byte 0x{ord(text[error.start]) - 0xDC00:02x} at character {error.start + 1} of it"
            )
            report("", "not_utf8", "UTF-8 text", got, "save the file as UTF-8")
            return False
        if "\\ud" in text or "\\uD" in text:
            for fault in lone_surrogates(value):
                report(*fault)
                sound = False
        return sound

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found, repeated = object_of(pairs)
        self._found += repeated
        return found

    def _constant(self, literal: str) -> float:
        self._found.append(nonfinite(literal))
        return math.nan
