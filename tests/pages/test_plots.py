"""Pictures carry their words, put marks where the data are, and escape what they are given."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.pages.axes import Scale, round_up, ticks
from herald_jax.pages.forest import scale, strip
from herald_jax.pages.hasse import HEAT_LEVELS, Node, hasse, heat
from herald_jax.pages.histogram import histogram
from herald_jax.pages.lines import Series, line_chart

HOSTILE = "<script>alert('x')</script>\"&"


@given(st.floats(0.001, 1e6), st.integers(1, 8))
def test_round_up_is_a_tick_that_covers_the_value(value: float, wanted: int) -> None:
    top = round_up(value, wanted)
    assert top >= value * (1 - 1e-9)
    # A step is at most twice and a half what was asked for, and the top at most a step above.
    assert top <= value * (1 + 2.5 / wanted) * (1 + 1e-9)


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0.0, 1.0, 4) == pytest.approx([0.0, 0.5, 1.0])
    assert ticks(-1.3, 0.9, 4) == pytest.approx([-1.0, 0.0])
    assert ticks(0.0, 0.2, 4) == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])


def test_a_scale_of_no_width_maps_to_the_middle() -> None:
    assert Scale(2.0, 2.0, 0.0, 10.0)(2.0) == 5.0
    assert Scale(0.0, 4.0, 10.0, 0.0)(1.0) == 7.5


def chart(**changes: object) -> str:
    arguments = {"name": "c", "title": HOSTILE, "axis": "K"} | changes
    series = [Series("blind", (0.1, None, 0.2), (None, None, (0.15, 0.3)), 0)]
    return str(line_chart(series, ["1", "2", HOSTILE], **arguments))


def test_line_chart_is_well_formed_and_says_its_figures() -> None:
    root = ET.fromstring(chart())
    assert root.attrib["role"] == "img"
    assert root.find("title").text == HOSTILE
    assert root.attrib["aria-labelledby"] == "c-title c-desc"
    assert root.find("desc").text.startswith("blind: 10.0% at 1, 20.0% at <script>")
    assert "<script>" not in chart()


def test_line_chart_draws_nothing_where_nothing_was_measured() -> None:
    root = ET.fromstring(chart())
    assert len(root.findall("circle")) == 2
    empty = line_chart([Series("x", (None, None))], ["1", "2"], name="e", title="t", axis="K")
    assert "x: not measured." in empty
    assert "<circle" not in empty


def test_histogram_splits_at_zero_where_ties_count() -> None:
    drawn = str(histogram([-1.0, -0.5, -1e-6, 0.5], [3, 2, 4], name="h", title="t", axis="margin"))
    # The last bin starts at zero up to the tie tolerance: 4 succeed, 3 + 2 fail.
    assert "5 below zero, 4 at or above zero." in drawn
    assert len(re.findall('class="bar fails"', drawn)) == 2
    assert len(re.findall('class="bar succeeds"', drawn)) == 1


def test_histogram_refuses_edges_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="2 counts need 3 edges, got 2"):
        histogram([0.0, 1.0], [1, 2], name="h", title="t", axis="margin")


def test_strip_shows_a_bound_only_where_there_is_no_interval() -> None:
    assert 'class="interval"' in strip(0.1, (0.05, 0.2), 0.3, 0.5)
    bare = strip(0.0, None, 0.25, 0.5)
    assert 'class="bound"' in bare
    assert f'x2="{scale(0.5)(0.25):g}"' in bare
    assert "circle" not in strip(None, None, None, 0.5)


def test_heat_sets_measured_zero_apart_from_the_smallest_rate_and_from_unknown() -> None:
    assert [heat(None), heat(0.0), heat(1e-9)] == ["unknown", "heat-0", "heat-1"]
    assert heat(1.0) == f"heat-{len(HEAT_LEVELS)}"


def test_hasse_places_subsets_by_size_and_escapes() -> None:
    nodes = [
        Node("R0", 0, 0.4, ("40%",)),
        Node(HOSTILE, 1, None, ("not measured",)),
        Node("R[L]", 1, 0.0, ("0%",), "minimal"),
    ]
    drawn = str(
        hasse(nodes, [("R0", "R[L]"), ("R0", HOSTILE)], name="l", title="t", description="d")
    )
    root = ET.fromstring(drawn)
    boxes = [g.find("rect") for g in root.findall("g")]
    tops = [float(box.attrib["y"]) for box in boxes]
    assert tops[0] > tops[1] == tops[2]  # the empty set stands at the foot
    assert "node heat-0 minimal" in drawn
    assert "node unknown" in drawn
    assert "<script>" not in drawn
