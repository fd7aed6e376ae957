"""One pool of threads for the parts of a kernel that run on the host, one a core."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="kernels")


def in_threads(function: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """[function(item) for item in items], as many at a time as there are cores.

    `function` must not call this itself: it would wait for a thread that waits for it.
    """
    return list(_pool().map(function, items))
