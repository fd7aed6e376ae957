"""From a decoded object to a record, naming everything that is wrong with it.

msgspec stops at the first mismatch and knows nothing of ids that are integers, so a row that it
does not take at once is read here instead. The checks are built from the fields of the records
themselves: there is one schema.
"""

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import inspect

from herald_jax.data.integer_ids import integer_ids_as_text
from herald_jax.types import Fault

R = TypeVar("R", bound=msgspec.Struct)
Report = Callable[[str, str, str, str, str], None]  # field, code, expected, got, remedy
_BROKEN: Any = object()  # a value that was reported and cannot be used


Path = tuple[str | int, ...]


class Read(Protocol):
    """Reads one value at a field path; reports faults and then returns `_BROKEN`."""

    def __call__(self, value: Any, path: Path, report: Report) -> Any:
        """Return the value as the record keeps it."""


class Digits(str):
    """An integer literal with more digits than `int` reads by default."""


def shown(value: object) -> str:
    """A value as JSON, shortened for a message; a number that JSON has not, by its name."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    try:
        text = msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def dotted(path: Path) -> str:
    """A path as people write it: `steps[2].query`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def reporter(file: str, line: int, faults: list[Fault]) -> Report:
    """A `Report` that files faults of one line of one file."""

    def report(field: str, code: str, expected: str, got: str, remedy: str) -> None:
        field = field.encode("utf-8", "backslashreplace").decode()  # keys may be broken text too
        faults.append(Fault(file, line, field, code, expected, got, remedy))

    return report


def _read_id(value: Any, path: Path, report: Report) -> Any:
    kind = type(value)
    if kind is str:
        return value
    if kind is int or kind is Digits:
        return str(value)
    if kind is float:
        remedy = "write the id as a string; a number with a fraction or exponent is no exact id"
        report(dotted(path), "bad_id", "a string or an integer", shown(value), remedy)
    elif kind is bool:
        remedy = "write the id as a string; true and false are no ids"
        report(dotted(path), "bad_id", "a string or an integer", shown(value), remedy)
    else:
        report(
            dotted(path), "wrong_type", "a string or an integer", shown(value), "write an id here"
        )
    return _BROKEN


def _scalar(kind: type, expected: str) -> Read:
    def read(value: Any, path: Path, report: Report) -> Any:
        if type(value) is kind:
            return value
        report(dotted(path), "wrong_type", expected, shown(value), "correct the value, or its type")
        return _BROKEN

    return read


def _integer(least: int, most: int) -> Read:
    def read(value: Any, path: Path, report: Report) -> Any:
        if type(value) is int and least <= value <= most:
            return value
        expected = f"an integer from {least} to {most}"
        report(dotted(path), "wrong_type", expected, shown(value), "correct the value, or its type")
        return _BROKEN

    return read


def _list(item: Read, bare_is_one: bool) -> Read:
    def read(value: Any, path: Path, report: Report) -> Any:
        if bare_is_one and type(value) is str:
            return [value]
        if type(value) is not list:
            report(dotted(path), "wrong_type", "a list", shown(value), "write a list, [] for none")
            return _BROKEN
        if item is _read_id and set(map(type, value)) <= {str, int}:
            return list(map(str, value))
        items = [item(entry, (*path, at), report) for at, entry in enumerate(value)]
        return _BROKEN if any(entry is _BROKEN for entry in items) else items

    return read


def _optional(inner: Read) -> Read:
    def read(value: Any, path: Path, report: Report) -> Any:
        return None if value is None else inner(value, path, report)

    return read


def _struct(kind: inspect.StructType, null_is_missing: bool) -> Read:
    fields = [
        (field.encode_name, _read(field.type, null_is_missing), field) for field in kind.fields
    ]

    def read(value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            remedy = "write one object with the keys of this kind of record"
            report(dotted(path), "wrong_type", "an object", shown(value), remedy)
            return _BROKEN
        found = {}
        broken = False
        for name, read_field, field in fields:
            if name not in value:
                if field.required:
                    remedy = "add the key" + (", null for none" if _nullable(field.type) else "")
                    place = dotted((*path, name))
                    report(place, "missing_field", f"the key {name}", "no such key", remedy)
                    broken = True
            elif not (null_is_missing and value[name] is None and not field.required):
                found[name] = read_field(value[name], (*path, name), report)
                broken |= found[name] is _BROKEN
        return _BROKEN if broken else kind.cls(**found)

    return read


def _nullable(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.UnionType) and kind.includes_none


def _read(kind: inspect.Type, null_is_missing: bool, reads: str = "") -> Read:
    match kind:
        case inspect.Metadata(type=inner, extra=extra):
            return _read(inner, null_is_missing, (extra or {}).get("reads", ""))
        case inspect.UnionType(types=(inner, inspect.NoneType())):
            return _optional(_read(inner, null_is_missing))
        case inspect.ListType(item_type=item):
            return _list(_read(item, null_is_missing), reads == "golds")
        case inspect.StructType():
            return _struct(kind, null_is_missing)
        case inspect.StrType():
            return _read_id if reads == "id" else _scalar(str, "a string")
        case inspect.BoolType():
            return _scalar(bool, "true or false")
        case inspect.IntType(ge=int(least), le=int(most)):
            return _integer(least, most)
    raise TypeError(f"records have no field of type {kind}")


@cache
def _reader(kind: type[msgspec.Struct], null_is_missing: bool) -> Read:
    return _read(inspect.type_info(kind), null_is_missing)


def convert_all(objects: list[Any], kind: type[R]) -> list[R] | None:
    """Records of decoded objects, or None when not all of them can be taken at once.

    Integer ids in the objects become text.
    """
    # A type made as the program runs, which msgspec takes and mypy cannot know.
    records = list[kind]  # type: ignore[valid-type]
    try:
        return msgspec.convert(objects, records)
    except msgspec.ValidationError:
        integer_ids_as_text(objects, kind)
    try:
        return msgspec.convert(objects, records)
    except msgspec.ValidationError:
        return None


def read_object(
    value: object, kind: type[R], report: Report, *, null_is_missing: bool = False
) -> R | None:
    """Check one decoded object and make a record of it.

    Args:
        value: what the line or row holds.
        kind: class of the record.
        report: called once for each fault.
        null_is_missing: whether null in an optional field is the same as leaving it out; so in
            Parquet, which has no other way to leave a field out.

    Returns:
        The record, or None when a fault was reported.
    """
    record = _reader(kind, null_is_missing)(value, (), report)
    return None if record is _BROKEN else record
