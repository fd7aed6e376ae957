"""The results of `herald bench` as one self-contained HTML page, drawn from its JSON alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from herald_jax.pages.bars import domain, ratio_axis, ratio_strip
from herald_jax.pages.growth import growth_chart
from herald_jax.pages.numbers import duration, figure, gigabytes
from herald_jax.pages.templates import render

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """One row of a benchmark, in words."""

    name: str
    against: str
    value: str
    goal: str
    met: bool | None
    seconds: str
    peer_seconds: str
    detail: str
    strip: Markup | None

    @property
    def verdict(self) -> str:
        """`met`, `MISSED`, or nothing without a goal."""
        return {True: "met", False: "MISSED", None: ""}[self.met]


@dataclass(frozen=True)
class Part:
    """One benchmark; `rows` are its figures."""

    name: str
    about: str
    rows: tuple[Figure, ...]
    took: str
    memory: str
    load: str
    failure: str

    @property
    def strips(self) -> list[Figure]:
        """The figures that are ratios."""
        return [row for row in self.rows if row.strip is not None]


def render_bench(data: Data) -> str:
    """The page: no network, no scripts.

    Args:
        data: the contents of `bench.json`.
    """
    ends = domain(
        [x for row in all_rows(data) for x in (row["ratio"], row["goal"]) if drawn(row) and x]
    )
    parts = [part(benchmark, ends) for benchmark in data["benchmarks"]]
    reached, of = goals(data)
    return render(
        "bench.html.j2",
        data=data,
        parts=parts,
        headline=headline(reached, of, data),
        outcome="good" if reached == of else "bad",
        of=of,
        missed=[row for one in parts for row in one.rows if row.met is False],
        failed=[one for one in parts if one.failure],
        facts=machine_facts(data),
        axis=ratio_axis(ends),
        growth=growth_charts(data),
    )


def all_rows(data: Data) -> list[Data]:
    """The rows of all benchmarks."""
    return [row for benchmark in data["benchmarks"] for row in benchmark["rows"]]


def goals(data: Data) -> tuple[int, int]:
    """How many goals are met, and how many there are."""
    verdicts = [row["met"] for row in all_rows(data) if row["met"] is not None]
    return sum(verdicts), len(verdicts)


def headline(reached: int, of: int, data: Data) -> str:
    """What came out, in a sentence."""
    failed = sum(benchmark["status"] != "ok" for benchmark in data["benchmarks"])
    words = "No goal was measured" if not of else f"{reached} of {of} goals met"
    if failed:
        words += f", {failed} of {len(data['benchmarks'])} benchmarks failed"
    return words


def drawn(row: Data) -> bool:
    """Whether a row is a ratio that can stand on a logarithmic axis."""
    return row.get("unit", "x") == "x" and row["ratio"] is not None and row["ratio"] > 0


def written(row: Data) -> tuple[str, str]:
    """The figure of a row and its goal; a missed goal never looks met."""
    unit, most = row.get("unit", "x"), bool(row.get("at_most"))
    goal = row["goal"]
    value = "" if row["ratio"] is None else figure(row["ratio"], unit, up=most)
    if goal is None:
        return value, ""
    return value, f"{'≤' if most else '≥'} {goal:,g}{unit if unit in 'x%' else f' {unit}'}"


def figure_of(row: Data, ends: tuple[float, float]) -> Figure:
    """One row in words, with its bar."""
    value, goal = written(row)
    bar = ratio_strip(row["ratio"], row["goal"], row["met"], ends) if drawn(row) else None
    return Figure(
        name=row["name"],
        against=row["against"],
        value=value,
        goal=goal,
        met=row["met"],
        seconds=duration(row["seconds"]) if row["seconds"] else "",
        peer_seconds="" if row["peer_seconds"] is None else duration(row["peer_seconds"]),
        detail=words(row["detail"]),
        strip=bar,
    )


def words(detail: Any) -> str:
    """What a benchmark says beside its figure: a line, or numbers by name."""
    if isinstance(detail, Mapping):
        return "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in detail.items())
    return str(detail)


def part(benchmark: Data, ends: tuple[float, float]) -> Part:
    """One benchmark."""
    load = benchmark.get("load_before")
    return Part(
        name=benchmark["name"],
        about=benchmark["about"],
        rows=tuple(figure_of(row, ends) for row in benchmark["rows"]),
        took=duration(benchmark["seconds"]),
        memory=gigabytes(benchmark["peak_bytes"]),
        load="" if load is None else f"{load[0]:.2f}",
        failure="" if benchmark["status"] == "ok" else benchmark["failure"],
    )


def machine_facts(data: Data) -> list[tuple[str, str]]:
    """What it ran on."""
    machine = data["machine"]
    facts = [
        ("Processor", f"{machine['cpu']}, {machine['usable_cores']} of {machine['cores']} cores"),
        ("Memory", gigabytes(machine["memory_bytes"])),
        ("Devices", machine["devices"]),
        ("Load before", ", ".join(f"{load:.2f}" for load in machine["load_before"])),
    ]
    if data["read_bandwidth"] is not None:
        facts.append(("Memory read", f"{data['read_bandwidth'] / 1e9:.1f} GB/s"))
    versions = [f"{name} {machine[name]}" for name in ("jax", "numpy", "scipy", "python")]
    facts.append(("Versions", f"herald-jax {data['herald_jax']}, {', '.join(versions)}"))
    if data["commit"]:
        facts.append(("Commit", data["commit"]))
    facts.append(("Begun", data["begun"]))
    return facts


def growth_charts(data: Data) -> list[Markup]:
    """Time and peak memory against rows, of every benchmark that measured several sizes."""
    charts = []
    for benchmark in data["benchmarks"]:
        points: Sequence[Data] = benchmark["more"].get("points", [])
        if not points:
            continue
        for number, (key, title, text, tick) in enumerate(
            (
                ("seconds", "Time", duration, seconds_tick),
                ("peak_bytes", "Peak memory", gigabytes, gigabytes),
            )
        ):
            charts.append(
                growth_chart(
                    [(point["rows"], point[key]) for point in points],
                    name=f"{benchmark['name']}-{key}",
                    title=f"{title} against rows",
                    across=f"{title} against rows",
                    written=text,
                    tick=tick,
                    style=number,
                )
            )
    return charts


def seconds_tick(seconds: float) -> str:
    """`0.5 s`, `1,000 s`."""
    return f"{seconds:,g} s"
