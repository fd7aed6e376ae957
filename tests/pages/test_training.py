"""The page of a run says what came of it, never more, and trusts no transcript."""

import html
import re

import pytest

from herald_jax.pages.held_out import HeldOut, moved
from herald_jax.pages.training import Detector, RunData, headline, lead, render_training
from herald_jax.pages.training_panels import columns, subjects
from herald_jax.pages.transcripts import (
    MOST_CHARACTERS,
    Mark,
    Said,
    Sample,
    Transcript,
    edge,
    visible,
    written,
)

HOSTILE = "<script>alert('x')</script>\"&"


def text_of(page: str) -> str:
    page = re.sub(r"<style>.*?</style>", " ", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))


def cell(mean, *interval) -> dict:
    return {"mean": mean, "interval": list(interval) or None, "questions": 40}


def evaluation(em: dict, precision: dict, **more) -> dict:
    figures = {"em": em, "citation_precision": precision} | more
    return {"questions": 40, "samples": 4, "level": 0.95, "figures": {"all": figures}}


BEFORE = (0, evaluation(cell(0.2, 0.1, 0.3), cell(0.1, 0.05, 0.15)))
AFTER = (9, evaluation(cell(0.4, 0.3, 0.5), cell(0.12, 0.05, 0.2), fake_citation=cell(0.01)))
METRICS = [
    {
        "update": n,
        "tokens/budget": 100 * n,
        "reward/mean": 0.1 * n,
        "term/answer/mean": 0.2 * n,
        "term/no_search/mean": 0.0,
        "term/own/mean": None,
        "grad/norm": None if n == 2 else 1.0,
        "policy/kl": 0.0,
        "credit/pairs": n - 1,
        "credit/reversed": 1 if n == 3 else 0,
        "seconds/rollout": 3.0,
        "seconds/reward": 1.0,
        "seconds/step": 4.0,
    }
    for n in (1, 2, 3)
]


def held_out(**differences) -> HeldOut:
    return HeldOut((BEFORE, AFTER), differences)


@pytest.mark.parametrize(
    ("difference", "word"),
    [
        (cell(0.2, 0.1, 0.3), "rose"),
        (cell(-0.2, -0.3, -0.1), "fell"),
        (cell(0.2, 0.0, 0.3), "did not measurably change"),
        (cell(0.2), "cannot be compared"),
        (None, "cannot be compared"),
    ],
)
def test_a_figure_rose_only_when_the_whole_interval_did(difference, word) -> None:
    assert moved(difference) == word


def test_the_headline_and_the_paragraph() -> None:
    both = held_out(em=cell(0.2, 0.1, 0.3), citation_precision=cell(0.02, -0.01, 0.05))
    run = RunData("1", True, metrics=METRICS, held_out=both, settings={"run": {"budget": 1000}})
    assert headline(run) == ("Held-out EM rose, citation precision did not measurably change")
    assert lead(run) == (
        "3 updates on 300 action tokens that the policy generated, of a budget of 1,000. "
        "On 40 held-out questions, "
        "EM went from 20.0% (95% interval 10.0–30.0%) to 40.0% (95% interval 30.0–50.0%), "
        "+20.0 points paired by question (+10.0 to +30.0); "
        "citation precision went from 10.0% (95% interval 5.0–15.0%) to 12.0% "
        "(95% interval 5.0–20.0%), +2.0 points paired by question (−1.0 to +5.0), "
        "which may be no change at all."
    )
    same = held_out(em=cell(0.0, 0.0, 0.0), citation_precision=cell(0.0, 0.0, 0.0))
    assert ", the same on every question; " in same.sentences()[0]
    alike = held_out(em=cell(0.2, 0.1, 0.3), citation_precision=cell(0.2, 0.1, 0.3))
    assert alike.headline() == "Held-out EM and citation precision rose"


def test_a_run_that_goes_on_says_so() -> None:
    run = RunData("1", False, metrics=METRICS, held_out=HeldOut((BEFORE,)))
    assert headline(run) == "Search-GRPO, 3 updates so far"
    assert "The run is not over" in lead(run)
    assert lead(run).endswith(
        "On 40 held-out questions after 0 updates, EM is 20.0% (95% interval 10.0–30.0%) and "
        "citation precision is 10.0% (95% interval 5.0–15.0%)."
    )
    assert "not finished" in text_of(render_training(run))


def test_a_run_without_anything_has_a_page() -> None:
    words = text_of(render_training(RunData("1", False)))
    assert "0 updates on 0 action tokens" in words


def test_the_table_tells_the_unmeasured_from_zero() -> None:
    rows = {row[0]: row[1:] for _, block in held_out().table() for row in block}
    assert rows["EM"] == ["20.0% (10.0–30.0%)", "40.0% (30.0–50.0%)", ""]
    # The first evaluation had no such figure.
    assert rows["fake citation"] == ["not measured", "1.0%", ""]


def test_what_was_not_worked_out_is_no_curve() -> None:
    table = columns(METRICS, {"grpo": {"kl": 0.0}})
    assert table["kl"] == (None, None, None)
    assert columns(METRICS, {"grpo": {"kl": 0.1}})["kl"] == (0.0, 0.0, 0.0)
    # No pair in update 1; 0 of 1 in update 2, 1 of 2 in update 3.
    assert table["reversed"] == (None, 0.0, 0.5)
    assert table["grad/norm"] == (1.0, None, 1.0)


def test_each_term_of_the_reward_has_its_picture_and_absent_metrics_none() -> None:
    drawn = subjects(METRICS, {}, ())
    found = {one.heading: [panel.heading for panel in one.panels] for one in drawn}
    assert found["Reward"] == ["Reward", "Term: answer", "Term: own"]
    assert drawn[0].about.endswith("0 throughout: no search.")
    assert "Answers and evidence" not in found
    assert found["Policy and optimiser"] == ["KL to the start", "Gradient norm"]


