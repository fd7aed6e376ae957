"""Histogram of margins with the line that divides failures from successes."""

from collections.abc import Sequence

from markupsafe import Markup

from herald_jax.pages.axes import Scale, ticks
from herald_jax.pages.numbers import count, plain
from herald_jax.pages.svg import label, line, picture, rectangle

WIDTH, HEIGHT = 330.0, 176.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 14.0, 30.0, 40.0

# A bin whose lower edge is zero up to the tie tolerance holds successes only: ties count.
TIE = 1e-5

# A bar as narrow as its bin may be is hard to see.
NARROWEST = 3.0


def histogram(
    edges: Sequence[float],
    counts: Sequence[int],
    *,
    name: str,
    title: str,
    axis: str,
    span: tuple[float, float] | None = None,
) -> Markup:
    """Bars of `counts` between `edges`; bars at or above zero are successes and are drawn so.

    Args:
        edges: ascending, one more than `counts`.
        counts: of each bin.
        name: unique on the page.
        title: of the picture, for its text alternative.
        axis: title of the horizontal axis.
        span: ends of the horizontal axis, to give several histograms one scale.

    Raises:
        ValueError: `edges` does not have one entry more than `counts`.
    """
    if len(edges) != len(counts) + 1:
        raise ValueError(f"{len(counts)} counts need {len(counts) + 1} edges, got {len(edges)}")
    low, high = span or (edges[0], edges[-1])
    low, high = min(low, 0.0), max(high, 0.0)
    x = Scale(low, high, LEFT, WIDTH - RIGHT)
    tallest = float(max(counts, default=0) or 1)
    y = Scale(0.0, tallest, HEIGHT - BOTTOM, TOP)
    drawn: list[Markup] = []
    for value in ticks(0.0, tallest, 2):
        if value and value.is_integer():
            drawn.append(line(LEFT, y(value), WIDTH - RIGHT, y(value), "grid"))
            drawn.append(label(LEFT - 6, y(value) + 4, count(int(value)), anchor="end"))
    for left, right, height in zip(edges, edges[1:], counts, strict=False):
        if height:
            drawn.append(bar(x(left), x(right), y(height), y(0.0), left >= -TIE))
    drawn.append(line(LEFT, y(0.0), WIDTH - RIGHT, y(0.0), "base"))
    for value in ticks(low, high, 5):
        drawn.append(line(x(value), y(0.0), x(value), y(0.0) + 4, "base"))
        drawn.append(label(x(value), HEIGHT - BOTTOM + 17, plain(value), anchor="middle"))
    drawn.append(line(x(0.0), TOP - 10, x(0.0), y(0.0), "divide"))
    fails, succeeds = split(edges, counts)
    drawn.append(label(LEFT, 12, f"fails: {count(fails)}"))
    drawn.append(label(WIDTH - RIGHT, 12, f"succeeds: {count(succeeds)}", "tick strong", "end"))
    drawn.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, axis, "axis", "middle"))
    bins = [
        f"{count(height)} between {plain(left)} and {plain(right)}"
        for left, right, height in zip(edges, edges[1:], counts, strict=False)
        if height
    ]
    return picture(
        *drawn,
        width=WIDTH,
        height=HEIGHT,
        name=name,
        title=title,
        description=f"{count(fails)} below zero, {count(succeeds)} at or above zero. "
        + "; ".join(bins),
    )


def bar(left: float, right: float, top: float, foot: float, succeeds: bool) -> Markup:
    """One bar; a narrow one is widened away from the dividing line, never across it."""
    width = max(right - left - 0.8, NARROWEST)
    start = left + 0.4 if succeeds else right - 0.4 - width
    return rectangle(start, top, width, foot - top, f"bar {'succeeds' if succeeds else 'fails'}")


def split(edges: Sequence[float], counts: Sequence[int]) -> tuple[int, int]:
    """How many lie below zero, and how many at or above it."""
    succeeds = sum(c for left, c in zip(edges, counts, strict=False) if left >= -TIE)
    return sum(counts) - succeeds, succeeds
