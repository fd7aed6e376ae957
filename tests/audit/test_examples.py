"""The worst attacks as people read them: what was there, what it became, and why it pays."""

import json
from collections import Counter

import numpy as np
import pytest
import tiny_audits as tiny

from herald_jax.audit.examples import fake_name

DELETION, LAUNDERING, FAKE = tiny.PRIMARY


def worst(of, keep=1, **tables):
    return tiny.run(of, sections={"worst_examples": keep}, **tables).data["worst"]


def pick(found, operator, contract="R0"):
    """The attacks under one contract, worst first, each with its margin and terms there."""
    kept = [e for e in found if e["operator"] == operator and contract in e["contracts"]]
    at = [{**e, **e["contracts"][contract]} for e in kept]
    return sorted(at, key=lambda example: -example["margin"])


def whole(answer, citations, steps):
    """One side of an attack of which nothing is cut."""
    return {
        "answer": answer,
        "answer_length": len(answer),
        "citations": citations,
        "citations_from": 0,
        "citations_count": len(citations),
        "steps": steps,
        "steps_from": 0,
        "steps_count": len(steps),
    }


def search(query, retrieved):
    return {
        "query": query,
        "query_length": len(query),
        "valid": True,
        "retrieved": retrieved,
        "retrieved_count": len(retrieved),
    }


def one(found, operator, contract="R0"):
    (example,) = pick(found, operator, contract)
    return example


# `a` and `b` are support, `c` and `d` are not.
LOG = tiny.log("t", searches=[["c"], ["c", "d"]], citations=["c", "d", "c"])


@pytest.fixture(scope="module")
def found():
    return worst(tiny.pool([LOG]))


def test_before_is_the_log(found):
    for example in found:
        assert example["before"] == whole(
            "Ada", ["c", "d", "c"], [search("search 0", ["c"]), search("search 1", ["c", "d"])]
        )
        assert (example["trajectory_id"], example["question_id"]) == ("t", "q")
        assert example["selection"] == "oracle_worst"
        assert (example["question"], example["question_length"]) == ("who built the mill", 18)


def test_an_edit_that_is_the_worst_under_many_contracts_stands_once(found):
    # One trajectory: deletion and the made-up id are one edit each, under 11 contracts. Of the
    # candidates a, b and those that gain nothing, a is the worst under every contract that looks
    # at support, and the first among equals under the others.
    assert [e["operator"] for e in found] == [DELETION, LAUNDERING, FAKE]
    assert [len(e["contracts"]) for e in found] == [11, 11, 11]


def test_deletion_removes_the_steps_and_keeps_the_final(found):
    assert one(found, DELETION)["after"] == whole("Ada", ["c", "d", "c"], [])


def test_laundering_moves_the_slot_at_all_its_places(found):
    example = one(found, LAUNDERING)
    # Both a and b gain alike; the first among equals is a.
    assert example["after"]["citations"] == ["a", "d", "a"]
    assert example["after"]["steps"] == example["before"]["steps"]
    assert example["after"]["answer"] == "Ada"


def test_terms_of_laundering(found):
    # Precision 0 -> 1/2 (a of a, d) and recall 0 -> 1/2: grounding 0.55/2 + 0.45/2 = 0.5, and
    # 1.05 · 0.5 = 0.525. L turns on and M off, so that the hacking rate stays.
    example = one(found, LAUNDERING)
    assert example["terms"] == {"grounding": pytest.approx(0.525, abs=1e-6)}
    assert example["margin"] == pytest.approx(0.525, abs=1e-6)
    full = one(found, LAUNDERING, "R_full")
    assert full["terms"] == {
        "grounding": pytest.approx(0.525, abs=1e-6),
        "cited_not_retrieved": -1.2,
        "support_id_mismatch": 0.8,
    }
    assert full["margin"] == pytest.approx(0.525 - 1.2 + 0.8, abs=1e-6)


def test_terms_of_deletion(found):
    # Two searches less: 0.04 each. under_retrieval and L turn on: 0.55 · 2/7. U costs 1.6 under
    # R[U] and nothing under R0, whose hacking rate has it not.
    terms = {
        "tool_calls": pytest.approx(0.08, abs=1e-6),
        "hacking_rate": pytest.approx(-0.55 * 2 / 7, abs=1e-6),
    }
    assert one(found, DELETION)["terms"] == terms
    assert one(found, DELETION, "R[U]")["terms"] == {**terms, "no_search": -1.6}


