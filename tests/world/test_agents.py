"""Agents really search, see no gold, and each habit shows what it is there to show."""

from collections import defaultdict
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from herald_jax.data.metrics import exact_match
from herald_jax.world import HABITS, oracle_traces, rollouts
from herald_jax.world.agents import Action, Finish
from herald_jax.world.episodes import MAX_ACTIONS, RESULTS, Run, run_together


@pytest.fixture(scope="module")
def made(world, index):
    return rollouts(world, 8, seed=1, index=index)


@pytest.fixture(scope="module")
def by_habit(made):
    groups = defaultdict(list)
    for row in made:
        groups[row.model.removeprefix("scripted-")].append(row)
    return groups


class RecordingIndex:
    """Answers every query with the first passages and remembers how it was called."""

    def __init__(self):
        self.calls: list[list[str]] = []

    def bm25(self, texts, exclude, k):
        self.calls.append(list(texts))
        codes = np.tile(np.arange(k, dtype=np.int32), (len(texts), 1))
        return codes, np.zeros((len(texts), k), np.int64)


def test_retrieved_is_what_bm25_returns(world, index, made):
    searches = [step for row in made for step in row.steps if step.executed]
    codes, _ = index.bm25([step.query for step in searches], None, RESULTS)
    for step, found in zip(searches, codes.tolist(), strict=True):
        assert step.retrieved == [world.passages[code].passage_id for code in found if code >= 0]


def test_invalid_steps_returned_nothing(made):
    invalid = [step for row in made for step in row.steps if not step.executed]
    assert {step.valid for step in invalid} == {True, False}
    assert all(step.retrieved == [] for step in invalid)


def test_records_are_complete(world, made):
    assert len(made) == 8 * len(world.questions)
    assert len({row.trajectory_id for row in made}) == len(made)
    chosen = defaultdict(int)
    for row in made:
        assert row.logged and row.generated_tokens > 0 and len(row.steps) <= MAX_ACTIONS
        chosen[row.question_id] += row.selected
    assert set(chosen.values()) == {1}


def test_agents_see_no_gold(world, index, made):
    blind = replace(
        world,
        entities=(),
        questions=tuple(
            replace(q, answers=(), nodes=(), term=None, split="") for q in world.questions
        ),
    )
    assert rollouts(blind, 8, seed=1, index=index) == made


def test_a_rollout_does_not_depend_on_its_batch(world, index, made):
    some = world.questions[10:13]
    assert rollouts(world, 8, seed=1, questions=some, index=index) == made[80:104]


def test_all_rollouts_of_a_round_search_together(world):
    index = RecordingIndex()
    rows = rollouts(world, 4, questions=world.questions[:10], index=index)
    most = max(len(row.steps) for row in rows)
    assert len(index.calls) <= most
    assert sum(map(len, index.calls)) == sum(step.executed for row in rows for step in row.steps)


def test_blank_queries_are_not_executed_and_endless_ones_are_cut_off(world):
    def endless():
        while True:
            yield Action("  ")
            yield Action("salt")

    run, index = Run(endless()), RecordingIndex()
    run_together([run], index, world.passages)
    assert len(run.steps) == MAX_ACTIONS and run.final == Finish(None)
    assert index.calls == [["salt"]] * (MAX_ACTIONS // 2)


def executed(row):
    return [step for step in row.steps if step.executed]


def seen(row):
    return {id_ for step in executed(row) for id_ in step.retrieved}


def share(rows, condition):
    return sum(map(condition, rows)) / len(rows)


def test_every_habit_is_met(by_habit):
    assert set(by_habit) == set(HABITS)


def test_careful_is_mostly_right_and_cites_what_it_retrieved(world, by_habit):
    gold = {row.question_id: row for row in world.oracle}
    rows = by_habit["careful"]
    assert (
        share(rows, lambda r: exact_match(r.answer, gold[r.question_id].answers, "unicode")) > 0.7
    )
    assert all(seen(row) >= set(row.citations) for row in rows)


def test_hasty_is_mostly_wrong_after_one_search(world, by_habit):
    gold = {row.question_id: row for row in world.oracle}
    rows = by_habit["hasty"]
    assert (
        share(rows, lambda r: exact_match(r.answer, gold[r.question_id].answers, "unicode")) < 0.5
    )
    assert all(len(executed(row)) == 1 and len(row.citations) <= 1 for row in rows)


def test_rambling_repeats_itself_and_sometimes_never_answers(by_habit):
    rows = by_habit["rambling"]
    queries = [[step.query for step in executed(row)] for row in rows]
    assert share(queries, lambda q: len(set(q)) < len(q)) > 0.5
    assert any(row.answer is None for row in rows)
    assert any(len(executed(row)) > 4 for row in rows)


def test_guessing_never_searches_and_cites_what_it_never_saw(world, by_habit):
    ids = {passage.passage_id for passage in world.passages}
    for row in by_habit["guessing"]:
        assert executed(row) == [] and row.citations and set(row.citations) <= ids


def test_fabricating_cites_ids_that_do_not_exist(world, by_habit):
    ids = {passage.passage_id for passage in world.passages}
    assert all(set(row.citations) - ids for row in by_habit["fabricating"])


def test_recalling_sometimes_cites_what_it_did_not_retrieve(by_habit):
    assert 0 < share(by_habit["recalling"], lambda row: bool(set(row.citations) - seen(row))) < 1


def test_parroting_answers_with_the_question(by_habit):
    assert all(row.answer == row.question.rstrip("?") for row in by_habit["parroting"])


def test_uncited_cites_nothing(by_habit):
    assert all(row.citations == [] for row in by_habit["uncited"])


def test_misciting_is_right_and_cites_what_does_not_support(world, by_habit):
    gold = {row.question_id: row for row in world.oracle}
    rows = by_habit["misciting"]
    missed = [row for row in rows if set(row.citations) - set(gold[row.question_id].support_ids)]
    assert len(missed) > len(rows) / 2
    assert all(set(row.citations) <= seen(row) for row in rows)


def test_some_citations_are_malformed(made):
    assert 0 < share(made, lambda row: row.malformed_citations > 0) < 0.1


def test_oracle_traces_show_the_evidence(world, index):
    gold = {row.question_id: row for row in world.oracle}
    traces = oracle_traces(world, world.questions, index=index)
    assert len(traces) > 0.9 * len(world.questions)
    for trace in traces:
        row = gold[trace.question_id]
        assert trace.answer == row.answers[0] and trace.citations == row.support_ids
        assert seen(trace) >= set(row.support_ids)
        assert trace.model == "scripted-oracle"


def test_oracle_traces_are_of_the_train_split_unless_told(world, index):
    train = {question.question_id for question in world.split("train")}
    assert {trace.question_id for trace in oracle_traces(world, index=index)} <= train


def test_incomplete_demonstrations_are_left_out(world):
    index = RecordingIndex()  # never finds anything of use
    assert oracle_traces(world, world.questions[40:60], index=index) == []
    kept = oracle_traces(world, world.questions[40:60], index=index, complete=False)
    assert len(kept) == 20


def test_trajectories_survive_json(made):
    again = msgspec.json.decode(msgspec.json.encode(made), type=list[type(made[0])])
    assert again == made
