"""The page of a run's folder: whole, cut off or gone on with; what is drawn is what was logged."""

import html
import json
import re

import pytest
from training_folder import GROUP, HOSTILE, rollout, tokeniser, write_run

from herald_jax.pages.training_panels import SUBJECTS, columns
from herald_jax.pages.transcripts import Mark
from herald_jax.train.logs import read_metrics
from herald_jax.train.page import gather, write_page
from herald_jax.train.page_samples import chosen, groups_of, said, samples_of, spread
from herald_jax.train.run import record_row
from herald_jax.types import DETECTORS, HeraldError


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "finished")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "hostile", updates=1, hostile=True)


def text_of(page: str) -> str:
    page = re.sub(r"<style>.*?</style>", " ", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))


def test_every_part_of_a_finished_run_is_on_its_page(finished) -> None:
    path = write_page(finished)
    assert path == finished / "page.html"
    assert [one.name for one in finished.glob(".*")] == []
    words = text_of(path.read_text(encoding="utf-8"))
    for told in (
        "Held-out EM and citation precision rose",
        "3 updates on",
        "1 gradient not finite",
        "Did the penalties reach the policy?",
        "Questions whose evidence is known 9 of 9",
        "Best of 4: reward +1.110",
        "One of 4, all paid alike: reward +0.250",
        "credit +0.250",
        "credit −0.250",
        "cut off at the limit of a turn's tokens",
        "rollout 74.1%, reward 1.2%, update 24.7%",
        "Digests",
    ):
        assert told in words
    assert write_page(finished).read_bytes() == path.read_bytes()


def test_every_metric_of_a_picture_is_one_that_the_trainer_logs(finished) -> None:
    table = columns(read_metrics(finished), {})
    drawn = {name for _, _, plans in SUBJECTS for plan in plans for name, _ in plan.lines}
    assert drawn - set(table) == set()


def test_a_run_that_goes_on_has_a_page_of_what_is_there(tmp_path, finished) -> None:
    going = write_run(tmp_path / "going", finished=False)
    found, whole = gather(going), gather(finished)
    assert not found.finished and whole.finished
    # What the metrics say of the detectors is what the summary says at the end.
    assert found.detectors == whole.detectors
    assert found.credit == {
        name: whole.credit[name] for name in ("unequal_pairs", "reversed_pairs")
    }
    assert found.samples == whole.samples
    assert "this is how far it came" in write_page(going).read_text(encoding="utf-8")


def test_what_a_run_did_before_it_went_back_is_not_shown(tmp_path) -> None:
    out = write_run(tmp_path / "back", updates=2)
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (out / "metrics.jsonl").write_text(lines[0] + lines[1][:40], encoding="utf-8")
    found = gather(out)
    assert not found.finished
    assert [update for update, _ in found.held_out.evaluations] == [0]
    assert {sample.update for sample in found.samples} == {1}
    assert "Search-GRPO, 1 update so far" in text_of(write_page(out).read_text(encoding="utf-8"))


def test_evaluations_of_other_questions_are_not_compared(tmp_path) -> None:
    out = write_run(tmp_path / "other", updates=1)
    path = out / "evaluations" / "update-00000001.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(summary | {"question_ids": ["x"] * 40}), encoding="utf-8")
    assert gather(out).held_out.headline() == (
        "Held-out EM and citation precision cannot be compared"
    )


def test_no_run_and_broken_files_are_named(tmp_path) -> None:
    with pytest.raises(HeraldError, match=r"expected the folder of a training run"):
        write_page(tmp_path)
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(HeraldError, match=r"run\.json: expected JSON"):
        write_page(tmp_path)
    assert not (tmp_path / "page.html").exists()


def test_a_policy_cannot_write_into_the_page(hostile) -> None:
    page = write_page(hostile).read_text(encoding="utf-8")
    assert "<script" not in page
    # Controls that the policy wrote are named, bytes that are no UTF-8 are replaced.
    assert "\x1b" not in page and "\u202e" not in page
    words = text_of(page)
    assert "<script>alert('x')</script>\"&⟨U+202E⟩⟨U+001B⟩" in words
    assert "\ufffd <think>look</think>" in words


def test_the_transcript_is_every_token_once_in_order() -> None:
    of = tokeniser()
    for row in range(GROUP):
        run = rollout(of, 0, row, good=True, hostile=True)
        logged = record_row("a", run) | {"credit": [0.5] * len(run.searches)}
        logged["steps"] = [
            {"query": s.query, "retrieved": s.retrieved, "valid": s.valid} for s in run.steps
        ]
        found = list(said(logged, of))
        assert "".join(mark.text for one in found for mark in one.marks) == of.decode(run.tokens)
        assert found[0].author == "prompt"
        turns = [one.turn for one in found if one.author == "policy"]
        assert turns == list(range(1, len(turns) + 1))
        marks = [mark for one in found for mark in one.marks]
        credited = [mark for mark in marks if mark.credit]
        if row == 3:  # cut off before its search was whole
            assert credited == []
            continue
        assert credited == [Mark(f"river {HOSTILE}", ("query",), 0.5)]
        assert [m.text for m in marks if m.kinds == ("answer", "citation")] == ["[p0]"]
        assert [m.text for m in marks if m.kinds == ("think",)] == ["<think>look</think>"]
        if row == 1:  # the blank query is marked as one, and is no search
            assert [m.credit for m in marks if m.kinds == ("query",)] == [0.0, 0.5]


def test_samples_are_best_and_worst_by_what_was_paid(finished) -> None:
    found = samples_of(finished / "log" / "trajectories-00000001.jsonl", tokeniser())
    assert len(found) == 3
    for sample in found[:2]:
        rewards = [one.reward for one in sample.shown]
        assert rewards == [max(sample.rewards), min(sample.rewards)]
    assert len(found[2].shown) == 1 and found[2].rewards == (0.25,) * GROUP
    for one in (one for sample in found for one in sample.shown):
        assert sum(one.terms.values()) + one.bonus == pytest.approx(one.reward)


def row(question: str, reward: float | None, bonus: float = 0.0) -> dict:
    return {"question_id": question, "reward": reward, "bonus": bonus}


def test_groups_are_chosen_from_the_widest_to_the_flattest() -> None:
    rows = [row(f"q{n}", reward) for n in range(5) for reward in (0.0, float((3 * n) % 5))]
    groups = groups_of(rows)
    assert [spread(group) for group in groups] == [0, 3, 1, 4, 2]
    assert [spread(group) for group in chosen(groups, 3)] == [4, 2, 0]
    assert chosen(groups[:2], 3) == [groups[1], groups[0]]
    # The bonus counts; a rollout without a reward does not, and a group without any comes last.
    odd = groups_of([row("a", 1.0), row("a", 1.0, 0.5), row("a", None), row("b", None)])
    assert [spread(group) for group in chosen(odd, 3)] == [0.5, -1.0]


def test_detectors_are_told_in_their_order(finished) -> None:
    found = gather(finished).detectors
    assert [one.name for one in found] == list(DETECTORS)
    told = {one.name: one.told for one in found}
    assert told["no_search"].startswith("no signal in the rollouts")
    assert told["cited_not_retrieved"].startswith("true on")
