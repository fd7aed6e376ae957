"""Forest plot: one strip a row, with the estimate, its interval and a shared axis.

The strips are pictures of their own, so that names and figures beside them are text that wraps.
"""

from markupsafe import Markup

from herald_jax.pages.axes import Scale, ticks
from herald_jax.pages.lines import axis_digits
from herald_jax.pages.numbers import percent
from herald_jax.pages.svg import element, label, line, marker, rectangle

WIDTH, HEIGHT, AXIS_HEIGHT, PAD = 240.0, 30.0, 26.0, 14.0


def scale(high: float) -> Scale:
    """Shares from 0 to `high` across a strip."""
    return Scale(0.0, high, PAD, WIDTH - PAD)


def strip(
    value: float | None, interval: tuple[float, float] | None, bound: float | None, high: float
) -> Markup:
    """The estimate as a mark, its interval as a bar; a bare `bound` as an open bracket from zero.

    The figures stand beside the strip, which is therefore hidden from screen readers.
    """
    x, middle = scale(high), HEIGHT / 2
    drawn = [line(x(tick), 0, x(tick), HEIGHT, "grid") for tick in ticks(0.0, high, 3)]
    if interval is not None:
        drawn.append(
            rectangle(
                x(interval[0]), middle - 2.5, x(interval[1]) - x(interval[0]), 5, "interval", 2.5
            )
        )
    elif bound is not None:
        drawn.append(line(x(0.0), middle, x(bound), middle, "bound"))
        drawn.append(line(x(bound), middle - 5, x(bound), middle + 5, "bound end"))
    if value is not None:
        drawn.append(marker(x(value), middle, 0))
    return frame(HEIGHT, drawn)


def strip_axis(high: float) -> Markup:
    """The axis under the strips."""
    x = scale(high)
    drawn = [line(PAD, 0.5, WIDTH - PAD, 0.5, "base")]
    for tick in ticks(0.0, high, 3):
        drawn.append(line(x(tick), 0, x(tick), 4, "base"))
        drawn.append(label(x(tick), 18, percent(tick, axis_digits(high)), anchor="middle"))
    return frame(AXIS_HEIGHT, drawn)


def delta_bar(value: float, extent: float) -> Markup:
    """A bar to the left or right of a middle line, as long as `value` is against `extent`."""
    x = Scale(-extent, extent, 2.0, 118.0)
    start, end = sorted((x(0.0), x(value)))
    kind = "bar succeeds" if value > 0 else "bar fails"
    return element(
        "svg",
        rectangle(start, 3, end - start, 8, kind),
        line(x(0.0), 0, x(0.0), 14, "base"),
        class_="delta",
        viewBox="0 0 120 14",
        width="120",
        height="14",
        aria_hidden="true",
    )


def frame(height: float, drawn: list[Markup]) -> Markup:
    """A strip of the common width."""
    return element(
        "svg",
        *drawn,
        class_="strip",
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        width=f"{WIDTH:.0f}",
        height=f"{height:.0f}",
        aria_hidden="true",
    )
