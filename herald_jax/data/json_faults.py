"""What decoders of JSON let pass without a word, and these formats do not (SPEC section 1)."""

from collections.abc import Iterator
from typing import Any

Found = tuple[str, str, str, str, str]  # field, code, expected, got, remedy: of a `Report`


def object_of(pairs: list[tuple[str, Any]]) -> tuple[dict[str, Any], list[Found]]:
    """The object of these keys and values, and one fault for each key that comes again."""
    found = dict(pairs)
    if len(found) == len(pairs):
        return found, []
    names = [name for name, _ in pairs]
    remedy = "keep the one that is meant"
    return found, [
        (name, "duplicate_key", "each key once", f"{count} times", remedy)
        for name in found
        if (count := names.count(name)) > 1
    ]


def nonfinite(literal: str) -> Found:
    """The fault of a number that is not finite, such as NaN."""
    remedy = "write null, or leave the key out"
    return "", "nonfinite_number", "a finite number", literal[:60], remedy


def lone_surrogates(value: Any) -> list[Found]:
    """One fault for each string, or key, of a decoded value that holds half a character."""
    remedy = "write the whole character, or replace the broken half by U+FFFD"
    return [
        (path, "lone_surrogate", "whole characters", ascii(string)[:60], remedy)
        for path, string in _strings(value, "")
        if any("\ud800" <= char <= "\udfff" for char in string)
    ]


def _strings(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, entry in value.items():
            place = f"{path}.{name}" if path else name
            yield place, name
            yield from _strings(entry, place)
    elif isinstance(value, list):
        for at, entry in enumerate(value):
            yield from _strings(entry, f"{path}[{at}]")