def test_names_of_pictures_are_unique() -> None:
    page = render_training(RunData("1", True, metrics=METRICS, held_out=held_out()))
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 10


def test_the_parts_of_a_step_are_shares_of_their_sum() -> None:
    words = text_of(render_training(RunData("1", True, metrics=METRICS)))
    assert "rollout 75.0%, reward 25.0%" in words


def detector(**changes) -> Detector:
    counts = {
        "groups": 10,
        "rows": 9,
        "holding": 4,
        "constant": 8,
        "changed": 2,
        "mean_square": 0.5,
    }
    return Detector("no_search", told="what it did", **(counts | changes))


def test_erased_groups_are_those_that_pay_on_every_rollout() -> None:
    # 8 of 10 are constant, so 2 are mixed and hold one; of the 4 that hold one, 2 pay throughout.
    assert detector().erased == 2
    metrics = [{"update": 1, "rollouts/members": 40}]
    words = text_of(render_training(RunData("1", True, metrics=metrics, detectors=[detector()])))
    assert "what it did 9 of 40 4 of 10 8 2 2 0.05" in words
    nothing = detector(groups=0, rows=0, holding=0, constant=0, changed=0, mean_square=0.0)
    words = text_of(render_training(RunData("1", True, metrics=metrics, detectors=[nothing])))
    assert "0 of 0 0 0 0 not measured" in words


def test_credit_has_its_denominators() -> None:
    credit = {
        "unequal_pairs": 40,
        "reversed_pairs": 3,
        "tied_pairs": 1,
        "mean_gap_of_reversed": 0.25,
        "gaps_of_reversed": [0, 1, 2, 0, 0, 0, 0, 0, 0, 0],
        "questions": 20,
        "questions_with_evidence": 16,
        "zero_coverage": 4,
        "complete_coverage": 0,
        "mean_coverage": 0.5,
        "searches_per_question": 1.5,
        "rollouts_by_coverage": {"none": 5, "some": 0, "all": 3},
        "f1_by_coverage": {"none": 0.1, "some": None, "all": 0.9},
    }
    words = text_of(render_training(RunData("1", True, credit=credit)))
    for told in (
        "reverses 3 of 40 (7.5%)",
        "1 from 0.1, 2 from 0.2",
        "known 16 of 20 (80.0%)",
        "no evidence in any rollout 4 of 16 (25.0%)",
        "some 0 not measured",
    ):
        assert told in words
    # While a run goes on there are only its pairs, and none is no share.
    part = {"unequal_pairs": 0, "reversed_pairs": 0}
    words = text_of(render_training(RunData("1", False, credit=part)))
    assert "not measured: there are none" in words
    assert "come at the end of the run" in words


def sample(*marks: Mark, **changes) -> Sample:
    values = {"name": "Best of 4", "reward": 1.1, "terms": {"answer": 1.15, "no_search": 0.0}}
    values |= {"bonus": 0.0, "advantage": 0.5, "em": 1.0, "f1": 1.0, "stop": "answer"}
    values |= {"action_tokens": 7, "said": (Said("policy", marks, 1),)}
    return Sample(1, "Who?", (1.1, None), (Transcript(**(values | changes)),))


def test_what_a_policy_writes_is_text() -> None:
    one = sample(Mark(HOSTILE), Mark(HOSTILE, ("answer", "citation")))
    page = render_training(RunData(HOSTILE, True, samples=[one], device=HOSTILE))
    assert "<script" not in page
    assert text_of(page).count(HOSTILE) == 2 + 2
    # No network either.
    assert "http" not in page.replace("http-equiv", "") and "url(" not in page
    assert "default-src 'none'" in page


def test_kinds_and_credit_are_elements_and_words() -> None:
    said = Said(
        "policy",
        (
            Mark("<search>"),
            Mark("river", ("query",), -0.25),
            Mark("Ser ", ("answer",)),
            Mark("[p0]", ("answer", "citation")),
        ),
        1,
    )
    assert written(said) == (
        '&lt;search&gt;<u class="is-query">river</u> <span class="remark">credit −0.250</span>'
        '<strong class="is-answer">Ser </strong>'
        '<strong class="is-answer"><b class="is-citation">[p0]</b></strong>'
    )


def test_what_cannot_be_seen_is_named() -> None:
    assert visible("a\u202eb\x00c\u200d\r\n\té") == "a⟨U+202E⟩b⟨U+0000⟩c⟨U+200D⟩⟨U+000D⟩\n\té"
    assert edge("\n\na\nb\n", first=True) == "↵↵a\nb\n"
    assert edge("\n\na\nb\n", first=False) == "\n\na\nb↵"
    assert written(Said("tool", (Mark("\n"),))) == "↵"


def test_what_is_left_out_is_counted() -> None:
    long = Said("policy", (Mark("a" * MOST_CHARACTERS), Mark("b" * 1234, ("query",), 0.5)), 1)
    found = written(long)
    assert "b" not in re.sub(r"<[^>]+>", "", str(found)).replace("remark", "")
    assert "1,234 characters more, not shown" in found
    assert "more" not in written(Said("policy", (Mark("a" * MOST_CHARACTERS),), 1))


def test_terms_that_are_paid_stand_beside_the_reward() -> None:
    words = text_of(render_training(RunData("1", True, samples=[sample(Mark("x"), bonus=0.5)])))
    assert "answer +1.150 bonus of searches +0.500 EM 1" in words
    assert "rewards +1.10, not measured." in words
    assert "ended with its answer" in words
