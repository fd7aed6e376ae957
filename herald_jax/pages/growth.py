"""Growth: a quantity against the size of the input, both on logarithmic axes."""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from herald_jax.pages.axes import LogScale, decades, log_ticks
from herald_jax.pages.svg import label, line, marker, path, picture

WIDTH, HEIGHT = 420.0, 260.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 40.0, 22.0, 46.0
# The axis goes so far beyond the quantities that their labels find room.
ROOM = 1.25


def growth_chart(
    points: Sequence[tuple[float, float]],
    *,
    name: str,
    title: str,
    across: str,
    written: Callable[[float], str],
    tick: Callable[[float], str],
    style: int = 0,
) -> Markup:
    """Points, joined in the order of their size.

    Args:
        points: size and quantity, both positive.
        name: unique on the page.
        title: of the picture, for its text alternative.
        across: what sizes are, the title of the horizontal axis.
        written: how a quantity is written at its point, and in the text alternative.
        tick: how it is written at the axis.
        style: colour and mark of the line.
    """
    ordered = sorted(points)
    sizes, quantities = [size for size, _ in ordered], [quantity for _, quantity in ordered]
    columns = decades(min(sizes), max(sizes))
    rows = log_ticks(min(quantities) / ROOM, max(quantities) * ROOM)
    x = LogScale(columns[0], columns[-1], LEFT, WIDTH - RIGHT)
    y = LogScale(rows[0], rows[-1], HEIGHT - BOTTOM, TOP)
    drawn: list[Markup] = []
    for row in rows:
        kind = "base" if row == rows[0] else "grid"
        drawn.append(line(LEFT, y(row), WIDTH - RIGHT, y(row), kind))
        drawn.append(label(LEFT - 8, y(row) + 4, tick(row), anchor="end"))
    for column in columns:
        drawn.append(line(x(column), TOP, x(column), HEIGHT - BOTTOM, "grid"))
        drawn.append(label(x(column), HEIGHT - BOTTOM + 18, f"{column:,.0f}", anchor="middle"))
    drawn.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, across, "axis", "middle"))
    at = [(x(size), y(quantity)) for size, quantity in ordered]
    if len(at) > 1:
        drawn.append(path(at, f"line series-{style}"))
    for (right, up), quantity in zip(at, quantities, strict=True):
        drawn.append(marker(right, up, style))
        # Beside the mark, on the side where the line is not.
        near_end = right > WIDTH - RIGHT - 60
        drawn.append(
            label(
                right - 8 if near_end else right + 8,
                up - 8 if near_end else up + 16,
                written(quantity),
                "strong",
                "end" if near_end else "start",
            )
        )
    words = ", ".join(f"{written(quantity)} at {size:,.0f}" for size, quantity in ordered)
    return picture(
        *drawn, width=WIDTH, height=HEIGHT, name=name, title=title, description=f"{words}."
    )
