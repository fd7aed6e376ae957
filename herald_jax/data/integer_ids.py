"""Ids that a file writes as integers, turned into their digits before anything looks at them.

Integer ids are common and `msgspec` would refuse them for strings. Decoded objects are rewritten
in place, at a fraction of what reading them field by field costs (`checks.read_object`); anything
but strings and whole integers is left as it is, for the checks to find.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

Rewrite = Callable[[Any], Any]
_EXACT = {str, int}


def integer_ids_as_text(objects: list[Any], kind: type[msgspec.Struct]) -> None:
    """Replace every integer where `kind` has an id by its decimal digits, in place."""
    rewrite = _rewriter(kind)
    for value in objects:
        rewrite(value)


@cache
def _rewriter(kind: type[msgspec.Struct]) -> Rewrite:
    rewrite = _rewrite(inspect.type_info(kind), is_id=False)
    if rewrite is None:
        raise TypeError(f"{kind.__name__} has no ids")
    return rewrite


def _rewrite(kind: inspect.Type, is_id: bool) -> Rewrite | None:
    """What to do with a value of this type; None when there is no id in it."""
    match kind:
        case inspect.Metadata(type=inner, extra=extra):
            return _rewrite(inner, (extra or {}).get("reads") == "id")
        case inspect.UnionType(types=(inner, inspect.NoneType())):
            return _rewrite(inner, is_id)
        case inspect.StrType() if is_id:
            return _one
        case inspect.ListType(item_type=item):
            inside = _rewrite(item, is_id=False)
            return _all if inside is _one else inside and _each(inside)
        case inspect.StructType(fields=fields):
            found = [(field.encode_name, _rewrite(field.type, is_id=False)) for field in fields]
            return _fields([(name, inside) for name, inside in found if inside])
    return None


def _one(value: Any) -> Any:
    return str(value) if type(value) is int else value


def _all(value: Any) -> Any:
    exact = type(value) is list and set(map(type, value)) <= _EXACT
    return list(map(str, value)) if exact else value


def _each(rewrite: Rewrite) -> Rewrite:
    def inside(value: Any) -> Any:
        return [rewrite(item) for item in value] if type(value) is list else value

    return inside


def _fields(fields: list[tuple[str, Rewrite]]) -> Rewrite:
    def inside(value: Any) -> Any:
        if type(value) is dict:
            for name, rewrite in fields:
                if name in value:
                    value[name] = rewrite(value[name])
        return value

    return inside
