"""Curves: gaps where nothing was measured, axes that hold the data, extremes that are kept."""

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.pages.axes import Scale
from herald_jax.pages.curves import (
    BOTTOM,
    COLUMNS,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Curve,
    curve_chart,
    domain,
    runs,
    smooth,
    span,
    thin,
    tick_text,
    update_ticks,
)

HOSTILE = "<script>alert('x')</script>\"&"
FLOATS = st.floats(-1e6, 1e6)
VALUES = st.lists(st.none() | FLOATS, min_size=1, max_size=60)


def drawn(*curves: Curve, updates: range | None = None, **changes) -> ET.Element:
    arguments = {"name": "c", "title": "t"} | changes
    updates = range(1, len(curves[0].values) + 1) if updates is None else updates
    return ET.fromstring(str(curve_chart(curves, updates, **arguments)))


def points(path: ET.Element) -> list[tuple[float, float]]:
    steps = path.attrib["d"].removeprefix("M").split(" L")
    return [tuple(float(c) for c in step.split(" ")) for step in steps]


def lines_of(root: ET.Element, class_: str = "line series-0") -> list[ET.Element]:
    return [path for path in root.findall("path") if path.attrib["class"] == class_]


def test_a_gap_is_a_gap_and_a_value_alone_a_dot() -> None:
    root = drawn(Curve("loss", (1.0, 2.0, None, 4.0, None, 3.0, 3.0)))
    assert [len(points(path)) for path in lines_of(root)] == [2, 2]
    (dot,) = root.findall("circle")
    assert dot.attrib["class"].endswith("alone")
    # Seven updates from LEFT + 6 to WIDTH - RIGHT; values on an axis from 0 to 4.
    x = Scale(1, 7, LEFT + 6, WIDTH - RIGHT)
    y = Scale(0, 4, HEIGHT - BOTTOM, TOP)
    assert float(dot.attrib["cx"]) == pytest.approx(x(4), abs=0.01)
    assert float(dot.attrib["cy"]) == pytest.approx(y(4.0), abs=0.01)
    assert points(lines_of(root)[0]) == [
        pytest.approx((x(1), y(1.0)), abs=0.01),
        pytest.approx((x(2), y(2.0)), abs=0.01),
    ]
    assert root.find("desc").text == (
        "loss: 1 at update 1, 3 at update 7, between 1 and 4; 2 not measured."
    )


def test_nothing_measured_is_said_and_no_axis_pretends_a_scale() -> None:
    root = drawn(Curve("KL", (None, None, None)))
    words = [text.text for text in root.findall("text")]
    assert "not measured" in words
    assert "0" not in words
    assert not root.findall("path")
    assert root.find("desc").text == "KL: not measured."
    assert drawn(Curve("KL", ()), updates=range(0)).find("desc").text == "KL: not measured."


def test_few_updates_are_not_smoothed_and_many_keep_their_raw_line() -> None:
    assert span(60) == 1
    assert span(61) == 3
    assert span(200) == 11
    assert all(span(n) % 2 for n in range(1, 500))
    few = drawn(Curve("a", tuple(float(n % 2) for n in range(60))))
    assert not lines_of(few, "line raw series-0")
    many = drawn(Curve("a", tuple(float(n % 2) for n in range(61))))
    (raw,), (line,) = lines_of(many, "line raw series-0"), lines_of(many)
    assert len(points(raw)) == len(points(line)) == 61
    # The raw line goes from the foot to the top of the axis, the smoothed one does not.
    assert {y for _, y in points(raw)} == {HEIGHT - BOTTOM, TOP}
    inner = [y for _, y in points(line)[1:-1]]
    assert TOP < min(inner) <= max(inner) < HEIGHT - BOTTOM


def test_a_run_of_many_updates_keeps_its_ends_and_few_points() -> None:
    many = drawn(Curve("a", tuple(float(n % 7) for n in range(5000))))
    (raw,), (line,) = lines_of(many, "line raw series-0"), lines_of(many)
    assert max(len(points(raw)), len(points(line))) <= 2 * COLUMNS + 1
    assert points(line)[0][0] == LEFT + 6
    assert points(line)[-1][0] == WIDTH - RIGHT


def test_a_mean_leans_inwards_at_the_ends() -> None:
    # Width 5: two on each side in the middle, at least one (5 // 4) towards the inside at an end.
    assert smooth([0.0, 10.0, 20.0, 30.0, 40.0], 5) == [5.0, 10.0, 20.0, 30.0, 35.0]
    # (1 + 3) / 2 around the unmeasured one, which stays unmeasured.
    assert smooth([1.0, None, 3.0, 5.0], 3) == [1.0, None, 4.0, 5.0]


