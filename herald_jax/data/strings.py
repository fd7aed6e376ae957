"""Arrow columns of strings, plain or dictionary encoded, seen as NumPy arrays."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from herald_jax.data.ragged import Int32

Int64 = NDArray[np.int64]


def compact(strings: pa.Array) -> pa.Array:
    """The same strings, without a dictionary that is longer than they are."""
    if pa.types.is_dictionary(strings.type) and len(strings) < len(strings.dictionary):
        return plain(strings)
    return strings


def numbers(indices: pa.Array) -> Int32:
    """Arrow integers as int32, -1 for null."""
    if indices.null_count:
        indices = indices.cast(pa.int32()).fill_null(-1)
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int32)


def plain(strings: pa.Array) -> pa.Array:
    """The same strings, of type `string`."""
    return strings if strings.type == pa.string() else strings.cast(pa.string())


def encoded(strings: pa.Array) -> tuple[Int32, pa.Array]:
    """Codes of strings, -1 for null, and the distinct values; some of these may not occur."""
    strings = compact(strings)
    if not pa.types.is_dictionary(strings.type):
        strings = strings.dictionary_encode()
    return numbers(strings.indices), strings.dictionary


def found_in(strings: pa.Array, values: pa.Array) -> Int32:
    """Index of each string among distinct values, -1 for a string that is not there and for null.

    Args:
        strings: n strings.
        values: plain strings without null.

    Returns:
        int32 [n].
    """
    if not len(strings):
        return np.zeros(0, np.int32)  # the values are not even gone through
    strings = compact(strings)
    if not pa.types.is_dictionary(strings.type):
        return numbers(pc.index_in(strings, value_set=values))
    found = numbers(pc.index_in(strings.dictionary, value_set=values))
    return np.append(found, np.int32(-1))[numbers(strings.indices)]


def utf8(strings: pa.Array) -> tuple[Int64, NDArray[np.uint8]]:
    """Where strings begin and end, and their bytes.

    Args:
        strings: n plain strings; null has no bytes.

    Returns:
        int64 [n + 1] offsets, the first of them 0, and uint8 [total] bytes.
    """
    if strings.null_count:
        strings = strings.fill_null("")
    wide = pa.types.is_large_string(strings.type)
    _, ends, data = strings.buffers()
    if not len(strings):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    kind = np.dtype(np.int64 if wide else np.int32)
    offsets = np.frombuffer(ends, kind, len(strings) + 1, strings.offset * kind.itemsize)
    first, last = int(offsets[0]), int(offsets[-1])
    flat = np.frombuffer(data, np.uint8, last - first, first) if last > first else np.zeros(0)
    return offsets.astype(np.int64) - first, flat.astype(np.uint8, copy=False)
