"""Curves over the updates of a training run: what was measured, and a smoothed line above it.

What was not measured leaves a gap, never a zero; a value that stands alone between two gaps is a
dot. A run of more updates than a picture has columns keeps the extremes of every column.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from herald_jax.pages.axes import Scale, tick_step, ticks
from herald_jax.pages.numbers import MINUS, percent, plain
from herald_jax.pages.svg import STYLES, element, label, line, marker, path, picture

WIDTH, HEIGHT = 330.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 14.0, 10.0, 40.0
SMOOTHED_FROM = 61
"""Updates from which a line is smoothed: fewer can be read as they are."""
COLUMNS = 240
"""Columns of a picture; with more updates each shows the extremes of several."""
DOTS = 2.0
NOTHING = 1e-200
"""What is smaller cannot be told from 0 on an axis."""
NARROWEST = 0.02
"""Length of an axis against the values on it, at least: what hardly differs shall look so."""

Point = tuple[float, float]
Interval = tuple[float, float]
Values = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: a value at every update, None where nothing was measured."""

    label: str
    values: Values
    style: int = 0
    intervals: tuple[Interval | None, ...] = ()


def span(updates: int) -> int:
    """Updates that a smoothed value is the mean of, an odd number; 1 is no smoothing."""
    return 1 if updates < SMOOTHED_FROM else 2 * (updates // 40) + 1


def smooth(
    values: Sequence[float | None], width: int, places: Iterable[int] | None = None
) -> list[float | None]:
    """Centred means of up to `width` values; unmeasured ones stay so.

    Towards an end the window shrinks to half its width, from where on it leans inwards.

    Args:
        values: one an update.
        width: odd.
        places: where the means are wanted; everywhere if None.
    """
    found: list[float | None] = []
    for at in range(len(values)) if places is None else places:
        value = values[at]
        reach = max(min(width // 2, at, len(values) - 1 - at), width // 4)
        known = [v for v in values[max(at - reach, 0) : at + reach + 1] if v is not None]
        found.append(None if value is None else math.fsum(known) / len(known))
    return found


def thin(
    updates: Sequence[int], values: Sequence[float | None], columns: int
) -> list[tuple[int, float | None]]:
    """At most two points of each column, its lowest and its highest, in their order.

    A column without a measured value is a gap.
    """
    each = math.ceil(len(values) / columns) if columns else 1
    if each < 3:
        return list(zip(updates, values, strict=True))
    found: list[tuple[int, float | None]] = []
    for first in range(0, len(values), each):
        known = [
            (value, at)
            for at, value in enumerate(values[first : first + each], first)
            if value is not None
        ]
        if not known:
            found.append((updates[first], None))
            continue
        ends = {min(known)[1], max(known)[1]}
        found += [(updates[at], values[at]) for at in sorted(ends)]
    return found


def runs(points: Sequence[tuple[int, float | None]]) -> list[list[tuple[int, float]]]:
    """Stretches without a gap."""
    found: list[list[tuple[int, float]]] = []
    begun = False
    for update, value in points:
        if value is None:
            begun = False
            continue
        if not begun:
            found.append([])
        found[-1].append((update, value))
        begun = True
    return found


def domain(curves: Sequence[Curve], *, zero: bool) -> tuple[float, float, float]:
    """Round ends that enclose what is drawn, and the step of the ticks between them.

    Args:
        curves: what is drawn.
        zero: whether the axis holds zero in any case.
    """
    drawn = [value for curve in curves for value in curve.values if value is not None]
    drawn += [end for curve in curves for ends in curve.intervals if ends for end in ends]
    if zero or not drawn:
        drawn.append(0.0)
    low, high = min(drawn), max(drawn)
    if high - low < NOTHING:
        # One value only: it stands on the axis, with room above.
        high = low + (abs(low) if abs(low) > NOTHING else 1.0)
    narrow = NARROWEST * max(abs(low), abs(high)) - (high - low)
    if narrow > 0:
        low, high = low - narrow / 2, high + narrow / 2
    step = tick_step(low, high, 4)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step


def tick_text(value: float, step: float) -> str:
    """A tick, with the digits that tell it from the next."""
    if abs(value) < step / 2:
        return "0"
    last = math.floor(math.log10(step) + 1e-9)
    if last < -3 or last > 5:
        digits = max(0, math.floor(math.log10(abs(value)) + 1e-9) - last)
        mantissa, exponent = f"{value:.{digits}e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", MINUS)
    return f"{value:,.{max(0, -last)}f}".replace("-", MINUS)


def percent_tick(value: float, step: float) -> str:
    """A tick of shares."""
    return f"{tick_text(100 * value, 100 * step)}%"


def curve_chart(
    curves: Sequence[Curve],
    updates: Sequence[int],
    *,
    name: str,
    title: str,
    shares: bool = False,
    zero: bool = True,
    marks: bool = False,
    written: Callable[[float], str] = plain,
) -> Markup:
    """Values over updates.

    Args:
        curves: lines, told apart by dash as well as by colour.
        updates: their numbers, increasing.
        name: unique on the page.
        title: of the picture, for its text alternative.
        shares: whether values are shares, written as percent.
        zero: whether the axis holds zero in any case.
        marks: a mark at every value, and whiskers where a curve has intervals; nothing is smoothed.
        written: how a value is written in the text alternative.
    """
    low, high, step = domain(curves, zero=zero)
    first, last = (updates[0], updates[-1]) if updates else (0, 0)
    x = Scale(float(first), float(last), LEFT + 6, WIDTH - RIGHT)
    y = Scale(low, high, HEIGHT - BOTTOM, TOP)
    drawn: list[Markup] = []
    measured = any(value is not None for curve in curves for value in curve.values)
    for at in range(round((high - low) / step) + 1) if measured else ():
        tick = low + at * step
        kind = "base" if not at or abs(tick) < step / 2 else "grid"
        drawn.append(line(LEFT, y(tick), WIDTH - RIGHT, y(tick), kind))
        text = percent_tick(tick, step) if shares else tick_text(tick, step)
        drawn.append(label(LEFT - 6, y(tick) + 4, text, anchor="end"))
    for update in update_ticks(first, last):
        drawn.append(line(x(update), HEIGHT - BOTTOM, x(update), HEIGHT - BOTTOM + 4, "base"))
        drawn.append(label(x(update), HEIGHT - BOTTOM + 17, f"{update:,}", anchor="middle"))
    drawn.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "updates", "axis", "middle"))
    say: Callable[[float], str] = percent if shares else written
    # The first is solid: a dashed one above it leaves both to be seen where they coincide.
    if not marks and span(len(updates)) > 1:
        drawn += [one for curve in curves for one in raw(curve, updates, x, y)]
    draw = marked if marks else drawn_curve
    drawn += [one for curve in curves for one in draw(curve, updates, x, y)]
    if not measured:
        middle = (TOP + HEIGHT - BOTTOM) / 2
        drawn.append(line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "base"))
        drawn.append(label((LEFT + WIDTH - RIGHT) / 2, middle, "not measured", "axis", "middle"))
    return picture(
        *drawn,
        width=WIDTH,
        height=HEIGHT,
        name=name,
        title=title,
        description=" ".join(describe(curve, updates, say) for curve in curves),
    )


