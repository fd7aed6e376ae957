"""How often detectors fire, and whether a penalty on one reaches group-normalised advantages."""

import pytest
import tiny_audits as tiny

from herald_jax.audit.incidence import split_rows

A, Q, M = "answer_without_citation", "repeated_query", "support_id_mismatch"


def good(name, question, **changes):
    return tiny.log(name, question, citations=["a"], **changes)


def bare(name, question, **changes):
    """It cites nothing: answer_without_citation."""
    return tiny.log(name, question, citations=[], **changes)


def stray(name, question, **changes):
    """It cites a retrieved passage that is no support: support_id_mismatch, a lower reward."""
    return tiny.log(name, question, searches=[["a", "c"]], citations=["c"], **changes)


def four(question, *kinds, **changes):
    return [kind(f"{question}{i}", question, rollout=i, **changes) for i, kind in enumerate(kinds)]


@pytest.fixture(scope="module")
def report():
    of = tiny.pool(
        [
            # Nobody has A: no signal of it. All alike: no signal of anything.
            *four("p", good, good, good, good, model="m1", pool="x"),
            # All have A: it is constant, so the penalty is erased.
            *four("q", bare, bare, bare, bare, model="m1", pool="y"),
            # One of four has A, and another is bad in another way: the penalty on A moves the
            # first against the second.
            *four("r", good, bare, stray, good, model="m2", pool="y"),
        ]
    )
    sections = {"group_signal": True, "split_by_model": True, "split_by_pool": True}
    return tiny.run(of, sections=sections).data


def test_rows_on_which_each_detector_fires(report):
    assert report["natural"][A] == 5
    assert report["natural"][M] == 1
    assert report["natural"][Q] == report["natural"]["fake_citation"] == 0
    assert report["natural_by"]["model"]["m1"]["rows"] == 8
    assert report["natural_by"]["model"]["m1"][A] == 4
    assert report["natural_by"]["model"]["m2"][A] == 1
    assert {name: part[A] for name, part in report["natural_by"]["pool"].items()} == {
        "x": 0,
        "y": 5,
    }


def test_erased_changed_and_without_a_case(report):
    signal = report["signal"]["all"]
    assert (signal["rows"], signal["groups"]) == (12, 3)
    # p and q are flat: every advantage is 0.
    assert signal["no_signal"] == 2
    assert signal["detectors"][A] == {
        "lambda": 0.5,
        "rows": 5,
        "groups": 2,  # q and r hold one
        "constant": 2,  # nobody in p, everybody in q
        "changed": 1,  # r
        "unchanged": 2,
        # λ² p (1 - p): 0 in p and q; in r 0.25 · 1/4 · 3/4 = 0.046875; a third of that on average.
        "mean_square": pytest.approx(0.046875 / 3, abs=1e-12),
    }
    nothing = signal["detectors"][Q]
    assert (nothing["rows"], nothing["groups"], nothing["constant"]) == (0, 0, 3)
    assert (nothing["changed"], nothing["unchanged"], nothing["mean_square"]) == (0, 3, 0.0)


def test_by_model_and_by_pool(report):
    by_model, by_pool = report["signal"]["model"], report["signal"]["pool"]
    assert by_model["m1"]["detectors"][A]["mean_square"] == 0.0
    assert by_model["m1"]["detectors"][A]["constant"] == by_model["m1"]["groups"] == 2
    # r alone: 0.25 · 3/16.
    assert by_model["m2"]["detectors"][A]["mean_square"] == pytest.approx(0.046875, abs=1e-12)
    assert by_model["m2"]["detectors"][A]["changed"] == 1
    assert by_pool["y"]["detectors"][A]["mean_square"] == pytest.approx(0.046875 / 2, abs=1e-12)
    assert by_pool["x"]["no_signal"] == 1


def test_a_group_is_split_when_its_rollouts_are():
    # Half of the group is of each model: 1 of 2 with A under m1, none under m2.
    logs = four("r", good, bare, stray, good)
    for row, model in zip(logs, ["m1", "m1", "m2", "m2"], strict=True):
        row.model = model
    sections = {"group_signal": True, "split_by_model": True}
    signal = tiny.run(tiny.pool(logs), sections=sections).data["signal"]
    assert signal["all"]["groups"] == 1
    parts = {name: part["detectors"][A] for name, part in signal["model"].items()}
    assert (parts["m1"]["rows"], parts["m2"]["rows"]) == (1, 0)
    assert parts["m1"]["mean_square"] == pytest.approx(0.25 / 4, abs=1e-12)
    assert parts["m2"]["constant"] == 1


def test_one_rollout_has_no_signal():
    of = tiny.pool([bare("t", "q")])
    signal = tiny.run(of, sections={"group_signal": True}).data["signal"]["all"]
    assert (signal["groups"], signal["no_signal"]) == (1, 1)
    assert (signal["detectors"][A]["constant"], signal["detectors"][A]["changed"]) == (1, 0)


def test_without_the_section_or_without_rows_there_is_none():
    assert tiny.run(tiny.pool([bare("t", "q")])).data["signal"] == {}
    empty = tiny.pool([tiny.log("t", citations=None)])
    report = tiny.run(empty, sections={"group_signal": True}).data
    assert (report["rows"], report["signal"]) == (0, {})
    assert report["set_aside"] == {"not_logged": 1}


def test_parts_of_rows_cover_them_once():
    of = tiny.pool(four("q", good, good, bare, bare, model="m") + four("r", *[good] * 4))
    block = tiny.block(of)
    parts = dict(split_rows(block, block.real, "model"))
    assert {value: int(rows.sum()) for value, rows in parts.items()} == {"": 4, "m": 4}
    assert (sum(parts.values()) == block.real).all()
    some = block.real.copy()
    some[block.place.rows >= 4] = False
    assert list(dict(split_rows(block, some, "model"))) == ["m"]
