"""TFRecord files without TensorFlow: the records of one, as bytes.

Each record stands between its length and a checksum of either (CRC-32C, which is not checked: that
the lengths lead to the end of the file tells a cut one).
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from herald_jax.types import HeraldError

_LENGTH = struct.Struct("<QI")  # bytes of the record, and the checksum of that number
_CHECKSUM = 4  # bytes behind the record


def read_records(path: Path, skip: int, take: int) -> Iterator[bytes]:
    """Some records of a file.

    Args:
        path: the file.
        skip: records before the first that is wanted.
        take: how many are.

    Raises:
        OSError: it cannot be read.
        HeraldError: it ends before the last of them.
    """
    with path.open("rb") as file:
        for number in range(skip + take):
            start = file.read(_LENGTH.size)
            size = _LENGTH.unpack(start)[0] if len(start) == _LENGTH.size else 0
            left = path.stat().st_size - file.tell() - _CHECKSUM
            if len(start) < _LENGTH.size or size > left:
                raise HeraldError(
                    f"{path}: ends within record {number + 1} of {skip + take}; prepare it again"
                )
            if number < skip:
                file.seek(size + _CHECKSUM, 1)
            else:
                yield file.read(size)
                file.seek(_CHECKSUM, 1)
