"""Lines decoded at once: every key accounted for."""

import json

import msgspec
import pytest
from data_strategies import trajectories
from flat_records import records_of
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from herald_jax.data.flat import Flat
from herald_jax.data.records import Step, Trajectory
from herald_jax.data.strict import StrictLines

ROW = {
    "trajectory_id": "t", "question_id": 7, "question": "?", "answer": None,
    "steps": [{"query": "a", "retrieved": ["p", 3, -0]}],
}  # fmt: skip


def lines(*rows):
    return [json.dumps(row).encode() for row in rows]


def test_what_is_not_there_is_unset_and_ids_may_be_integers():
    (found,) = StrictLines(Trajectory).decode(lines(ROW))
    assert found.citations is UNSET and found.steps[0].valid is UNSET
    assert found.question_id == 7 and found.steps[0].retrieved == ["p", 3, 0]
    record = records_of(Flat.of_records([found], [4]))
    assert record == {4: Trajectory("t", "7", "?", [Step("a", ["p", "3", "0"])], None)}


def test_keys_of_the_file_are_learnt():
    decoder = StrictLines(Trajectory)
    rows = [ROW | {"time": {"at": [1, {"zone": "x:y"}]}, "a b": 1.5}, ROW]
    rows[0]["steps"] = [{"query": "b", "took": None}]
    assert [row.trajectory_id for row in decoder.decode(lines(*rows))] == ["t", "t"]
    assert decoder.decode(lines(ROW | {"other": 1})) is not None
    twice = lines(*rows)[0].replace(b'"a b": 1.5', b'"a b": 1.5, "a b": 1.5')
    assert decoder.decode([twice]) is None


@pytest.mark.parametrize(
    "change",
    [
        (b'"?"', b'"?", "question": "?"'),
        (b'"query": "a"', b'"query": "a", "query": "a"'),
        (b'"query": "a"', b'"query": "a", "x": {"y": 1, "y": 1}'),
        (b'"query": "a"', b'"quer\\u0079": "a"'),
        (b'"query": "a"', b'"query": "\\u003a"'),
        (b"7", b"7.0"),
        (b"7", b"true"),
        (b"7", b"null"),
        (b"null", b"3"),
    ],
)
def test_a_line_that_may_hold_a_fault_is_left(change):
    (good,) = lines(ROW)
    assert change[0] in good
    assert StrictLines(Trajectory).decode([good]) is not None
    odd = good.replace(*change)
    expected = change[1] == b'"quer\\u0079": "a"'  # an escape in a key is a key all the same
    assert (StrictLines(Trajectory).decode([good, odd]) is not None) == expected


def test_a_file_without_a_fixed_set_of_keys_is_left():
    decoder = StrictLines(Trajectory)
    found = [decoder.decode(lines(ROW | {f"x{n}": n})) is not None for n in range(400)]
    assert all(found[:200]) and not any(found[300:])
    assert decoder.decode(lines(ROW)) is not None


@given(st.lists(trajectories(), max_size=4))
def test_what_was_written_is_decoded(records):
    found = StrictLines(Trajectory).decode([msgspec.json.encode(record) for record in records])
    plain = [msgspec.structs.replace(record, generated_tokens=None) for record in records]
    assert list(records_of(Flat.of_records(found, range(len(found)))).values()) == plain
