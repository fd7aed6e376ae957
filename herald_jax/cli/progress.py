"""Progress on stderr: live bars on a terminal, one line for each finished stage elsewhere."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from herald_jax.cli.console import tell
from herald_jax.interrupts import at_interrupt

# How long-running parts report: the stage, how much of it is done, of how much (0: not known).
Report = Callable[[str, int, int], None]


class RateColumn(ProgressColumn):
    """Items a second."""

    def render(self, task: Task) -> Text:
        """The rate, blank until it can be estimated."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f}/s" if speed else "", style="progress.data.speed")


@contextmanager
def progress(quiet: bool = False) -> Iterator[Report]:
    """A function that draws what it is told; nothing at all when `quiet`."""
    console = Console(stderr=True)
    if quiet:
        yield lambda stage, done, total: None  # noqa: ARG005 - the shape of `Report`
    elif console.is_terminal:
        bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        with at_interrupt(show_cursor), bars:
            yield bar_drawer(bars)
    else:
        yield line_printer()


def show_cursor() -> None:
    """Undo what the bars do to the terminal."""
    os.write(2, b"\x1b[?25h")


def bar_drawer(bars: Progress) -> Report:
    """Draws one bar for each stage, in the order in which the stages begin."""
    tasks = {}

    def report(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total or None)
        bars.update(tasks[stage], completed=done, total=total or None)

    return report


def line_printer() -> Report:
    """Prints a line when a stage is complete: logs of CI jobs stay short."""
    start = time.monotonic()
    finished = set()

    def report(stage: str, done: int, total: int) -> None:
        if total and done >= total and stage not in finished:
            finished.add(stage)
            tell(f"[{time.monotonic() - start:6.1f} s] {stage}: {done:,}")

    return report
