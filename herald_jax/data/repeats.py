"""Rows that ask the same thing twice (SPEC section 3, `repeated_query`), found by whole columns.

Two queries of ASCII with the same key have, white space apart and in lower case, the same sum of
bytes. Sums are cheap; the few rows in which two agree are then looked at key by key, and so is
every row with a query beyond ASCII, whose compatibility forms no sum sees.
"""

import string

import numpy as np
import pyarrow as pa
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
    row = np.repeat(np.arange(len(steps) - 1), np.diff(steps))
    doubtful = np.zeros(len(steps) - 1, bool)
    doubtful[row[asked & ~is_ascii(queries)]] = True
    sums = row[asked] << 32 | _sums(queries)[asked]
    sums.sort()
    doubtful[sums[1:][sums[1:] == sums[:-1]] >> 32] = True
    out = np.zeros(len(steps) - 1, bool)
    chosen = np.flatnonzero(asked & doubtful[row])
    seen: set[tuple[int, str]] = set()
    texts = queries.take(pa.array(chosen)).to_pylist()
    for at, text in zip(row[chosen].tolist(), texts, strict=True):
        key = (at, query_key(text))
        if key in seen:
            out[at] = True
        seen.add(key)
    return out


def _sums(queries: pa.Array) -> Int64:
    """int64 [T]: sum of the bytes of each query that are not white space, in lower case."""
    offsets, data = utf8(queries)
    total = np.zeros(len(data) + 1, np.uint32)  # differences hold in spite of an overflow
    np.cumsum(
        np.frombuffer(data.tobytes().translate(_WEIGHTS), np.uint8), out=total[1:], dtype=np.uint32
    )
    return np.diff(total[offsets]).astype(np.int64)
