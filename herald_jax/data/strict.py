"""Records decoded in one go, with every key of every line accounted for.

Typed decoding is several times as fast as decoding to dicts and checking these, but it passes over
keys that it does not know, fills in those that are missing and keeps the last of two equal ones.
So records are decoded into classes of their own, made from the record's: a key that is not there
stays `UNSET`, one that is not known is refused, and an id may be an integer. What was decoded,
written again, then has as many colons as the lines, unless a key was there twice (`jsonl`).
Keys that a file has beside those of the record become fields too, when they are first met.
"""

from types import UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from herald_jax.data.jsonl import decode_surely

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T")
Kind = type[msgspec.Struct]

_MOST_EXTRAS = 256  # a file with more keys of its own than these has no fixed set of them


class StrictLines(Generic[R]):
    """Decodes the lines of one file.

    Args:
        kind: class of the records.
    """

    def __init__(self, kind: type[R]) -> None:
        self._kind = kind
        self._extras: dict[Kind, set[str]] = {}
        self._decode = _decoder(kind, self._extras)

    def decode(self, lines: list[bytes]) -> list[Any] | None:
        """Objects with the fields of the record, `UNSET` where a line does not have the key.

        Returns:
            One object a line, ids as strings or integers; None when any line may hold a fault.
        """
        found = decode_surely(lines, self._decode)
        if found is None and self._learns(lines):
            found = decode_surely(lines, self._decode)
        return found

    def _learns(self, lines: list[bytes]) -> bool:
        """Whether these lines have keys that were not met before."""
        before = sum(map(len, self._extras.values()))
        if before < _MOST_EXTRAS:
            _collect(decode_surely(lines) or [], self._kind, self._extras)
        if sum(map(len, self._extras.values())) == before:
            return False
        self._decode = _decoder(self._kind, self._extras)
        return True


def given(value: T | UnsetType, default: T) -> T:
    """The value of a key, or what stands for one that is not there."""
    return default if value is UNSET else value


def _decoder(kind: Kind, extras: dict[Kind, set[str]]) -> Any:
    return msgspec.json.Decoder(_strict(kind, extras)).decode


def _strict(kind: Kind, extras: dict[Kind, set[str]]) -> Kind:
    fields: list[Any] = []
    for field in msgspec.structs.fields(kind):
        annotation = _strict_type(field.type, extras)
        if field.required:
            fields.append((field.name, annotation))
        else:
            fields.append((field.name, Union[annotation, UnsetType], UNSET))  # noqa: UP007
    names = {f"extra_{at}": name for at, name in enumerate(sorted(extras.get(kind, ())))}
    fields += [(name, Any, UNSET) for name in names]
    return msgspec.defstruct(
        kind.__name__, fields, rename=names, forbid_unknown_fields=True, gc=False
    )


# Types are put together here from annotations as values: `Union[...]`, since `|` has no operands to
# write down, and `list[...]` of what a call gives, which mypy cannot read.
def _strict_type(annotation: Any, extras: dict[Kind, set[str]]) -> Any:
    if get_origin(annotation) is Annotated:
        is_id = any((meta.extra or {}).get("reads") == "id" for meta in annotation.__metadata__)
        return str | int if is_id else annotation
    if get_origin(annotation) in (Union, UnionType):
        return Union[tuple(_strict_type(one, extras) for one in get_args(annotation))]  # noqa: UP007
    if get_origin(annotation) is list:
        return list[_strict_type(get_args(annotation)[0], extras)]  # type: ignore[misc]
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return _strict(annotation, extras)
    return annotation


def _can_be_a_field(key: str) -> bool:
    """Whether `msgspec` takes a key for a field's name: none that JSON has to escape."""
    return not any(character in '"\\' or character < " " for character in key)


def _collect(objects: list[Any], kind: Kind, extras: dict[Kind, set[str]]) -> None:
    """Add the keys of decoded objects that their class has no field for."""
    dicts = [one for one in objects if type(one) is dict]
    fields = msgspec.structs.fields(kind)
    unknown = set().union(*dicts) - {field.encode_name for field in fields}
    extras.setdefault(kind, set()).update(filter(_can_be_a_field, unknown))
    for field in fields:
        for inner in get_args(field.type):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                lists = [one.get(field.encode_name) for one in dicts]
                items = [item for some in lists if type(some) is list for item in some]
                _collect(items, inner, extras)