@given(VALUES, st.integers(0, 10))
def test_smoothing_keeps_gaps_and_stays_within_the_data(values, half) -> None:
    found = smooth(values, 2 * half + 1)
    assert [value is None for value in found] == [value is None for value in values]
    known = [value for value in values if value is not None]
    assert all(
        min(known) - 1e-6 <= value <= max(known) + 1e-6 for value in found if value is not None
    )
    if half == 0:
        assert found == values


@given(VALUES, st.integers(1, 20))
def test_thinning_keeps_order_and_extremes(values, columns) -> None:
    updates = list(range(10, 10 + len(values)))
    found = thin(updates, values, columns)
    assert [u for u, _ in found] == sorted({u for u, _ in found})
    known = [value for value in values if value is not None]
    kept = [value for _, value in found if value is not None]
    assert all(values[update - 10] == value for update, value in found)
    if known:
        assert (min(kept), max(kept)) == (min(known), max(known))
    each = math.ceil(len(values) / columns)
    assert len(found) <= (len(values) if each < 3 else 2 * columns)


def test_a_column_without_a_value_is_a_gap() -> None:
    found = thin(range(6), [1.0, 2.0, 3.0, None, None, None], 2)
    assert found == [(0, 1.0), (2, 3.0), (3, None)]
    assert runs(found) == [[(0, 1.0), (2, 3.0)]]


@given(st.lists(FLOATS, min_size=1, max_size=20), st.booleans())
def test_the_axis_holds_what_is_drawn_at_a_whole_number_of_steps(values, zero) -> None:
    low, high, step = domain([Curve("a", tuple(values))], zero=zero)
    slack = 1e-6 * step
    assert low - slack <= min(values) and max(values) <= high + slack
    assert not zero or low - slack <= 0.0 <= high + slack
    steps = (high - low) / step
    assert steps == pytest.approx(round(steps), abs=1e-3)
    assert 1 <= round(steps) <= 6


def test_what_hardly_differs_looks_so() -> None:
    low, high, step = domain([Curve("ratio", (1.0 - 1e-6, 1.0 + 1e-6))], zero=False)
    assert low <= 0.99 and high >= 1.01
    assert [tick_text(low + n * step, step) for n in range(3)] == ["0.98", "0.99", "1.00"]


def test_the_axis_holds_whiskers() -> None:
    low, high, _ = domain([Curve("a", (0.5,), 0, ((-0.2, 1.3),))], zero=True)
    assert low <= -0.2 and high >= 1.3


def test_marks_and_whiskers_stand_at_their_values() -> None:
    curve = Curve("EM", (0.2, None, 0.6), 0, ((0.1, 0.3), None, None))
    root = drawn(curve, updates=range(0, 30, 10), marks=True, shares=True)
    assert len(root.findall("circle")) == 2 + 2  # marks, and each alone between gaps
    (whisker,) = [one for one in root.findall("line") if "whisker" in one.attrib["class"]]
    y = Scale(0, 0.6, HEIGHT - BOTTOM, TOP)
    ends = [float(whisker.attrib[end]) for end in ("y1", "y2")]
    assert ends == [pytest.approx(y(0.1), abs=0.01), pytest.approx(y(0.3), abs=0.01)]
    assert "EM: 20.0% at update 0, 60.0% at update 20" in root.find("desc").text


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0.0, 0.5, "0"),
        (0.15, 0.05, "0.15"),
        (-0.02, 0.005, "−0.020"),
        (1500.0, 500.0, "1,500"),
        (2e-6, 1e-6, "2e−6"),
        (1.2e-5, 1e-6, "1.2e−5"),
        (2.5e7, 5e6, "2.5e7"),
    ],
)
def test_ticks_have_the_digits_that_tell_them_apart(value, step, text) -> None:
    assert tick_text(value, step) == text


def test_updates_at_the_axis_are_whole() -> None:
    assert update_ticks(1, 1) == [1]
    assert update_ticks(0, 3) == [0, 1, 2, 3]
    assert update_ticks(1, 200) == [50, 100, 150, 200]


def test_words_stay_words() -> None:
    root = drawn(Curve(HOSTILE, (1.0, 2.0)), title=HOSTILE)
    assert root.find("title").text == HOSTILE
    assert root.find("desc").text.startswith(HOSTILE)
