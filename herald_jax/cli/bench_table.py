"""Results of benchmarks as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from herald_jax.pages.bench import goals, headline, written
from herald_jax.pages.numbers import duration

Data = Mapping[str, Any]

# Of a table that goes to a file or to another program.
WIDTH = 110


def table(data: Data) -> str:
    """Every figure with its goal, one table."""
    grid = empty_table()
    for name in ("Figure", "Goal"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("", no_wrap=True)
    grid.add_column("Ours", justify="right", no_wrap=True)
    for benchmark in data["benchmarks"]:
        grid.add_row(Text(benchmark["name"], style="bold"))
        if benchmark["status"] != "ok":
            last = benchmark["failure"].splitlines()[-1]
            grid.add_row(inset(Text(f"failed: {last}", style="red")))
        for before, row in zip([None, *benchmark["rows"]], benchmark["rows"], strict=False):
            value, goal = written(row)
            spent = duration(row["seconds"]) if row["seconds"] else ""
            grid.add_row(named(row, before), Text(row["against"]), value, goal, verdict(row), spent)
            if row["met"] is False and row["ratio"] is None:
                grid.add_row(inset(Text(row["detail"], style="red")))
    return printed(grid, summary(data))


def empty_table() -> Table:
    """With the columns that say what was measured."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=True)
    grid.add_column("Measured", ratio=3, overflow="fold")
    grid.add_column("Against", ratio=2, overflow="fold")
    return grid


def named(row: Data, before: Data | None) -> Padding:
    """The name of a row, unless it is that of the row above."""
    repeated = before is not None and before["name"] == row["name"]
    return inset(Text("" if repeated else row["name"]))


def inset(text: Text) -> Padding:
    """Below the name of its benchmark, every line of it."""
    return Padding(text, (0, 0, 0, 2))


def comparison(one: tuple[str, Data], other: tuple[str, Data]) -> str:
    """The figures of two results side by side."""
    grid = empty_table()
    for name, _ in (one, other):
        grid.add_column(Text(name), justify="right", overflow="fold", max_width=18)
        grid.add_column("", no_wrap=True)
    rows = [by_key(data) for _, data in (one, other)]
    said = ""
    for key in dict.fromkeys([*rows[0], *rows[1]]):
        benchmark, name, against = key
        if benchmark != said:
            said = benchmark
            grid.add_row(Text(benchmark, style="bold"))
        cells: list[str | Text] = []
        for found in rows:
            cells += [written(found[key])[0], verdict(found[key])] if key in found else ["", ""]
        grid.add_row(inset(Text(name)), Text(against), *cells)
    return printed(*(f"{name}: {described(data)}" for name, data in (one, other)), grid)


def by_key(data: Data) -> dict[tuple[str, str, str], Data]:
    """Rows by benchmark, name and peer."""
    return {
        (benchmark["name"], row["name"], row["against"]): row
        for benchmark in data["benchmarks"]
        for row in benchmark["rows"]
    }


def verdict(row: Data) -> Text:
    """`met` or `MISSED`."""
    words = {True: Text("met", "green"), False: Text("MISSED", "bold red"), None: Text("")}
    return words[row["met"]]


def summary(data: Data) -> str:
    """What came out, and on what machine."""
    reached, of = goals(data)
    return f"\n{headline(reached, of, data)}. {described(data)}"


def described(data: Data) -> str:
    """The machine in a line."""
    machine = data["machine"]
    if not machine:
        return "No benchmark told on what machine it ran."
    speed = data["read_bandwidth"]
    return (
        f"{machine['cpu']}, {machine['usable_cores']} cores, {machine['devices']}, load "
        f"{machine['load_before'][0]:.2f} before"
        + (f", memory read at {speed / 1e9:.1f} GB/s" if speed else "")
        + (", quick run" if data["quick"] else "")
        + f"; herald-jax {data['herald_jax']}, jax {machine['jax']}, numpy {machine['numpy']}"
    )


def printed(*parts: str | Table) -> str:
    """As the terminal shows it, colours included; plain where there is none."""
    console = Console(markup=False, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = WIDTH
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return captured.get().rstrip("\n")
