"""The page: well formed, self-contained, escaped, readable in both themes, honest about gaps."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from pages.report_sample import DETECTORS, empty_report, full_report, side, step

from herald_jax.audit.page import render_html

EXPECTED = Path(__file__).parents[3] / "shared" / "expected"
VOID = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE = "<script>alert(1)</script>'\"&amp;\u202e"


class Page(HTMLParser):
    """Ids, text and nesting of a page; `faults` lists what is not well formed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if attributes.get("id"):
            self.ids.append(str(attributes["id"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def wide_report() -> dict:
    return full_report(list(DETECTORS))


def bare_report() -> dict:
    """Only what SPEC section 12 fixes: none of the additions."""
    report = full_report()
    for key in (
        "contracts",
        "generators",
        "histograms",
        "worst",
        "signal",
        "by_pool",
        "corpus",
        "natural_by",
        "nonfinite",
        "skipped",
        "manifest",
        "manifest_digest",
        "inputs",
    ):
        del report[key]
    for operator in report["operators"].values():
        for key in set(operator) - {"status", "first_visible", "oracle_worst"}:
            del operator[key]
    return report


REPORTS: dict[str, Callable[[], dict]] = {
    "full": full_report,
    "bare": bare_report,
    "empty": empty_report,
    "wide": wide_report,
    "counts": lambda: {"schema": 1, "rows": 0, "questions": 0},
}


@pytest.fixture(params=REPORTS)
def html(request: pytest.FixtureRequest) -> str:
    return render_html(REPORTS[request.param]())


def test_page_is_well_formed_with_unique_ids(html: str) -> None:
    page = Page(html)
    assert page.faults == []
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))


def test_page_needs_no_network_and_no_script(html: str) -> None:
    page = Page(html)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"url\(|@import|https?://|\son\w+=", html)
    for _, attributes in page.tags:
        assert str(attributes.get("href", "#")).startswith("#")
    assert "default-src 'none'" in html


def test_links_and_labels_point_at_something(html: str) -> None:
    page = Page(html)
    for _, attributes in page.tags:
        targets = str(attributes.get("aria-labelledby") or "").split()
        if "href" in attributes:
            targets.append(str(attributes["href"])[1:])
        assert set(targets) <= set(page.ids)


def test_every_picture_has_words_or_stands_beside_them(html: str) -> None:
    pictures = [attributes for tag, attributes in Page(html).tags if tag == "svg"]
    for attributes in pictures:
        assert attributes.get("aria-hidden") == "true" or attributes.get("aria-labelledby")


def test_the_answers_come_in_order(html: str) -> None:
    order = ["safe", "repair", "sure", "severe", "weaker", "worst", "tables", "limits"]
    assert [name for name in Page(html).ids if name in order] == order


def test_user_strings_are_escaped_everywhere() -> None:
    """Every string of the report that is not a name of ours is made hostile."""
    report = json.loads(json.dumps(full_report()).replace('"small"', json.dumps(HOSTILE)))
    report["inputs"] = {HOSTILE: {"sha256": HOSTILE, "rows": 1}}
    report["set_aside"] = {HOSTILE: 3}
    report["skipped"] = [{"file": HOSTILE, "line": 1, "field": HOSTILE, "code": HOSTILE}]
    report["manifest"]["contracts"] = {HOSTILE: HOSTILE}
    for attack in report["worst"]:
        for key in ("question", "question_id", "trajectory_id"):
            attack[key] = HOSTILE
        attack["question_length"] = len(HOSTILE)
        for name in ("before", "after"):
            text = HOSTILE + name
            attack[name] = side(text, [text], [step(text, [HOSTILE])])
    for table in (*report["primary"].values(), *report["operators"].values()):
        for selection in ("first_visible", "oracle_worst"):
            table[selection][HOSTILE] = table[selection]["R_full"]
    report["mean_reward"][HOSTILE] = 1.0
    html = render_html(report)
    page = Page(html)
    assert page.faults == []
    assert not any(tag == "script" for tag, _ in page.tags)
    assert page.text.count(HOSTILE) > 20


def test_unmeasured_cells_are_words_and_not_zero() -> None:
    page = Page(render_html(empty_report()))
    assert "not measured: no eligible question" in page.text
    assert "%" not in re.sub(r"9\d(\.\d)?%|(up to|over) \d+%|\d+% to \d+%", "", page.text)
    assert "sufficient</" not in page.text
    assert "0 of" not in page.text


def test_an_unmeasured_model_shows_no_mark() -> None:
    html = render_html(full_report())
    row = re.search(r'forest-name">large</span>(.*?)</div>', html, re.DOTALL)
    assert row is not None
    assert "not measured" in row[1]
    assert "<circle" not in row[1]


def test_rates_stand_with_their_denominators() -> None:
    text = Page(render_html(full_report())).text
    assert "38 of 40" in text
    assert "at most 7.3% (exact)" in text
    assert "9 of 1,450" in text