def update_ticks(first: int, last: int) -> list[int]:
    """Round numbers of updates; both ends of a short run."""
    if last - first < 4:
        return list(range(first, last + 1))
    return [round(tick) for tick in ticks(float(first), float(last))]


def raw(curve: Curve, updates: Sequence[int], x: Scale, y: Scale) -> list[Markup]:
    """The line of a curve as it was measured, light, to stand below the smoothed one."""
    points = thin(updates, curve.values, COLUMNS)
    return stretches(points, x, y, f"line raw series-{curve.style % STYLES}")


def drawn_curve(curve: Curve, updates: Sequence[int], x: Scale, y: Scale) -> list[Markup]:
    """The line of a curve, smoothed where there are many updates."""
    # Smooth as it is, points of even distance show it; the last is always one.
    count = len(updates)
    if not count:
        return []
    places = [*range(0, count - 1, math.ceil(count / (2 * COLUMNS))), count - 1]
    means = smooth(curve.values, span(count), places)
    points = [(updates[at], mean) for at, mean in zip(places, means, strict=True)]
    return stretches(points, x, y, f"line series-{curve.style % STYLES}")


def stretches(
    points: Sequence[tuple[int, float | None]], x: Scale, y: Scale, class_: str
) -> list[Markup]:
    """A line for each stretch without a gap, a dot for each value that stands alone."""
    drawn = []
    for stretch in runs(points):
        at = [(x(update), y(value)) for update, value in stretch]
        drawn.append(path(at, class_) if len(at) > 1 else dot(at[0], class_))
    return drawn


def dot(at: Point, class_: str) -> Markup:
    """A value between two gaps."""
    return element("circle", cx=float(at[0]), cy=float(at[1]), r=DOTS, class_=f"{class_} alone")


def marked(curve: Curve, updates: Sequence[int], x: Scale, y: Scale) -> list[Markup]:
    """A curve of few values: line, whiskers, marks."""
    style = curve.style % STYLES
    # A little aside, so that the whiskers of two curves are both seen.
    aside = Scale(x.low, x.high, x.start + 3.0 * style, x.end + 3.0 * style)
    points = list(zip(updates, curve.values, strict=True))
    drawn = stretches(points, aside, y, f"line series-{style}")
    for (update, value), ends in zip(points, curve.intervals or [None] * len(points), strict=True):
        if ends is not None:
            across = aside(update)
            drawn.append(line(across, y(ends[0]), across, y(ends[1]), f"whisker series-{style}"))
        if value is not None:
            drawn.append(marker(aside(update), y(value), style))
    return drawn


def describe(curve: Curve, updates: Sequence[int], written: Callable[[float], str]) -> str:
    """The curve in words: where it begins and ends, its extremes, how much was not measured."""
    known = [(u, v) for u, v in zip(updates, curve.values, strict=True) if v is not None]
    if not known:
        return f"{curve.label}: not measured."
    (first, begin), (last, end) = known[0], known[-1]
    if len(known) == 1:
        text = f"{written(begin)} at update {first:,}"
    else:
        values = [value for _, value in known]
        text = (
            f"{written(begin)} at update {first:,}, {written(end)} at update {last:,}, "
            f"between {written(min(values))} and {written(max(values))}"
        )
    gaps = len(curve.values) - len(known)
    return f"{curve.label}: {text}{f'; {gaps:,} not measured' if gaps else ''}."


def swatch(style: int, *, mark: bool = False) -> Markup:
    """The sample of a curve for a legend; the words stand beside it."""
    return element(
        "svg",
        line(1, 7, 29, 7, f"line series-{style % STYLES}"),
        *([marker(15, 7, style)] if mark else []),
        class_="swatch",
        viewBox="0 0 30 14",
        width="30",
        height="14",
        aria_hidden="true",
    )
