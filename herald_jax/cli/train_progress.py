"""The live line of a training run: what people look at while it goes on."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from herald_jax.cli.console import tell
from herald_jax.cli.progress import show_cursor
from herald_jax.interrupts import at_interrupt

Draw = Callable[[str, int, int, Mapping[str, float | int]], None]
EVERY = 10.0  # seconds between lines where there is no terminal


def words(stage: str, done: int, total: int, numbers: Mapping[str, float | int]) -> str:
    """One line: the stage, how far it is, and the numbers that tell whether it works."""
    if "update" in numbers:
        return (
            f"update {numbers['update']:,}  reward {numbers['reward/mean']:.3f}  "
            f"EM {numbers['answer/em']:.3f}  searches {numbers['searches/mean']:.2f}  "
            f"{done:,}/{total:,} tokens  {numbers['tokens/second']:,.0f} tokens/s"
        )
    told = "".join(f"  {name} {value:.3g}" for name, value in numbers.items())
    return f"{stage}  {done:,}/{total:,}{told}"


@contextmanager
def train_progress(quiet: bool = False) -> Iterator[Draw]:
    """A function that draws what it is told; nothing at all when `quiet`."""
    console = Console(stderr=True)
    if quiet:
        yield lambda stage, done, total, numbers: None  # noqa: ARG005 - the shape of `Draw`
    elif console.is_terminal:
        bar = Progress(
            BarColumn(bar_width=20),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(),
            console=console,
        )
        with at_interrupt(show_cursor), bar:
            yield _bar(bar)
    else:
        yield _lines()


def _bar(bar: Progress) -> Draw:
    tasks: dict[str, TaskID] = {}

    def draw(stage: str, done: int, total: int, numbers: Mapping[str, float | int]) -> None:
        line = words(stage, done, total, numbers)
        if stage not in tasks:
            tasks[stage] = bar.add_task(line, total=total or None)
        bar.update(tasks[stage], description=line, completed=done, total=total or None)

    return draw


def _lines() -> Draw:
    """A line now and then, and at the end of a stage."""
    start = time.monotonic()
    last: dict[str, float] = {}

    def draw(stage: str, done: int, total: int, numbers: Mapping[str, float | int]) -> None:
        now = time.monotonic()
        if done < total and now - last.get(stage, start) < EVERY:
            return
        last[stage] = now
        tell(f"[{now - start:6.1f} s] {words(stage, done, total, numbers)}")

    return draw
