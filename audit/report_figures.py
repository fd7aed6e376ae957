"""The pictures of a report, each with what its caption and legend have to say in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from herald_jax.audit.report_cells import Cell, cell_at
from herald_jax.audit.report_names import (
    BASE,
    FULL,
    Lattice,
    is_built_in,
    members,
    operator_order,
    words,
)
from herald_jax.audit.report_tables import budget_order, label_of, mark, shared, worst_cell
from herald_jax.pages.axes import round_up
from herald_jax.pages.forest import strip, strip_axis
from herald_jax.pages.hasse import HEAT_LEVELS, Node, hasse
from herald_jax.pages.histogram import histogram
from herald_jax.pages.lines import Series, highest, line_chart, swatch
from herald_jax.pages.numbers import percent

# A Hasse diagram of 2^6 subsets has rows of 20 boxes: beyond this it is a list instead.
DRAWN_DETECTORS = 5
CURVES = 5


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of several that belong together, with its own heading and legend."""

    heading: str
    picture: Markup
    legend: tuple[tuple[Markup, str], ...] = ()


def shown_contracts(report: Mapping[str, Any], lattice: Lattice) -> list[str]:
    """What a reader asks for first: base reward, smallest repairs, the fullest, their own."""
    present = {n for t in (report.get("primary") or {}).values() for n in t.get("oracle_worst", {})}
    own = [name for name in lattice.ordered(present) if not is_built_in(name)]
    wanted = [BASE, *lattice.minimal[:3], FULL, *own[:3]]
    return [name for name in dict.fromkeys(wanted) if name in present]


def lattice_picture(report: Mapping[str, Any], lattice: Lattice) -> Markup | None:
    """The Hasse diagram, None where it would be too large to read or nothing is known."""
    primary = report.get("primary") or {}
    names = {name for table in primary.values() for name in table.get("oracle_worst") or {}}
    subsets = [name for name in lattice.ordered(names) if name == BASE or members(name)]
    if not subsets or len(lattice.detectors) > DRAWN_DETECTORS:
        return None
    nodes = [subset_node(report, name, lattice) for name in subsets]
    edges = [
        (low, high)
        for low in subsets
        for high in subsets
        if set(members(low)) < set(members(high)) and len(members(high)) == len(members(low)) + 1
    ]
    told = "; ".join(f"{node.key}: {', '.join(node.lines)}" for node in nodes)
    return hasse(
        nodes,
        edges,
        name="lattice",
        title="Every subset of the penalties, by the worst primary oracle-worst ASR",
        description=f"{told}.",
    )


def subset_node(report: Mapping[str, Any], contract: str, lattice: Lattice) -> Node:
    """The box of a subset."""
    worst = worst_cell(report, contract)
    size = len(members(contract))
    if worst is None:
        return Node(contract, size, None, ("not measured",))
    observed = mark(contract, lattice)
    sign = {"minimal": "\u2605 minimal", "sufficient": "\u2713 sufficient", "": "attackable"}
    return Node(contract, size, worst.asr, (worst.rate, worst.share, sign[observed]), observed)


def histogram_panels(report: Mapping[str, Any], contracts: Iterable[str]) -> list[Panel]:
    """Margins of each primary operator under each of `contracts`, all on one axis."""
    wanted = list(contracts)
    tables = report.get("histograms") or {}
    picked = [
        (operator, contract, tables[operator][contract])
        for operator in operator_order(tables)
        for contract in wanted
        if counted(tables[operator].get(contract))
    ]
    return draw_histograms(picked, "histogram")


def all_histogram_panels(
    report: Mapping[str, Any], lattice: Lattice, limit: int
) -> tuple[list[Panel], int]:
    """Margins under every contract, equal ones drawn once; how many more than `limit` there are."""
    tables = report.get("histograms") or {}
    picked = [
        (operator, named_together(names), bins)
        for operator in operator_order(tables)
        for names, bins in shared(tables[operator], lattice)
        if counted(bins)
    ]
    return draw_histograms(picked[:limit], "every-histogram"), max(0, len(picked) - limit)


def counted(bins: Mapping[str, Any] | None) -> int:
    """How many margins a histogram holds."""
    return sum((bins or {}).get("counts") or ())


def draw_histograms(picked: Sequence[tuple[str, str, Any]], name: str) -> list[Panel]:
    """A panel for each (operator, contracts, histogram), all on one axis."""
    ends = [end for _, _, bins in picked for end in occupied(bins["edges"], bins["counts"])]
    return [
        Panel(
            f"{words(operator)}, {contract}",
            histogram(
                bins["edges"],
                bins["counts"],
                name=f"{name}-{position}",
                title=f"Margins of {words(operator)} under {contract}",
                axis="margin",
                span=(min(ends), max(ends)),
            ),
        )
        for position, (operator, contract, bins) in enumerate(picked)
    ]


def occupied(edges: Sequence[float], counts: Sequence[int]) -> tuple[float, float]:
    """Ends of the bins that hold anything."""
    filled = [index for index, height in enumerate(counts) if height]
    return edges[filled[0]], edges[filled[-1] + 1]


