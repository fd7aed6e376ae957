"""Ctrl-C ends the command at once, with one line and nothing half-written.

Python's own answer, an exception wherever the program happens to be, does not hold here: raised in
a callback of the garbage collector it is printed and forgotten, raised while a native module loads
it aborts the process. So the handler raises nothing. It runs what was registered with
`at_interrupt` and ends the process itself; `uninterrupted` makes it wait.

Signal handlers run in the main thread, between two of its steps, and so need no locks. In a program
that installs no handler, as a notebook does not, the two context managers change nothing.
"""

import atexit
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPTED = 130

_cleanups: list[Callable[[], object]] = []
_waiting: list[bool] = []  # one entry for each `uninterrupted` in force: whether Ctrl-C came


def end_on_interrupt() -> None:
    """Let Ctrl-C end this process with exit code 130, for as long as there is work to cut short.

    Not where whoever started the process has it ignored, as shells do for jobs in the background.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    signal.signal(signal.SIGINT, _interrupted)
    # The first function registered is the last to run: from there on the exit code is decided.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextmanager
def at_interrupt(cleanup: Callable[[], object]) -> Iterator[None]:
    """Have `cleanup` called if Ctrl-C ends the process inside the block; the last comes first.

    The program may stand anywhere in the block, so `cleanup` must not write to Python's streams,
    which cannot be entered twice. What it raises is dropped.
    """
    _cleanups.append(cleanup)
    try:
        yield
    finally:
        _cleanups.remove(cleanup)


@contextmanager
def uninterrupted() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C take effect after the block: for steps of which all or none must be done.

    Gives a function that tells whether it came, for a block that can be cut short.
    """
    _waiting.append(False)
    try:
        yield lambda: _waiting[0]
    finally:
        if _waiting.pop():
            _interrupted(signal.SIGINT, None)


def _interrupted(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's shape
    if _waiting:
        _waiting[0] = True
        return
    try:
        for cleanup in reversed(_cleanups):
            with suppress(Exception):
                cleanup()
        # Past what a terminal shows: "^C", or bars that were being drawn.
        line = f"{os.linesep if os.isatty(2) else ''}herald: interrupted{os.linesep}"
        os.write(2, line.encode())
    finally:
        os._exit(INTERRUPTED)
