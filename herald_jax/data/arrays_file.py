"""A file of named arrays: encoded rows, partial results, a search index.

Layout: a magic line, the length and the checksum of a header, the header (JSON: what the file is
for, and name, type, shape, place and checksum of every array), then the arrays one after the other,
each at a multiple of 64 bytes. Arrays are read whole and checked, read in part, or mapped into
memory. A file is written under another name and takes its own when it is whole, so that one which
was cut short by a killed process is never found; one that a power cut or the disk damaged fails its
checksums and is refused by name.
"""

import os
import struct
import uuid
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from herald_jax.types import HeraldError

Array = NDArray[Any]

_MAGIC = b"herald-jax arrays 1\n"
_LENGTHS = struct.Struct("<QI")  # bytes of the header, and their CRC-32
_ALIGNMENT = 64
_PIECE = 1 << 22  # bytes read at a time to check an array that is not kept


class DamagedFileError(HeraldError):
    """A file of arrays that is not whole, or not one of ours; the message names it."""


class _Entry(msgspec.Struct, array_like=True):
    dtype: str
    shape: tuple[int, ...]
    offset: int  # from the end of the header
    crc: int

    @property
    def size(self) -> int:
        """Bytes of the array."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


class _Header(msgspec.Struct):
    meta: dict[str, Any]
    arrays: dict[str, _Entry]


def write_arrays(path: Path, arrays: Mapping[str, Array], meta: Mapping[str, Any]) -> None:
    """Write a file of arrays, whole or not at all.

    Args:
        path: takes this name when all is written; its folder exists.
        arrays: fixed-size types, any shape.
        meta: what can be written as JSON.

    Raises:
        OSError: it cannot be written; nothing of it is left.
    """
    entries: dict[str, _Entry] = {}
    offset = 0
    chunks = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in chunks.items():
        entries[name] = _Entry(array.dtype.str, array.shape, offset, zlib.crc32(_bytes(array)))
        offset = _aligned(offset + array.nbytes)
    header = msgspec.json.encode(_Header(dict(meta), entries))
    header += b" " * (-(len(_MAGIC) + _LENGTHS.size + len(header)) % _ALIGNMENT)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with draft.open("wb") as file:
            file.write(_MAGIC + _LENGTHS.pack(len(header), zlib.crc32(header)) + header)
            for array in chunks.values():
                file.write(_bytes(array))
                file.write(b"\0" * (-array.nbytes % _ALIGNMENT))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


class ArraysFile:
    """One file of arrays, open for reading.

    Attributes:
        path: where it lies.
        meta: what was written beside the arrays.
    """

    def __init__(self, path: Path) -> None:
        """Open a file and check its header and its length.

        Raises:
            OSError: it cannot be opened.
            DamagedFileError: it is no such file, or was cut short.
        """
        self.path = path
        with path.open("rb") as file:
            start = file.read(len(_MAGIC) + _LENGTHS.size)
            if not start.startswith(_MAGIC) or len(start) < len(_MAGIC) + _LENGTHS.size:
                raise DamagedFileError(f"{path}: not a file of arrays that this version writes")
            length, crc = _LENGTHS.unpack(start[len(_MAGIC) :])
            text = file.read(length)
            if len(text) != length or zlib.crc32(text) != crc:
                raise DamagedFileError(f"{path}: its header is damaged")
            header = msgspec.json.decode(text, type=_Header)
            self._start = len(start) + length
            self._entries = header.arrays
            self.meta = header.meta
            last = max((e.offset + e.size for e in self._entries.values()), default=0)
            if os.fstat(file.fileno()).st_size < self._start + last:
                raise DamagedFileError(f"{path}: cut short")

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    @property
    def names(self) -> list[str]:
        """Names of the arrays, in the order in which they were written."""
        return list(self._entries)

    def length(self, name: str) -> int:
        """Size of the first axis of an array."""
        return self._entries[name].shape[0]

    def read(self, name: str) -> Array:
        """A whole array, checked.

        Raises:
            DamagedFileError: its bytes are not those that were written.
        """
        entry = self._entries[name]
        found = np.fromfile(
            self.path, np.uint8, count=entry.size, offset=self._start + entry.offset
        )
        if zlib.crc32(_bytes(found)) != entry.crc:
            raise DamagedFileError(f"{self.path}: array {name!r} is damaged")
        return found.view(entry.dtype).reshape(entry.shape)

    def part(self, name: str, first: int, last: int) -> Array:
        """Rows first .. last - 1 of an array, not checked.

        Raises:
            IndexError: there are no such rows.
            DamagedFileError: the file has become shorter.
        """
        entry = self._entries[name]
        if not 0 <= first <= last <= entry.shape[0]:
            raise IndexError(f"{self.path}: {name!r} has no rows {first} .. {last - 1}")
        width = int(np.prod(entry.shape[1:], dtype=np.int64))
        found = np.fromfile(
            self.path,
            entry.dtype,
            count=(last - first) * width,
            offset=self._start + entry.offset + first * width * np.dtype(entry.dtype).itemsize,
        )
        if len(found) != (last - first) * width:
            raise DamagedFileError(f"{self.path}: cut short")
        return found.reshape(last - first, *entry.shape[1:])

    def map(self, name: str) -> Array:
        """An array as it lies on the disk, read as it is used; not writable, not checked."""
        entry = self._entries[name]
        if entry.size == 0:
            return np.zeros(entry.shape, entry.dtype)
        return np.memmap(
            self.path, entry.dtype, "r", offset=self._start + entry.offset, shape=entry.shape
        )

    def check(self) -> None:
        """Read everything once, keeping none of it.

        Raises:
            DamagedFileError: an array's bytes are not those that were written.
        """
        with self.path.open("rb") as file:
            for name, entry in self._entries.items():
                file.seek(self._start + entry.offset)
                crc, left = 0, entry.size
                while left and (piece := file.read(min(left, _PIECE))):
                    crc, left = zlib.crc32(piece, crc), left - len(piece)
                if left or crc != entry.crc:
                    raise DamagedFileError(f"{self.path}: array {name!r} is damaged")


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