def budget_panels(report: Mapping[str, Any], contracts: Sequence[str]) -> list[Panel]:
    """ASR of laundering against the number of candidates, one picture a generator and contract."""
    budgets = report.get("budgets") or {}
    made: list[tuple[str, tuple[str, ...], list[Series]]] = []
    ceilings = {
        contract: cell_at((budgets.get("exhaustive") or {}).get("all"), "oracle_worst", contract)
        for contract in contracts
    }
    for generator, sizes in budgets.items():
        order = [size for size in budget_order(sizes) if size.isdigit()]
        for contract in contracts if len(order) > 1 else ():
            series = budget_series(sizes, order, contract)
            if not any(one.points() for one in series):
                continue
            ceiling = ceilings[contract]
            positions = tuple(order)
            if ceiling.measured:
                positions = (*order, "all")
                series = [
                    Series(s.label, (*s.values, None), (*s.intervals, None), s.style)
                    for s in series
                ]
                gap = (None,) * len(order)
                series.append(
                    Series(
                        "exhaustive, oracle-worst",
                        (*gap, ceiling.asr),
                        (*gap, ceiling.asr_interval),
                        2,
                    )
                )
            made.append((f"{generator}, {contract}", positions, series))
    top = round_up(max((highest(series) for _, _, series in made), default=0.0))
    return [
        Panel(
            heading,
            line_chart(
                series,
                positions,
                name=f"budget-{index}",
                title=f"ASR of laundering against the budget, {heading}",
                axis="candidates a row, K",
                top=top,
            ),
            legend_of(series),
        )
        for index, (heading, positions, series) in enumerate(made)
    ]


def budget_series(sizes: Mapping[str, Any], order: Sequence[str], contract: str) -> list[Series]:
    """Both selections of the candidate over the budgets."""
    made = []
    for style, (selection, text) in enumerate(
        (("oracle_worst", "oracle-worst"), ("first_visible", "first-visible"))
    ):
        cells = [cell_at(sizes[size], selection, contract) for size in order]
        made.append(
            Series(
                text,
                tuple(cell.asr for cell in cells),
                tuple(cell.asr_interval for cell in cells),
                style,
            )
        )
    return made


def scale_panels(report: Mapping[str, Any], lattice: Lattice) -> list[Panel]:
    """Oracle-worst ASR against the scale of the penalties, one picture a primary operator."""
    scales = report.get("scales") or {}
    order = sorted(scales, key=float)
    operators = operator_order({name for table in scales.values() for name in table})
    panels = []
    for operator in operators:
        series = scale_curves([scales[scale].get(operator) or {} for scale in order], lattice)
        if not series:
            continue
        panels.append(
            Panel(
                words(operator),
                line_chart(
                    series,
                    order,
                    name=f"scale-{operator}",
                    title=f"ASR of {words(operator)} against the scale of the penalties",
                    axis="factor on every \u03bb",
                ),
                legend_of(series),
            )
        )
    return panels


def scale_curves(tables: Sequence[Mapping[str, Any]], lattice: Lattice) -> list[Series]:
    """The distinct curves of the subsets, highest first; subsets of one curve are named together.

    Where there are more than `CURVES`, those of the base reward, of single penalties, of the
    minimal subsets and of the whole lattice are kept: the table has all of them.
    """
    names = lattice.ordered({name for table in tables for name in table})
    curves: dict[tuple[float | None, ...], list[str]] = {}
    for name in names:
        curve = tuple((table.get(name) or {}).get("asr") for table in tables)
        curves.setdefault(curve, []).append(name)
    ranked = sorted(curves, key=lambda curve: [-(value or 0.0) for value in curve])
    if len(ranked) > CURVES:
        wanted = {BASE, *lattice.minimal, *names[-1:], *(n for n in names if len(members(n)) == 1)}
        ranked = [curve for curve in ranked if wanted & set(curves[curve])][:CURVES]
    return [
        Series(named_together(curves[curve]), curve, (), style)
        for style, curve in enumerate(ranked)
        if any(value is not None for value in curve)
    ]


def named_together(names: Sequence[str]) -> str:
    """Up to four names, then how many more."""
    if len(names) <= 4:
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3} more"


def legend_of(series: Sequence[Series]) -> tuple[tuple[Markup, str], ...]:
    """Sample and words of every line."""
    return tuple((swatch(one.style), one.label) for one in series)


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A model or pool in a forest plot."""

    name: str
    cell: Cell
    strip: Markup


@dataclass(frozen=True, slots=True)
class Forest:
    """Rows of one selection and contract over a shared axis."""

    heading: str
    rows: tuple[ForestRow, ...]
    axis: Markup


def forests(section: Mapping[str, Any] | None, contracts: Iterable[str]) -> list[Forest]:
    """A forest plot a contract of laundering's oracle-worst ASR, the aggregate first."""
    tables = section or {}
    made = []
    for contract in contracts:
        cells = {
            name: cell_at(tables[name], "oracle_worst", contract)
            for name in sorted(tables, key=lambda name: name != "*")
        }
        if not any(cell.measured for cell in cells.values()):
            continue
        ends = [
            end for cell in cells.values() for end in (cell.asr, *(cell.asr_interval or ())) if end
        ]
        ends += [
            cell.upper
            for cell in cells.values()
            if cell.measured and not cell.attackable and cell.upper is not None
        ]
        high = round_up(max(ends, default=0.05), 3)
        rows = tuple(
            ForestRow(
                label_of(name),
                cell,
                strip(cell.asr, cell.asr_interval, None if cell.attackable else cell.upper, high),
            )
            for name, cell in cells.items()
        )
        made.append(Forest(contract, rows, strip_axis(high)))
    return made


def heat_legend() -> list[tuple[str, str]]:
    """Class and words of every colour of the lattice."""
    ends = [percent(level, 0) for level in HEAT_LEVELS[1:]]
    between = [f"{low} to {high}" for low, high in pairwise(ends)]
    texts = ["none observed", f"up to {ends[0]}", *between, f"over {ends[-1]}"]
    return [(f"heat-{step}", text) for step, text in enumerate(texts)]