def test_everything_of_the_report_is_on_the_page() -> None:
    """Each section leaves a figure that nothing else holds."""
    report = full_report()
    report["natural"]["no_search"] = 107
    report["natural_by"]["model"]["small"]["rows"] = 109
    report["signal"]["all"]["detectors"]["cited_not_retrieved"]["changed"] = 113
    report["utility"]["R0"]["searches"] = 127.25
    report["mean_reward"]["R0"] = 131.5
    report["nonfinite"]["R0"] = 137
    report["operators"]["fake_id"]["not_isolated_because"] = {"over_retrieval": 139}
    report["inputs"]["trajectories.jsonl"]["rows"] = 149
    report["skipped"][0]["line"] = 151
    report["pools"]["all"]["oracle_worst"]["R0"]["rows"] = 157
    report["by_pool"][""]["oracle_worst"]["R0"]["rows"] = 163
    report["budgets"]["bm25"]["4"]["oracle_worst"]["R0"]["rows"] = 167
    report["scales"]["2"]["fake_id"]["R0"]["mean_margin"] = 173.5
    report["manifest"]["statistics"]["replicates"] = 179
    report["set_aside"]["not_logged"] = 181
    text = Page(render_html(report)).text
    missing = [
        figure
        for figure in (
            107,
            109,
            113,
            127.25,
            131.5,
            137,
            139,
            149,
            151,
            157,
            163,
            167,
            173.5,
            179,
            181,
        )
        if not re.search(rf"(?<![\d.]){figure}(?!\d)|\+{figure}", text)
    ]
    assert missing == []


def test_the_lattice_is_drawn_up_to_five_penalties_and_listed_beyond() -> None:
    for size, drawn in ((3, True), (4, True), (5, True), (6, False)):
        html = render_html(full_report(list(DETECTORS)[:size]))
        assert ('id="lattice-title"' in html) is drawn
    assert (
        "64 subsets of 6 penalties were audited, 32 of them observed sufficient" in Page(html).text
    )


def test_a_large_lattice_stays_small_because_equal_contracts_share_a_row() -> None:
    assert len(render_html(wide_report())) < 8 * len(render_html(full_report()))


def test_worst_attacks_show_the_change_and_the_split() -> None:
    text = Page(render_html(full_report())).text
    assert "− p3 removed" in text
    assert "+ p9 added" in text
    # 0.81375 - 0.0786 = 0.73515
    assert "grounding +0.814" in text
    assert "margin +0.735" in text
    # Under R_full the terms sum to 0.73515 and the margin is 0.41375: the rest is shown.
    assert "(not split) −0.321" in text


def test_an_edit_stands_once_with_its_margin_under_every_contract() -> None:
    text = Page(render_html(full_report())).text
    assert "Among the worst under 3 contracts" in text
    # Once as the worst of its operator and once in the list of all.
    assert text.count("Trajectory t-citation_laundering ,") == 2
    assert "R0 , R[F] +0.735 (succeeds)" in text


def test_what_was_cut_is_said() -> None:
    report = full_report()
    attack = report["worst"][0]
    assert "cut:" not in Page(render_html(report)).text
    attack["question_length"] = 2_500
    attack["before"]["answer_length"] = attack["after"]["answer_length"] = 3_000_000
    attack["before"]["steps"][0].update(query_length=5_000, retrieved_count=900)
    for name in ("before", "after"):
        attack[name].update(citations_from=41, citations_count=500)
    text = Page(render_html(report)).text
    assert "Aar? (cut: the first 33 of 2,500 characters)" in text
    assert "Ada Keller (cut: the first 10 of 3,000,000 characters)" in text
    assert "(cut: the first 19 of 5,000 characters)" in text
    assert "and 897 more" in text
    assert "(cut: numbers 42 to 43 are shown, of 500 before and 500 after)" in text


def test_one_question_is_no_plural() -> None:
    report = full_report()
    report.update(rows=1, questions=1, common={"rows": 1, "questions": 1})
    text = Page(render_html(report)).text
    assert "1 trajectory of 1 question" in text
    assert not re.search(r"\b1 (trajectories|questions|steps|contracts|passages)\b", text)


def test_the_digest_is_short_at_the_top_and_whole_in_the_tables() -> None:
    top, tables = Page(render_html(full_report())).text.split("Is the reward safe", 1)
    assert f"SHA-256 {'ab' * 6} …" in top
    assert "ab" * 7 not in top
    assert "ab" * 32 in tables


def test_it_says_what_it_does_not_show() -> None:
    text = Page(render_html(full_report())).text
    limits = text[text.rindex("What this does not show") :]
    for word in ("finite set", "closed corpus", "Structured ids", "semantic support", "lexical"):
        assert word.lower() in limits.lower()


# Colours: relative luminance and contrast as WCAG 2.2 defines them.
TEXT = [
    ("ink", "paper"),
    ("soft", "paper"),
    ("link", "paper"),
    ("bad", "paper"),
    ("good", "paper"),
    ("unsure", "paper"),
    ("h0-ink", "h0"),
    ("h1-ink", "h1"),
    ("h1-ink", "h2"),
    ("h1-ink", "h3"),
    ("h4-ink", "h4"),
    ("h4-ink", "h5"),
]
MARKS = [(f"s{index}", "paper") for index in range(5)]


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_is_aa_in_both_themes(theme: str) -> None:
    css = files("herald_jax.pages").joinpath("page.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light if theme == "light" else dark))
    low = {pair: contrast(*(colours[name] for name in pair)) for pair in TEXT}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
    low = {pair: contrast(*(colours[name] for name in pair)) for pair in MARKS}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 3.0} == {}


@pytest.mark.parametrize("name", ["hotpot_agents", "hagrid", "react_hotpot"])
def test_real_pools(name: str) -> None:
    path = EXPECTED / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is absent: the pools are not part of the repository")
    page = Page(render_html(json.loads(path.read_text(encoding="utf-8"))))
    assert page.faults == []
    assert len(page.ids) == len(set(page.ids))
