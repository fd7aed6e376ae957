"""Hasse diagram of a small subset lattice: one box a subset, one line an added element."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from herald_jax.pages.axes import Scale
from herald_jax.pages.svg import element, label, line, picture, rectangle

LINE, ROW_GAP, COLUMN_GAP, MARGIN = 16.0, 30.0, 14.0, 3.0
# Widths of a character of the bold key and of the other lines.
KEY_CHARACTER, CHARACTER, PADDING = 7.9, 6.7, 16.0
HEAT_LEVELS = (0.0, 0.01, 0.05, 0.2, 0.5)


@dataclass(frozen=True, slots=True)
class Node:
    """A subset.

    Attributes:
        key: name of the subset, first line of its box.
        rank: how many elements it has.
        share: what colours it; None when not measured.
        lines: further lines of its box, figures and the words for its mark.
        class_: extra class of the box, for the mark.
    """

    key: str
    rank: int
    share: float | None
    lines: tuple[str, ...]
    class_: str = ""


def heat(share: float | None) -> str:
    """The colour class of a share: measured zero, then five steps, or unknown."""
    if share is None:
        return "unknown"
    return f"heat-{sum(share > level for level in HEAT_LEVELS)}"


def hasse(
    nodes: Sequence[Node],
    edges: Sequence[tuple[str, str]],
    *,
    name: str,
    title: str,
    description: str,
) -> Markup:
    """The lattice with the empty set at the foot, subsets of one size in one row.

    Args:
        nodes: in the order in which a row shows them.
        edges: (subset, subset with one element more), by key.
        name: unique on the page.
        title: of the picture.
        description: what it shows, in words.
    """
    ranks = sorted({node.rank for node in nodes}, reverse=True)
    rows = [[node for node in nodes if node.rank == rank] for rank in ranks]
    keys = max(len(node.key) for node in nodes) * KEY_CHARACTER
    lines = max(len(text) for node in nodes for text in node.lines) * CHARACTER
    box = max(keys, lines) + PADDING
    columns = max(len(row) for row in rows)
    tall = LINE * (1 + max(len(node.lines) for node in nodes)) + 10
    width = columns * box + (columns - 1) * COLUMN_GAP + 2 * MARGIN
    height = len(rows) * tall + (len(rows) - 1) * ROW_GAP + 2 * MARGIN
    place: dict[str, tuple[float, float]] = {}
    for depth, row in enumerate(rows):
        half = (len(row) * box + (len(row) - 1) * COLUMN_GAP) / 2
        x = Scale(0.0, 1.0, width / 2 - half, width / 2 - half + box + COLUMN_GAP)
        for column, node in enumerate(row):
            place[node.key] = (x(float(column)), MARGIN + depth * (tall + ROW_GAP))
    drawn = [
        line(
            place[low][0] + box / 2,
            place[low][1],
            place[high][0] + box / 2,
            place[high][1] + tall,
            "grid",
        )
        for low, high in edges
    ]
    drawn.extend(draw(node, *place[node.key], box, tall) for node in nodes)
    return picture(
        *drawn, width=width, height=height, name=name, title=title, description=description
    )


def draw(node: Node, x: float, y: float, box: float, tall: float) -> Markup:
    """Box and words of a subset."""
    texts = [label(x + box / 2, y + 17, node.key, "name", "middle")]
    for position, text in enumerate(node.lines):
        texts.append(label(x + box / 2, y + 17 + LINE * (position + 1), text, "figure", "middle"))
    shape = rectangle(x, y, box, tall, "box", 4.0)
    classes = " ".join(part for part in ("node", heat(node.share), node.class_) if part)
    return element("g", shape, *texts, class_=classes)
