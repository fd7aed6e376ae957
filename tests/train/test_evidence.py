"""What searches bring: by nodes of the evidence, or by the answer in what was read."""

import numpy as np
import pytest

from herald_jax.data.records import Node, OracleRow, Passage
from herald_jax.train.environment import Task
from herald_jax.train.evidence import Evidence
from herald_jax.train.rollout import Rollout, Search

PASSAGES = [
    Passage(passage_id="p1", title="Ardmoor", text="Ardmoor lies on the river Ilsen."),
    Passage(passage_id="p2", title="Ilsen", text="It flows south."),
    Passage(passage_id="p3", title="Tolm", text="A village of weavers."),
    Passage(passage_id="p4", title="River", text="Nar runs in the north."),
]


def node(name, support, needs=()):
    return Node(node_id=name, depends_on=list(needs), support_ids=list(support), answers=[])


ORACLE = [
    # A -> B -> C, of the page that defines the credit.
    OracleRow(
        "chain",
        ["Ilsen"],
        ["p1"],
        [node("A", ["p1"]), node("B", ["p2"], ["A"]), node("C", ["p3"], ["B"])],
    ),
    OracleRow("bare", ["River Nar"], ["p4"]),
    OracleRow("wide", ["x"], ["p1"], [node("A", ["p1", "p2"]), node("B", ["elsewhere", "p3"])]),
]


@pytest.fixture(scope="module")
def evidence():
    return Evidence(PASSAGES, ORACLE, "unicode")


def rollout(question, *found, query=(12, 15)):
    run = Rollout(Task(question, "?"), 0)
    for at, ids in enumerate(found):
        run.searches.append(Search(tuple(ids), (10 + 20 * at, 20 + 20 * at), query))
    return run


def searched(evidence, *runs, signal="cov", places=4):
    return evidence.searched(runs, places, signal)


def test_the_worked_example_of_the_paper(evidence):
    run = rollout("chain", ["p1", "p3"], ["p2"])
    plain = searched(evidence, run)
    in_order = searched(evidence, run, signal="cov_dep")
    np.testing.assert_allclose(plain.events, [[2 / 3, 1 / 3, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(in_order.events, [[1 / 3, 2 / 3, 0, 0]], atol=1e-6)
    for found in (plain, in_order):
        np.testing.assert_allclose(found.coverage, [1], atol=1e-6)
        assert found.executed.tolist() == [[True, True, False, False]]
        assert found.has_nodes.tolist() == [True]


def test_calls_and_queries_are_counted_in_tokens(evidence):
    found = searched(
        evidence, rollout("chain", ["p1"], ["p2"]), rollout("chain", ["p1"], query=None)
    )
    assert found.call_tokens.tolist() == [[10, 10, 0, 0], [10, 0, 0, 0]]
    assert found.query_tokens.tolist() == [[3, 3, 0, 0], [0, 0, 0, 0]]
    assert found.executed.tolist() == [[True, True, False, False], [True, False, False, False]]


def test_a_question_without_nodes_has_no_events_and_is_not_measured(evidence):
    for signal in ("cov", "cov_dep"):
        found = searched(evidence, rollout("bare", ["p4"]), rollout("chain", ["p1"]), signal=signal)
        assert found.events[0].tolist() == [0, 0, 0, 0]
        assert found.has_nodes.tolist() == [False, True]
        assert found.coverage[0] == 0
        assert found.events[1, 0] > 0


def test_all_support_of_a_node_is_needed_also_what_is_not_in_the_corpus(evidence):
    found = searched(evidence, rollout("wide", ["p1"], ["p2"], ["p3"]))
    np.testing.assert_allclose(found.events, [[0, 0.5, 0, 0]], atol=1e-6)
    assert found.coverage.tolist() == [0.5]


def test_nothing_searched_and_nothing_found(evidence):
    found = searched(evidence, rollout("chain"), rollout("chain", []))
    assert found.coverage.tolist() == [0, 0]
    assert not np.asarray(found.events).any()
    assert found.executed[:, 0].tolist() == [False, True]


@pytest.mark.parametrize(
    ("question", "found", "events"),
    [
        ("chain", [["p3"], ["p1"], ["p2"]], [0, 1, 0, 0]),
        # An alias that runs on from the title into the text.
        ("bare", [["p4"]], [1, 0, 0, 0]),
        ("bare", [["p1"], ["p2"]], [0, 0, 0, 0]),
        ("chain", [["p3", "p2"]], [1, 0, 0, 0]),
    ],
)
def test_the_answer_is_looked_for_in_title_and_text(evidence, question, found, events):
    result = searched(evidence, rollout(question, *found), signal="answer_match")
    assert result.events.tolist() == [events]


def test_without_a_signal_there_are_no_events_and_coverage_is_still_told(evidence):
    found = searched(evidence, rollout("chain", ["p1", "p3"]), signal="none")
    assert not np.asarray(found.events).any()
    np.testing.assert_allclose(found.coverage, [2 / 3], atol=1e-6)


def test_an_oracle_without_any_node(evidence):
    found = Evidence(PASSAGES, ORACLE[1:2], "unicode").searched([rollout("bare", ["p4"])], 2, "cov")
    assert found.has_nodes.tolist() == [False] and found.coverage.tolist() == [0]