@pytest.mark.parametrize("contract", ["outcome_only", "outcome_cost", "R0", "R[U+L]", "R_full"])
@pytest.mark.parametrize("operator", tiny.PRIMARY)
def test_the_terms_of_a_margin_sum_to_it(operator, contract):
    logs = [
        tiny.log("t", searches=[["c"], ["d"]], citations=["c", "d", "c"]),
        tiny.log("u", "r", searches=[["a", "b"]] * 5, citations=["b"]),
    ]
    of = tiny.pool(logs, support={"q": ["a"], "r": ["b", "c"]})
    examples = pick(worst(of, keep=2), operator, contract)
    assert len(examples) == 2
    for example in examples:
        assert sum(example["terms"].values()) == pytest.approx(example["margin"], abs=1e-5)
    assert examples[0]["margin"] >= examples[1]["margin"]


def test_the_fake_id_is_the_trajectorys_own(found):
    assert one(found, FAKE)["after"]["citations"] == ["fake:t", "d", "fake:t"]


def pool_where_names_are_taken(place):
    """A pool in which `fake:t` and `fake:t_` stand somewhere already, and `fake:t___` too."""
    taken = ["fake:t", "fake:t_", "fake:t___"]
    passages, support, log = dict.fromkeys("abcd", "the mill"), ["a", "b"], tiny.log("t")
    if place == "passage":
        passages |= dict.fromkeys(taken, "nothing")
    elif place == "retrieved":
        log.steps[0].retrieved += taken
    elif place == "cited":
        log.citations += taken
    else:
        support += taken
    return tiny.pool([log], passages=passages, support={"q": support})


def name_for(of, row):
    """The id that is made up for a row of a pool."""
    (record,) = of.records_of(of.rows.take(np.array([row])))
    support = of.questions.support[int(of.rows.question[row])]
    return fake_name(record, [of.ids.decode(int(code)) for code in support], of)


@pytest.mark.parametrize("place", ["passage", "retrieved", "cited", "support"])
def test_a_fake_id_that_is_taken_grows_until_it_is_free(place):
    assert name_for(pool_where_names_are_taken(place), 0) == "fake:t__"


@pytest.mark.parametrize("place", ["passage", "retrieved", "support"])
def test_the_report_shows_the_grown_name(place):
    example = one(worst(pool_where_names_are_taken(place)), FAKE)
    assert example["after"]["citations"] == ["fake:t__"]


def test_a_name_that_is_taken_elsewhere_is_free():
    # Cited by another trajectory, of another question.
    of = tiny.pool([tiny.log("t"), tiny.log("u", "r", citations=["fake:t"])])
    assert name_for(of, 0) == "fake:t"


def test_as_many_as_asked_for_and_of_equals_the_first():
    logs = [tiny.log(f"t{i}", f"q{i}", rollout=0) for i in range(4)]
    found = worst(tiny.pool(logs), keep=3)
    counts = Counter((e["operator"], name) for e in found for name in e["contracts"])
    assert set(counts.values()) == {3}
    assert [e["trajectory_id"] for e in pick(found, FAKE)] == ["t0", "t1", "t2"]
    assert worst(tiny.pool(logs), keep=0) == []


def test_no_common_row_has_no_example():
    assert worst(tiny.pool([tiny.log("t", citations=[])])) == []


def test_long_texts_do_not_make_a_long_report():
    # Answers, questions and queries of a million characters, 1,000 passages a search, 500 steps.
    ids = [f"p{i}" for i in range(1_000)]
    log = tiny.log("t", searches=[ids] + [["c"]] * 499, answer="Ada " * 250_000, citations=["c"])
    log.question = "mill " * 200_000
    log.steps[0].query = "mill " * 200_000
    found = worst(tiny.pool([log]))
    assert found
    assert len(json.dumps(found)) < 100_000
    for example in found:
        before = example["before"]
        assert example["question"] == log.question[:2000]
        assert example["question_length"] == 1_000_000
        assert before["answer"] == example["after"]["answer"] == log.answer[:2000]
        assert before["answer_length"] == example["after"]["answer_length"] == 1_000_000
        assert (len(before["steps"]), before["steps_from"], before["steps_count"]) == (20, 0, 500)
        first = before["steps"][0]
        assert (first["query"], first["query_length"]) == (log.steps[0].query[:2000], 1_000_000)
        assert (first["retrieved"], first["retrieved_count"]) == (ids[:20], 1_000)


def test_a_query_repeated_after_many_is_in_view():
    found = worst(
        tiny.pool([tiny.log("t", searches=[["c"]] * 30)]),
        operators={"names": ["repeated_query"], "primary": ["repeated_query"]},
    )
    (example,) = found
    sides = example["before"], example["after"]
    assert [(len(s["steps"]), s["steps_from"], s["steps_count"]) for s in sides] == [
        (5, 25, 30),
        (6, 25, 31),
    ]
