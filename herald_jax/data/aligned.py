"""Arrays that a CPU device takes as they are: it copies those that begin elsewhere in a cache line.

NumPy's arrays begin at a multiple of 16 bytes, XLA wants one of 64.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

BOUNDARY = 64


def aligned(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of unknown contents whose first byte lies at a multiple of 64."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    room = np.empty(size + BOUNDARY, np.uint8)
    start = -room.ctypes.data % BOUNDARY
    return room[start : start + size].view(kind).reshape(shape)
