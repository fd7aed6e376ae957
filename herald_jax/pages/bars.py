"""Ratios as bars on a logarithmic axis that begins at 1, one strip a row, with a mark at the goal.

The strips are pictures of their own, so that names and figures beside them are text that wraps.
"""

from markupsafe import Markup

from herald_jax.pages.axes import LogScale, decades
from herald_jax.pages.forest import AXIS_HEIGHT, HEIGHT, PAD, WIDTH, frame
from herald_jax.pages.svg import label, line, polygon, rectangle

THICK = 12.0


def domain(values: list[float]) -> tuple[float, float]:
    """Powers of ten that enclose 1 and all values; values are positive."""
    ends = decades(min([1.0, *values]), max([1.0, *values]))
    return ends[0], ends[-1]


def ratio_strip(
    ratio: float, goal: float | None, met: bool | None, ends: tuple[float, float]
) -> Markup:
    """A bar from 1 to the ratio, whose kind says whether the goal is met, and the goal's mark.

    The figures stand beside the strip, which is therefore hidden from screen readers.
    """
    x, middle = scale(ends), HEIGHT / 2
    drawn = [line(x(tick), 0, x(tick), HEIGHT, "grid") for tick in decades(*ends)]
    left, right = sorted((x(1.0), x(ratio)))
    kind = {True: "met", False: "missed", None: "aimless"}[met]
    drawn.append(
        rectangle(left, middle - THICK / 2, max(right - left, 1.5), THICK, f"bar {kind}", 1.5)
    )
    drawn.append(line(x(1.0), 0, x(1.0), HEIGHT, "base"))
    if goal is not None:
        at = x(goal)
        drawn.append(line(at, 3, at, HEIGHT - 3, "goal"))
        drawn.append(polygon(((at - 4, 0), (at + 4, 0), (at, 6)), "goal end"))
    return frame(HEIGHT, drawn)


def ratio_axis(ends: tuple[float, float]) -> Markup:
    """The axis under the strips; a label for every decade that there is room for."""
    x, ticks = scale(ends), decades(*ends)
    drawn = [line(PAD, 0.5, WIDTH - PAD, 0.5, "base")]
    every = -(-len(ticks) // 5)
    for number, tick in enumerate(ticks):
        drawn.append(line(x(tick), 0, x(tick), 4, "base"))
        if number % every == 0:
            # At the ends there is no room on both sides.
            anchor = {0: "start", len(ticks) - 1: "end"}.get(number, "middle")
            shift = {"start": 2 - PAD, "end": PAD - 2}.get(anchor, 0.0)
            drawn.append(label(x(tick) + shift, 18, f"{tick:,g}x", anchor=anchor))
    return frame(AXIS_HEIGHT, drawn)


def scale(ends: tuple[float, float]) -> LogScale:
    """Ratios across a strip."""
    return LogScale(*ends, PAD, WIDTH - PAD)
