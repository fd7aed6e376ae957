"""The Markdown says what the page says, as tables that a renderer reads as tables."""

import re

import pytest
from markdown_it import MarkdownIt
from pages.report_sample import DETECTORS, empty_report, full_report, side

from herald_jax.audit.markdown import render_markdown
from herald_jax.audit.verdict import verdict

HOSTILE = "<script>|`x`**y**\n# z"


def to_html(text: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


@pytest.mark.parametrize("size", [1, 3, 8])
def test_every_table_has_rows_of_one_width(size: int) -> None:
    text = render_markdown(full_report(list(DETECTORS)[:size]))
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = block.splitlines()
        assert re.fullmatch(r"\|(-+:?\|)+", lines[1]), lines[1]
        assert len(lines) > 2
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1, lines
    assert to_html(text).count("<table>") == len(re.findall(r"^\|[-:|]+\|$", text, re.MULTILINE))


def test_it_opens_with_the_verdict_and_ends_with_the_limits() -> None:
    report = full_report()
    text = render_markdown(report)
    assert text.startswith(f"# Reward audit: attackable\n\n**{verdict(report).headline}**")
    assert text.index("## What is the smallest repair?") < text.index("## What this does not show")
    assert (
        "| `fake_id` | first-visible and oracle-worst alike | 0 of 40 | 0% | at most 7.3% (exact) |"
        in text
    )


def test_blank_lines_come_one_at_a_time() -> None:
    for report in (full_report(), empty_report()):
        assert "\n\n\n" not in render_markdown(report)


def test_nothing_measured_is_said_and_never_zero() -> None:
    text = render_markdown(empty_report())
    alike = "first-visible and oracle-worst alike"
    assert f"| `fake_id` | {alike} | not measured: no eligible question | | |\n" in text
    assert "0%" not in text
    assert "0 of" not in text


def test_what_was_cut_is_said() -> None:
    report = full_report()
    assert "cut:" not in render_markdown(report)
    for name in ("before", "after"):
        report["worst"][0][name]["answer_length"] = 3_000_000
    text = render_markdown(report)
    assert "- Answer: Ada Keller (cut: the first 10 of 3,000,000 characters)\n" in text


def test_user_strings_cannot_become_markup() -> None:
    report = full_report()
    for attack in report["worst"]:
        attack["question"] = attack["trajectory_id"] = attack["question_id"] = HOSTILE
        attack["after"] = side(HOSTILE, [HOSTILE], [])
    report["set_aside"] = {HOSTILE: 2}
    for table in report["primary"].values():
        table["oracle_worst"][HOSTILE] = table["oracle_worst"].pop("R_full")
    html = to_html(render_markdown(report))
    assert "<script>" not in html
    assert "<strong>y</strong>" not in html
    assert "<h1>z</h1>" not in html
