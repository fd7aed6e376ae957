"""Line chart of shares over ordered settings (a budget, a scale of the penalties)."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from herald_jax.pages.axes import Scale, round_up, ticks
from herald_jax.pages.numbers import percent, percent_range
from herald_jax.pages.svg import STYLES, element, label, line, marker, path, picture

WIDTH, HEIGHT = 330.0, 214.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 12.0, 42.0


@dataclass(frozen=True, slots=True)
class Series:
    """One line: a share at every position, None where nothing was measured."""

    label: str
    values: tuple[float | None, ...]
    intervals: tuple[tuple[float, float] | None, ...] = ()
    style: int = 0

    def points(self) -> list[tuple[int, float, tuple[float, float] | None]]:
        """Position, value and interval of what was measured."""
        intervals = self.intervals or (None,) * len(self.values)
        return [
            (position, value, interval)
            for position, (value, interval) in enumerate(zip(self.values, intervals, strict=True))
            if value is not None
        ]


def line_chart(
    series: Sequence[Series],
    positions: Sequence[str],
    *,
    name: str,
    title: str,
    axis: str,
    top: float | None = None,
) -> Markup:
    """Shares against equally spaced `positions`, with intervals as whiskers.

    Args:
        series: the lines, told apart by dash and mark as well as by colour.
        positions: labels under the horizontal axis.
        name: unique on the page.
        title: of the picture, for its text alternative.
        axis: title of the horizontal axis.
        top: upper end of the vertical axis, to give several charts one scale; the data's otherwise.
    """
    high = round_up(highest(series) if top is None else top) or 0.04
    x = Scale(0.0, float(len(positions) - 1), LEFT + 14, WIDTH - RIGHT - 14)
    y = Scale(0.0, high, HEIGHT - BOTTOM, TOP)
    drawn: list[Markup] = []
    for value in ticks(0.0, high):
        drawn.append(line(LEFT, y(value), WIDTH - RIGHT, y(value), "base" if not value else "grid"))
        drawn.append(label(LEFT - 6, y(value) + 4, percent(value, axis_digits(high)), anchor="end"))
    for position, text in enumerate(positions):
        drawn.append(label(x(position), HEIGHT - BOTTOM + 17, text, anchor="middle"))
    drawn.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, axis, "axis", "middle"))
    # The first series is the one that matters most: it is drawn last, above the others.
    for one in reversed(series):
        drawn.extend(draw(one, x, y, dodge(series, one)))
    return picture(
        *drawn,
        width=WIDTH,
        height=HEIGHT,
        name=name,
        title=title,
        description=" ".join(describe(one, positions) for one in series),
    )


def highest(series: Sequence[Series]) -> float:
    """The largest value or interval end."""
    ends = [
        max(value, *interval) if interval else value
        for one in series
        for _, value, interval in one.points()
    ]
    return max(ends, default=0.0)


def axis_digits(high: float) -> int:
    """Decimals that tell the ticks of an axis up to `high` apart."""
    return 0 if high >= 0.04 else 1 if high >= 0.004 else 2


def dodge(series: Sequence[Series], one: Series) -> float:
    """How far a series with whiskers stands aside, so that none hides another's."""
    rivals = [other for other in series if any(other.intervals)]
    if one not in rivals:
        return 0.0
    shared = [o for o in rivals if {p for p, _, _ in o.points()} & {p for p, _, _ in one.points()}]
    return 4.0 * (shared.index(one) - (len(shared) - 1) / 2)


def draw(one: Series, x: Scale, y: Scale, shift: float) -> list[Markup]:
    """Line, whiskers and marks of a series."""
    style = one.style % STYLES
    at = [(x(position) + shift, y(value)) for position, value, _ in one.points()]
    drawn = [path(at, f"line series-{style}")] if len(at) > 1 else []
    for (across, _), (_, _, interval) in zip(at, one.points(), strict=True):
        if interval is not None:
            low, high = y(interval[0]), y(interval[1])
            drawn.append(line(across, low, across, high, f"whisker series-{style}"))
    return drawn + [marker(across, up, style) for across, up in at]


def describe(one: Series, positions: Sequence[str]) -> str:
    """The series in words."""
    points = [
        f"{percent(value)} at {positions[position]}"
        + (f" (interval {percent_range(interval)})" if interval else "")
        for position, value, interval in one.points()
    ]
    return f"{one.label}: {', '.join(points) or 'not measured'}."


def swatch(style: int) -> Markup:
    """The sample of a series for a legend; the words stand beside it."""
    return element(
        "svg",
        line(1, 7, 29, 7, f"line series-{style % STYLES}"),
        marker(15, 7, style),
        class_="swatch",
        viewBox="0 0 30 14",
        width="30",
        height="14",
        aria_hidden="true",
    )
