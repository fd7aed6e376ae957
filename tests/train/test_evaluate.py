"""Held-out figures: those of a plain computation, over questions, with intervals around them."""

import jax
import numpy as np
import pytest
from train_setups import small_setup

from herald_jax.data.records import Step
from herald_jax.train import evaluate as module
from herald_jax.train.chat import Turn
from herald_jax.train.evaluate import evaluate, paired_difference, roll_out, summarise
from herald_jax.train.rollout import Rollout, Search
from herald_jax.types import DETECTORS, HeraldError

EACH = 3  # a greedy rollout and two samples


def scripted(task, gold, row, others):
    """Rollouts of all sorts: right and wrong, cited and not, cut off, searching and not."""
    run = Rollout(task, row, tokens=[1] * (5 + row % 4), logps=[-1.0] * (2 + row % 4))
    kind = row % 7
    support = list(gold.support_ids)
    if kind != 3:
        run.steps.append(Step(query="what", retrieved=[*support, others[0]]))
        run.searches.append(Search((*support, others[0]), (1, 3), None))
    if kind == 4:
        run.steps.append(Step(query="", retrieved=[], valid=False))
    if kind == 5:
        run.stop = "length"
        return run
    right = kind in (0, 1, 4)
    cited = {
        0: support,
        1: [*support, others[0], others[0]],
        2: [],
        3: [others[1]],
        4: [],
        6: [support[0], others[0], others[1]],
    }[kind]
    run.final = Turn(answer=gold.answers[0] if right else "nobody knows", citations=tuple(cited))
    run.stop = "answer"
    return run


@pytest.fixture(scope="module")
def judged():
    """An evaluation of scripted rollouts, and what they were."""
    setup, states = small_setup()
    tasks = setup.tasks.held_out[:5]
    golds = {row.question_id: row for row in setup.tasks.oracle}
    names = [passage.passage_id for passage in setup.tasks.passages]
    runs = []
    for at, task in enumerate(tasks):
        gold = golds[task.question_id]
        others = [name for name in names if name not in gold.support_ids]
        runs += [scripted(task, gold, at * EACH + n, others) for n in range(EACH)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "roll_out", lambda *a, **k: runs)
        found = evaluate(setup, states, tasks, samples=EACH - 1, seed=0)
    return setup, found, runs, golds


def plainly(runs, golds):
    """Every figure of each rollout, read off it."""
    rows = []
    for run in runs:
        gold, final = golds[run.task.question_id], run.final
        cited, support = set(final.citations) if final else set(), set(gold.support_ids)
        rows.append(
            {
                "em": float(bool(final) and final.answer == gold.answers[0]),
                "citation_precision": len(cited & support) / len(cited) if cited else 0.0,
                "support_recall": len(cited & support) / len(support),
                "cites": float(bool(cited)),
                "searches": float(len(run.searches)),
                "invalid": float(sum(not step.valid for step in run.steps)),
                "unanswered": float(final is None),
                "truncated": float(run.stop == "length"),
                "tokens": float(len(run.logps)),
                "no_search": float(final is not None and not run.searches),
                "cited": float(len(cited)),
                "unsupported": float(len(cited - support)),
            }
        )
    return {name: np.array([row[name] for row in rows]).reshape(-1, EACH) for name in rows[0]}


def test_figures_are_those_of_a_plain_computation(judged):
    _, found, runs, golds = judged
    table = plainly(runs, golds)
    figures = found.summary["figures"]
    for name, values in table.items():
        if name in ("cited", "unsupported"):
            continue
        for part, which in (("all", slice(None)), ("greedy", [0]), ("sampled", slice(1, None))):
            right = values[:, which].mean(axis=1).mean()
            assert figures[part][name]["mean"] == pytest.approx(right, abs=1e-6), (part, name)
        assert found.summary["means"][name] == pytest.approx(values.mean(axis=1).tolist())
    assert figures["all"]["em"]["mean"] not in (0, 1)
    # A ratio of sums over the questions that cite anything.
    rate = figures["all"]["unsupported_citation_rate"]
    assert rate["mean"] == pytest.approx(table["unsupported"].sum() / table["cited"].sum())
    assert rate["questions"] == (table["cited"].sum(axis=1) > 0).sum()


