"""Progress on stderr: bars on a terminal, one line a stage elsewhere, silence when asked."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from herald_jax.cli.progress import RateColumn, bar_drawer, line_printer, progress


def test_one_line_for_each_finished_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as report:
        report("edits", 0, 2)
        report("edits", 1, 2)
        report("read [bold].jsonl", 7, 0)
        report("edits", 2, 2)
        report("edits", 2, 2)
        report("read [bold].jsonl", 1_200, 1_200)
    said = capsys.readouterr()
    first, second = said.err.splitlines()
    assert first.endswith(" s] edits: 2")
    assert second.endswith(" s] read [bold].jsonl: 1,200")
    assert said.out == ""


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(quiet=True) as report:
        report("edits", 1, 1)
    assert capsys.readouterr() == ("", "")


def test_a_long_line_is_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    line_printer()("a stage with a name longer than any console is wide " * 9, 1, 1)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_bars_follow_their_stages() -> None:
    clock = iter(range(1000))
    console = Console(file=io.StringIO(), force_terminal=True)
    bars = Progress(console=console, auto_refresh=False, get_time=lambda: float(next(clock)))
    report = bar_drawer(bars)
    for done in range(5):
        report("edits", done, 4)
    report("read", 10, 0)
    edits, read = bars.tasks
    assert (edits.description, edits.completed, edits.total) == ("edits", 4, 4)
    assert (read.completed, read.total) == (10, None)
    assert RateColumn().render(edits).plain.endswith("/s")
