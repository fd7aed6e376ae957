"""Work ahead: the next items of an iterator are made in a thread while the last is being used."""

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterable[Item], depth: int = 1) -> Iterator[Item]:
    """The same items in the same order, made in a thread of their own.

    Args:
        items: what raises comes out here, behind the items before it.
        depth: how many may wait to be taken, so that what waits in memory is bounded.

    Yields:
        Each item. Where the caller stops early, the thread ends after the item that it is at.
    """
    waiting: queue.Queue[tuple[bool, object]] = queue.Queue(depth)
    stopped = threading.Event()

    def hand_over(entry: tuple[bool, object]) -> None:
        while not stopped.is_set():
            try:
                waiting.put(entry, timeout=0.1)
            except queue.Full:
                continue
            return

    def work() -> None:
        try:
            for item in items:
                hand_over((True, item))
                if stopped.is_set():
                    return
            hand_over((False, None))
        except BaseException as error:
            hand_over((False, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            is_item, value = waiting.get()
            if not is_item:
                if isinstance(value, BaseException):
                    raise value
                return
            yield value  # type: ignore[misc]  # the queue holds items and one end
    finally:
        stopped.set()
