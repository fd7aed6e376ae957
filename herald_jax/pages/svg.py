"""Inline SVG as escaped markup: elements, and the frame that gives a picture its words.

Every picture has a title and a description that say in words what it shows; colours come from the
style sheet (`page.css`), so that one picture serves the light and the dark theme and print.
"""

from markupsafe import Markup, escape


def number(value: float) -> str:
    """A coordinate with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """An SVG element; names drop a trailing `_` and turn `_` into `-`, None leaves one out."""
    written = Markup("").join(
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"),
            number(value) if isinstance(value, float) else value,
        )
        for name, value in attributes.items()
        if value is not None
    )
    body = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), written, body)


def picture(
    *children: object,
    width: float,
    height: float,
    name: str,
    title: str,
    description: str,
    class_: str = "plot",
) -> Markup:
    """A whole picture that scales down with its column and is read out as title and description.

    Args:
        children: elements in user units.
        width: of the view box; also the largest width on the page, in CSS pixels.
        height: of the view box.
        name: unique on the page; the ids of title and description are made from it.
        title: short name of the picture.
        description: what it shows, figures included, for those who do not see it.
        class_: class of the `svg` element.
    """
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *children,
        class_=class_,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=number(width),
        height=number(height),
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def rectangle(
    x: float, y: float, width: float, height: float, class_: str, radius: float | None = None
) -> Markup:
    """A rectangle; `radius` rounds its corners."""
    return element(
        "rect",
        x=float(x),
        y=float(y),
        width=float(max(width, 0.0)),
        height=float(max(height, 0.0)),
        rx=radius,
        class_=class_,
    )


def label(x: float, y: float, text: str, class_: str = "tick", anchor: str = "start") -> Markup:
    """A text; `anchor` is `start`, `middle` or `end`."""
    return element("text", text, x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def marker(x: float, y: float, style: int) -> Markup:
    """The mark of series `style`: disc, square, triangle, diamond, ring, then the same again."""
    class_ = f"mark series-{style % STYLES}"
    shape = style % STYLES
    if shape == 0:
        return element("circle", cx=float(x), cy=float(y), r="3.6", class_=class_)
    if shape == 1:
        return rectangle(x - 3.3, y - 3.3, 6.6, 6.6, class_)
    if shape == 2:
        return polygon(((x, y - 4.4), (x + 4.2, y + 3.2), (x - 4.2, y + 3.2)), class_)
    if shape == 3:
        return polygon(((x, y - 4.6), (x + 4.6, y), (x, y + 4.6), (x - 4.6, y)), class_)
    return element("circle", cx=float(x), cy=float(y), r="3.6", class_=f"{class_} hollow")


STYLES = 5


def polygon(points: tuple[tuple[float, float], ...], class_: str) -> Markup:
    """A closed shape."""
    return element(
        "polygon", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), class_=class_
    )


def path(points: list[tuple[float, float]], class_: str) -> Markup:
    """An open line through `points`."""
    steps = " L".join(f"{number(x)} {number(y)}" for x, y in points)
    return element("path", d=f"M{steps}", class_=class_)
