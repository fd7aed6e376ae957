"""What an Arrow column of a regular file holds, without making Python objects of it.

Each function takes the types that hold exactly what a field may hold, and raises `IrregularError`
for any other, for nulls where there may be none and for numbers out of range. The caller then
takes the way of records, which says what is wrong.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class IrregularError(ValueError):
    """A column is not of the plain kind that needs no second look."""


def texts(array: pa.Array, *, null: str | None = None, nullable: bool = False) -> pa.Array:
    """Strings, of type `string` or dictionary encoded with such values.

    Args:
        array: a column of strings.
        null: what a null stands for.
        nullable: whether null stands for itself.
    """
    return _filled(_strings(array, ids=False), null, nullable)


def ids(array: pa.Array) -> pa.Array:
    """Ids as strings; integers become their digits."""
    return _filled(_strings(array, ids=True), None, nullable=False)


def _strings(array: pa.Array, ids: bool) -> pa.Array:
    kind = array.type
    if pa.types.is_dictionary(kind):
        values = _strings(array.dictionary, ids)
        if values.null_count:
            raise IrregularError("null among the values of a dictionary")
        if values is array.dictionary:
            return array
        return pa.DictionaryArray.from_arrays(array.indices, values)
    if kind == pa.string():
        return array
    if pa.types.is_large_string(kind) or (ids and pa.types.is_integer(kind)):
        return array.cast(pa.string())
    if pa.types.is_null(kind):
        return array.cast(pa.string())
    raise IrregularError(f"strings of type {kind}")


def _filled(array: pa.Array, null: str | None, nullable: bool) -> pa.Array:
    if array.null_count and null is not None:
        return array.cast(pa.string()).fill_null(null)
    if array.null_count and not nullable:
        raise IrregularError("null")
    return array


def integers(array: pa.Array, least: int, most: int) -> Int64:
    """Integers within bounds, null as 0."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if not pa.types.is_integer(array.type):
        raise IrregularError(f"integers of type {array.type}")
    if array.null_count:
        array = array.fill_null(0)
    values: Int64 = array.cast(pa.int64()).to_numpy()
    if len(values) and not (least <= values.min() and values.max() <= most):
        raise IrregularError("an integer out of range")
    return values


def flags(array: pa.Array, null: bool) -> Bool:
    """True and false; null stands for `null`."""
    if pa.types.is_null(array.type):
        return np.full(len(array), null)
    if not pa.types.is_boolean(array.type):
        raise IrregularError(f"flags of type {array.type}")
    if array.null_count:
        array = array.fill_null(null)
    return np.asarray(array.to_numpy(zero_copy_only=False), bool)


def lists(array: pa.Array) -> tuple[pa.Array, Int64, Bool]:
    """The items of n lists, int64 [n + 1] where each list begins, bool [n] which are not null."""
    if pa.types.is_null(array.type):
        return pa.nulls(0), np.zeros(len(array) + 1, np.int64), np.zeros(len(array), bool)
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        raise IrregularError(f"lists of type {array.type}")
    if not len(array):
        return array.values.slice(0, 0), np.zeros(1, np.int64), np.zeros(0, bool)
    offsets = array.offsets.to_numpy().astype(np.int64)
    known = np.ones(len(array), bool)
    if array.null_count:
        known = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)
        lengths = np.diff(offsets)
        if lengths[~known].any():  # what lies behind a null list is nobody's
            lengths[~known] = 0
            return array.flatten(), np.concatenate([[0], np.cumsum(lengths)]), known
    return (
        array.values.slice(offsets[0], offsets[-1] - offsets[0]),
        offsets - offsets[0],
        known,
    )


def fields(array: pa.Array) -> dict[str, pa.Array]:
    """The columns of a column of structs."""
    if not pa.types.is_struct(array.type) or array.null_count:
        raise IrregularError(f"structs of type {array.type}")
    names = [array.type.field(at).name for at in range(array.type.num_fields)]
    return distinctly(names, [array.field(at) for at in range(len(names))])


def distinctly(names: Sequence[str], columns: Sequence[pa.Array]) -> dict[str, pa.Array]:
    """Columns by name."""
    if len(set(names)) < len(names):
        raise IrregularError("two columns of one name")
    return dict(zip(names, columns, strict=True))


def joined(arrays: Sequence[pa.Array]) -> pa.Array:
    """Columns of strings, plain or not, one after the other."""
    if len(arrays) == 1:
        return arrays[0]
    if any(pa.types.is_dictionary(array.type) for array in arrays):
        arrays = [
            array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
            for array in arrays
        ]
        wide = [
            pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), array.dictionary)
            for array in arrays
        ]
        arrays = pa.chunked_array(wide).unify_dictionaries().chunks
    return pa.concat_arrays(arrays)


def taken(array: pa.Array, rows: NDArray[np.integer] | Bool) -> pa.Array:
    """Entries by index, or those that a mask keeps."""
    if rows.dtype == bool:
        return array.filter(pa.array(rows))
    return pc.take(array, pa.array(rows))
