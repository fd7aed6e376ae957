"""Rows that ask the same thing twice (SPEC section 3, `repeated_query`), found by whole columns.

Two queries with the same key have, white space apart and in lower case, the same sum of bytes: of
the query itself while it is ASCII, of its key otherwise. Sums are cheap; the few rows in which two
of them agree are then looked at key by key.
"""

import string

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from herald_jax.data.strings import utf8
from herald_jax.data.text import query_key
from herald_jax.data.words import is_ascii

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_SPACES = bytes(code for code in range(128) if chr(code).isspace())
_WEIGHTS = bytes.maketrans(
    string.ascii_uppercase.encode() + _SPACES,
    string.ascii_lowercase.encode() + bytes(len(_SPACES)),
)


def repeated(queries: pa.Array, asked: Bool, steps: Int64) -> Bool:
    """Which rows repeat a query.

    Args:
        queries: T plain strings without null.
        asked: bool [T] whether a step is an executed search.
        steps: int64 [n + 1] where the steps of each row begin.

    Returns:
        bool [n].
    """
    foreign = ~is_ascii(queries)
    if foreign.any():
        odd = pa.array(foreign)
        keys = [query_key(text) for text in queries.filter(odd).to_pylist()]
        queries = pc.replace_with_mask(queries, odd, pa.array(keys, pa.string()))
    row = np.repeat(np.arange(len(steps) - 1), np.diff(steps))
    sums = row[asked] << 32 | _sums(queries)[asked]
    sums.sort()
    doubtful = np.zeros(len(steps) - 1, bool)
    doubtful[sums[1:][sums[1:] == sums[:-1]] >> 32] = True
    chosen = np.flatnonzero(asked & doubtful[row])
    out = np.zeros(len(steps) - 1, bool)
    seen: set[tuple[int, str]] = set()
    texts = queries.take(pa.array(chosen)).to_pylist()
    for at, text in zip(row[chosen].tolist(), texts, strict=True):
        key = (at, query_key(text))
        if key in seen:
            out[at] = True
        seen.add(key)
    return out


def _sums(queries: pa.Array) -> Int64:
    """int64 [T]: sum, modulo 2^16, of the bytes that are not white space, in lower case."""
    offsets, data = utf8(queries)
    weights = np.frombuffer(data.tobytes().translate(_WEIGHTS) + b"\0", np.uint8)
    sums = np.add.reduceat(weights, offsets[:-1], dtype=np.uint16).astype(np.int64)
    sums[np.diff(offsets) == 0] = 0  # of nothing, `reduceat` gives the byte at its place
    return sums
