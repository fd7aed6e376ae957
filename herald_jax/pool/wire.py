"""Named arrays as one run of bytes, to be sent from process to process."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from herald_jax.pool.store import Entry

Arrays = dict[str, NDArray[Any]]


def to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays of any type and shape; a structured type travels as plain bytes of its size."""
    plain = {
        name: (array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in arrays.items()
    }
    return msgspec.msgpack.encode(plain)


def entry_to_bytes(entry: Entry) -> bytes:
    """An entry of a store: its arrays, and what was put beside them."""
    arrays = to_bytes({name: entry.read(name) for name in entry.names})
    return msgspec.msgpack.encode((arrays, msgspec.json.encode(entry.meta)))


def entry_from_bytes(data: bytes) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the words of an entry."""
    arrays, meta = msgspec.msgpack.decode(data, type=tuple[bytes, bytes])
    return from_bytes(arrays), msgspec.json.decode(meta)


def from_bytes(data: bytes) -> Arrays:
    """The arrays that `to_bytes` wrote; none from no bytes."""
    if not data:
        return {}
    plain = msgspec.msgpack.decode(data, type=dict[str, tuple[str, tuple[int, ...], bytes]])
    return {
        name: np.frombuffer(raw, np.dtype(kind)).reshape(shape)
        for name, (kind, shape, raw) in plain.items()
    }