def test_reward_f1_and_detectors_are_the_reward_models(judged):
    setup, found, _, _ = judged
    again = setup.reward(found.records)
    figures = found.summary["figures"]["all"]
    assert figures["reward"]["mean"] == pytest.approx(again.reward.mean(), abs=1e-6)
    assert figures["f1"]["mean"] == pytest.approx(again.f1.mean(), abs=1e-6)
    for name in DETECTORS:
        assert figures[name]["mean"] == pytest.approx(again.detectors[name].mean(), abs=1e-6)
    assert figures["cited_not_retrieved"]["mean"] > 0


def test_intervals_hold_the_mean(judged):
    found = judged[1]
    for part in found.summary["figures"].values():
        for figure in part.values():
            low, high = figure["interval"]
            assert low <= figure["mean"] + 1e-6 and figure["mean"] - 1e-6 <= high
    em = found.summary["figures"]["all"]["em"]
    assert em["interval"][0] < em["interval"][1]


def test_rollouts_of_a_question_stand_side_by_side_under_names_of_their_own(judged):
    found = judged[1]
    names = [record.trajectory_id for record in found.records]
    asked = found.summary["question_ids"]
    assert names == [f"{question}/{n}" for question in asked for n in range(EACH)]
    assert [record.rollout for record in found.records] == [0, 1, 2] * 5
    assert (found.summary["questions"], found.summary["rollouts"]) == (5, 15)


def test_a_policy_is_rolled_out_greedily_and_by_fixed_seeds():
    setup, states = small_setup()
    tasks = setup.tasks.held_out[:2]
    told = []
    runs = roll_out(setup, states, tasks, samples=1, seed=3, draw=lambda *n: told.append(n))
    assert [run.task for run in runs] == [tasks[0], tasks[0], tasks[1], tasks[1]]
    assert all(run.stop for run in runs)
    assert told == [(2, 4), (4, 4)]
    again = roll_out(setup, states, tasks[::-1], samples=1, seed=4)
    for first, other in ((0, 2), (2, 0)):  # greedy ones depend on no seed and no neighbour
        assert runs[first].tokens == again[other].tokens
    assert runs[1].tokens != again[3].tokens
    assert runs[0].tokens != runs[1].tokens
    assert [run.tokens for run in roll_out(setup, states, tasks, samples=1, seed=3)] == [
        run.tokens for run in runs
    ]
    assert all(not leaf.is_deleted() for leaf in jax.tree.leaves(states))


SETTINGS = {"replicates": 200, "seed": 0, "level": 0.95}


def test_a_ratio_of_sums_is_over_questions_that_cite():
    values = {"cited": np.array([4.0, 0, 1]), "unsupported": np.array([1.0, 0, 1])}
    found = summarise(values | {"em": np.array([1.0, 0, 0])}, **SETTINGS)
    assert set(found) == {"em", "unsupported_citation_rate"}
    rate = found["unsupported_citation_rate"]
    assert (rate["mean"], rate["questions"]) == (pytest.approx(2 / 5), 2)
    # Two questions, drawn with repeats: rates 1/4, 2/5 and 1.
    assert rate["interval"] == [0.25, 1.0]


def test_what_is_not_measured_is_none():
    values = {"cited": np.zeros(2), "unsupported": np.zeros(2), "em": np.array([0.5, 1])}
    found = summarise(values, **SETTINGS)
    assert found["unsupported_citation_rate"] == {"mean": None, "interval": None, "questions": 0}
    one = summarise({name: value[1:] for name, value in values.items()}, **SETTINGS)
    assert one["em"] == {"mean": 1.0, "interval": None, "questions": 1}


def test_differences_are_paired_by_question():
    before = {"question_ids": list("abcd"), "means": {"em": [0.0, 0.5, 0.2, 1.0]}}
    after = {"question_ids": list("abcd"), "means": {"em": [0.1, 0.6, 0.3, 1.1]}}
    moved = paired_difference(before, after, "em", replicates=200)
    # Every question moved by the same: unpaired intervals would be wide.
    assert moved["mean"] == pytest.approx(0.1)
    assert moved["interval"] == pytest.approx([0.1, 0.1])
    back = paired_difference(after, before, "em", replicates=200)
    assert back["mean"] == pytest.approx(-0.1)


@pytest.mark.parametrize("ids", ["abc", "abce", "bacd"])
def test_evaluations_of_other_questions_are_not_compared(ids):
    before = {"question_ids": list("abcd"), "means": {"em": [0.0] * 4}}
    after = {"question_ids": list(ids), "means": {"em": [0.0] * len(ids)}}
    with pytest.raises(HeraldError, match="different questions"):
        paired_difference(before, after, "em")
