"""64-bit hashes of strings, many at once: the same for the same characters, wherever they lie.

Hashes go to disk, so they are stable from release to release. A string of up to `_LONG` bytes of
UTF-8 is read in little-endian words of eight bytes, the last one filled up with zeros, and each
word is mixed in by multiplication and rotation; the length goes in first, so that a zero byte at
the end counts. The avalanche at the end is that of MurmurHash3 (A. Appleby). Longer strings are
rare and go through BLAKE2b.
"""

import hashlib

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from herald_jax.data.strings import compact, numbers, utf8

Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]

_LONG = 256  # bytes
_NULL = np.uint64(0x6E756C6C)  # a number that stands for null, before the avalanche
_WORD = np.uint64(0x87C37B91114253D5)
_STATE = np.uint64(0x4CF5AD432745937F)
_AVALANCHE = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def hash_strings(strings: pa.Array) -> UInt64:
    """Hash each string of an Arrow array.

    Args:
        strings: n strings, plain or dictionary encoded, nulls allowed.

    Returns:
        uint64 [n]. Null has a hash of its own, unlike that of "".
    """
    strings = compact(strings)
    if pa.types.is_dictionary(strings.type):
        of_values = hash_strings(strings.dictionary)
        return np.append(of_values, _avalanche(np.array([_NULL])))[numbers(strings.indices)]
    offsets, data = utf8(strings)
    lengths = np.diff(offsets)
    out = _hash_short(offsets[:-1], lengths, data)
    for row in np.flatnonzero(lengths > _LONG):
        content = data[offsets[row] : offsets[row + 1]].tobytes()
        digest = hashlib.blake2b(content, digest_size=8).digest()
        out[row] = int.from_bytes(digest, "little")
    if strings.null_count:
        out[strings.is_null().to_numpy(zero_copy_only=False)] = _avalanche(np.array([_NULL]))[0]
    return out


def _hash_short(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], data: NDArray[np.uint8]
) -> UInt64:
    """Hashes of the strings of up to `_LONG` bytes; the others' are meaningless."""
    padded = np.append(data, np.zeros(8, np.uint8))
    words = np.ndarray(len(data) + 1, "<u8", padded, strides=(1,))
    state = (lengths.astype(np.uint64) + np.uint64(1)) * _WORD
    left = np.where(lengths > _LONG, 0, lengths)
    rows = np.flatnonzero(left)
    at = 0
    while len(rows):
        word = words[starts[rows] + at] & _FIRST_BYTES[np.minimum(left[rows] - at, 8)]
        mixed = state[rows]
        mixed = (mixed << np.uint64(27) | mixed >> np.uint64(37)) ^ (word * _WORD)
        state[rows] = (mixed ^ mixed >> np.uint64(32)) * _STATE
        at += 8
        rows = rows[left[rows] > at]
    return _avalanche(state)


def _avalanche(state: UInt64) -> UInt64:
    for factor in _AVALANCHE:
        state = (state ^ state >> np.uint64(33)) * factor
    return state ^ state >> np.uint64(33)
