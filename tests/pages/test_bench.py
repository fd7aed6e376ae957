"""The page of benchmarks: what was missed never looks met, every bar stands where its ratio is."""

import html
import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages.bench_sample import POINTS, benchmark, results, row, sample

from herald_jax.pages.axes import LogScale, decades, log_ticks
from herald_jax.pages.bars import domain, ratio_axis, ratio_strip, scale
from herald_jax.pages.bench import goals, headline, render_bench, written
from herald_jax.pages.growth import growth_chart
from herald_jax.pages.numbers import duration, figure

HOSTILE = "<script>alert('x')</script>\"&"
POSITIVE = st.floats(1e-3, 1e7)


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))


def test_it_counts_goals_and_says_what_failed() -> None:
    data = sample()
    assert goals(data) == (1, 5)
    assert headline(1, 5, data) == "1 of 5 goals met, 1 of 3 benchmarks failed"
    page = render_bench(data)
    words = text_of(page)
    assert "1 of 5 goals met, 1 of 3 benchmarks failed" in words
    assert "ImportError: no rank_bm25" in words
    assert "failed: no such file" in words
    assert words.count("MISSED") == 4 + 1  # in the table, and beside the one bar
    assert "400x" in words and "≥ 350x" in words
    assert "≤ 2 GB" in words
    assert "A processor, 2 of 4 cores" in words and "20.0 GB/s" in words
    # No network, no scripts.
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")


def test_a_missed_goal_never_looks_met() -> None:
    assert written(row("a", ratio=5.9999, goal=6)) == ("5.99x", "≥ 6x")
    assert written(row("a", ratio=2.001, unit="GB", goal=2, at_most=True)) == ("2.01 GB", "≤ 2 GB")
    assert written(row("a", ratio=99_999.6, unit="rows/s", goal=100_000)) == (
        "99,999 rows/s",
        "≥ 100,000 rows/s",
    )
    assert written(row("a", met=False)) == ("", "")


@given(POSITIVE, st.sampled_from(["x", "%", "GB"]))
def test_figures_are_rounded_to_the_worse_side(value: float, unit: str) -> None:
    numbers = [
        float(figure(value, unit, up=up).replace(",", "").rstrip("xGB% ")) for up in (False, True)
    ]
    assert numbers[0] * (1 - 1e-9) <= value * (1 + 1e-9)
    assert numbers[1] * (1 + 1e-9) >= value * (1 - 1e-9)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.000412, "0.412 ms"), (3.2, "3.2 s"), (59.96, "60 s"), (125.2, "2 min 05 s"), (None, None)],
)
def test_duration(seconds: float | None, words: str | None) -> None:
    assert duration(seconds) == (words or "not measured")


def test_a_run_without_goals_or_ratios_has_a_page() -> None:
    page = render_bench(results(benchmark("memory", row("read", ratio=20.0, unit="GB/s"))))
    assert "No goal was measured" in page
    assert "Every goal met" not in page


def test_a_run_that_was_cut_short_says_so() -> None:
    assert "cut short" in render_bench(sample() | {"complete": False})
    assert "cut short" not in render_bench(sample())


def test_words_of_benchmarks_stay_words() -> None:
    data = results(
        benchmark(HOSTILE, row(HOSTILE, against=HOSTILE, ratio=2.0, detail={HOSTILE: HOSTILE}))
    )
    assert "<script>" not in render_bench(data)
    assert HOSTILE.split(">")[1].split("<")[0] in text_of(render_bench(data))


@given(st.lists(POSITIVE, max_size=5))
def test_the_axis_holds_1_and_every_ratio(values: list[float]) -> None:
    low, high = domain(values)
    assert low <= 1.0 <= high
    assert all(low * (1 - 1e-9) <= value <= high * (1 + 1e-9) for value in values)
    ET.fromstring(str(ratio_axis((low, high))))


@given(POSITIVE, POSITIVE)
def test_ticks_enclose_what_is_drawn(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    for ticks in (decades(low, high), log_ticks(low, high)):
        assert len(ticks) >= 2
        assert ticks == sorted(set(ticks))
        assert ticks[0] <= low * (1 + 1e-6) and ticks[-1] >= high * (1 - 1e-6)


def test_a_log_scale_has_equal_steps_for_equal_factors() -> None:
    x = LogScale(1.0, 1000.0, 0.0, 300.0)
    assert [round(x(value)) for value in (1.0, 10.0, 100.0, 1000.0)] == [0, 100, 200, 300]
    assert math.isclose(x(math.sqrt(10)), 50)


def test_a_bar_reaches_from_1_to_the_ratio_and_the_goal_has_its_mark() -> None:
    ends = (0.1, 1000.0)
    x = scale(ends)
    drawn = ET.fromstring(str(ratio_strip(100.0, 10.0, True, ends)))
    bar = drawn.find("rect")
    assert bar.attrib["class"] == "bar met"
    assert float(bar.attrib["x"]) == pytest.approx(x(1.0), abs=0.01)
    assert float(bar.attrib["width"]) == pytest.approx(x(100.0) - x(1.0), abs=0.01)
    marks = [line for line in drawn.findall("line") if line.attrib["class"] == "goal"]
    assert [float(mark.attrib["x1"]) for mark in marks] == [pytest.approx(x(10.0), abs=0.01)]
    # Slower than the peer: to the left; no goal: no mark.
    slower = ET.fromstring(str(ratio_strip(0.5, None, None, ends)))
    assert float(slower.find("rect").attrib["x"]) == pytest.approx(x(0.5), abs=0.01)
    assert not [line for line in slower.findall("line") if line.attrib["class"] == "goal"]
    assert slower.find("polygon") is None


def test_growth_says_its_figures() -> None:
    chart = growth_chart(
        [(point["rows"], point["seconds"]) for point in reversed(POINTS)],
        name="g",
        title=HOSTILE,
        across="rows",
        written=duration,
        tick=duration,
    )
    root = ET.fromstring(str(chart))
    assert root.find("desc").text == "3.1 s at 10,000, 14.2 s at 1,000,000."
    assert root.find("title").text == HOSTILE
    assert len(root.findall("circle")) == 2
    page = render_bench(sample())
    assert page.count('class="plot"') == 2


def test_one_point_is_drawn_without_a_line() -> None:
    chart = growth_chart(
        [(10.0, 2.0)], name="g", title="t", across="rows", written=duration, tick=duration
    )
    assert len(ET.fromstring(str(chart)).findall("path")) == 0
