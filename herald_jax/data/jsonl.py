"""JSON Lines, read to the letter and fast (SPEC section 1).

A file is UTF-8 bytes: one leading byte order mark is skipped, a record ends at a line feed and at
nothing else, blank lines are counted and skipped. A line that repeats a key, holds a number that
is not finite, an unpaired surrogate, bytes that are not UTF-8 or no JSON object is rejected with
its number, and every other line still loads.

Blocks of lines take a fast way and, where that is not certain to be right, an exact one, line by
line. The fast way decodes with msgspec, which is strict but silently keeps the last of two equal
keys. A count of colons shows it: each key has one, strings keep theirs, and so the decoded block,
written again, has as many as the block itself unless a key was dropped. Only a colon that is
written as an escape would upset the count, and such a block takes the exact way.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

import msgspec
import numpy as np

from herald_jax.data.checks import Digits, convert_all, read_object, reporter
from herald_jax.data.json_faults import lone_surrogates, nonfinite, object_of
from herald_jax.data.sources import open_input
from herald_jax.types import Fault

R = TypeVar("R", bound=msgspec.Struct)

BLOCK_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_ESCAPED_COLONS = (rb"\u003a", rb"\u003A")
_INT_DIGITS = 4300  # more than these, and `int` refuses the literal

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Batch(msgspec.Struct, Generic[R]):
    """What one stretch of a file held."""

    records: list[R]
    lines: list[int]  # line, or row, of each record, from 1
    faults: list[Fault]
    rows: int  # rows read, rejected ones included


def read_jsonl(
    path: Path | str, kind: type[R], *, block_bytes: int = BLOCK_BYTES
) -> Iterator[Batch[R]]:
    """Stream the records of a JSON Lines file.

    Args:
        path: the file; faults name it as given.
        kind: class of the records.
        block_bytes: bytes that are read at a time, or one line if that is longer.

    Yields:
        Batches in the order of the file. A line with a fault has no record; all its faults are
        listed.

    Raises:
        OSError: the file cannot be read.
    """
    number = 0
    with open_input(path) as file:
        without_bom(file)
        while block := file.readlines(block_bytes):
            yield read_lines(str(path), not_blank(list(enumerate(block, number + 1))), kind)
            number += len(block)


def not_blank(lines: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The lines of which there is more than white space."""
    return [(at, line) for at, line in lines if line.strip(_BLANK)]


def first_keys(path: Path | str) -> set[str]:
    """Keys of the first line that holds an object; empty when there is none.

    Raises:
        OSError: the file cannot be read.
    """
    with open_input(path) as file:
        for line in without_bom(file):
            value = _decode_line(line, str(path), 0, [])
            if isinstance(value, dict):
                return set(value)
    return set()


def write_jsonl(path: Path | str, records: Iterable[msgspec.Struct]) -> None:
    """Write records, one object a line, every field spelled out."""
    with Path(path).open("wb") as file:
        for record in records:
            file.write(_encode(record) + b"\n")


def without_bom(file: IO[bytes]) -> IO[bytes]:
    """A file at its start, moved behind its byte order mark."""
    if file.read(3) != _BOM:
        file.seek(0)
    return file


def read_lines(file: str, lines: list[tuple[int, bytes]], kind: type[R]) -> Batch[R]:
    """The records of numbered lines, none of them blank."""
    batch: Batch[R] = Batch([], [], [], len(lines))
    objects = decode_surely([line for _, line in lines])
    if objects is not None:
        records = convert_all(objects, kind)
        if records is not None:
            return Batch(records, [at for at, _ in lines], [], len(lines))
    for row, (at, line) in enumerate(lines):
        report = reporter(file, at, batch.faults)
        before = len(batch.faults)
        value = _decode_line(line, file, at, batch.faults) if objects is None else objects[row]
        if len(batch.faults) == before:
            record = read_object(value, kind, report)
            if record is not None:
                batch.records.append(record)
                batch.lines.append(at)
    return batch


def decode_surely(lines: list[bytes], decode: Callable[[bytes], Any] = _decode) -> list[Any] | None:
    """The values of the lines when it is certain that they are right, else None.

    Args:
        lines: JSON, a value each.
        decode: makes of each what holds all its keys and values, and can be written again.
    """
    raw = b"".join(lines)
    if b"\\" in raw and any(escape in raw for escape in _ESCAPED_COLONS):
        return None
    try:
        objects = [decode(line) for line in lines]
        written = _encode(objects)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return objects if _colons(raw) == _colons(written) else None


def _colons(text: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(":")))


def _decode_line(line: bytes, file: str, at: int, faults: list[Fault]) -> Any:
    """The value of one line, exactly; appends its faults."""
    fast = decode_surely([line])
    if fast is not None:
        return fast[0]
    report = reporter(file, at, faults)
    try:
        text = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        got = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        report("", "not_utf8", "UTF-8 text", got, "save the file as UTF-8")
        return None

    def whole(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found, repeated = object_of(pairs)
        for fault in repeated:
            report(*fault)
        return found

    def number(literal: str) -> float:
        value = float(literal)
        if not math.isfinite(value):
            report(*nonfinite(literal))
        return value

    def integer(literal: str) -> int | Digits:
        if literal == "-0":
            return 0
        return int(literal) if len(literal) < _INT_DIGITS else Digits(literal)

    try:
        value = json.loads(
            text,
            object_pairs_hook=whole,
            parse_float=number,
            parse_constant=number,
            parse_int=integer,
        )
        for fault in lone_surrogates(value):
            report(*fault)
    except json.JSONDecodeError as error:
        got = f"{error.msg}: column {error.colno}"
        report("", "bad_json", "one JSON object", got, "complete or remove the line")
        return None
    except RecursionError:
        report("", "bad_json", "one JSON object", "too many nested brackets", "flatten the value")
        return None
    return value
