"""Objects to records: the quick way and the way that names every fault agree."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.checks import convert_all, dotted, read_object, reporter, shown
from herald_jax.data.integer_ids import integer_ids_as_text
from herald_jax.data.records import OracleRow, Trajectory

ODD = st.sampled_from([None, True, 0, 7, -1, 2**31, 2**70, 1.5, "x", "7", [], ["a", 3], [[1]], {}])


def often(strategy):
    return st.one_of(strategy, strategy, strategy, ODD)


IDS = st.one_of(st.sampled_from(["p", "7", ""]), st.integers(-5, 2**70))
LISTS = often(st.lists(often(IDS), max_size=3))
STEPS = st.fixed_dictionaries(
    {"query": often(st.text(max_size=2))},
    optional={"retrieved": LISTS, "valid": often(st.booleans()), "other": ODD},
)
ROWS = st.fixed_dictionaries(
    {"trajectory_id": often(IDS), "question_id": IDS, "question": st.just("?")},
    optional={
        "steps": often(st.lists(often(STEPS), max_size=3)),
        "answer": often(st.text(max_size=2)),
        "citations": LISTS,
        "rollout": ODD,
        "selected": ODD,
        "malformed_citations": ODD,
        "generated_tokens": ODD,
    },
)
NODES = st.fixed_dictionaries(
    {"node_id": IDS, "depends_on": LISTS, "support_ids": LISTS, "answers": LISTS}
)
LABELS = st.fixed_dictionaries(
    {"question_id": IDS, "answers": st.one_of(st.just("x"), LISTS), "support_ids": LISTS},
    optional={"nodes": often(st.lists(NODES, max_size=2))},
)


def read(value, kind, **options):
    faults = []
    record = read_object(value, kind, reporter("f", 1, faults), **options)
    assert (record is None) == bool(faults)
    return record, faults


@given(st.one_of(st.tuples(st.just(Trajectory), ROWS), st.tuples(st.just(OracleRow), LABELS)))
def test_both_ways_agree(case):
    kind, value = case
    record, _ = read(value, kind)
    quick = convert_all([copy.deepcopy(value)], kind)
    if quick is not None:
        assert quick == [record]
    elif record is not None:  # the one thing that only the careful way reads
        assert kind is OracleRow
        assert isinstance(value["answers"], str)


@given(ROWS)
def test_integer_ids_as_text_changes_no_reading(value):
    before = read(value, Trajectory)
    integer_ids_as_text([value], Trajectory)
    after = read(value, Trajectory)
    assert before[0] == after[0]
    assert [fault.field for fault in before[1]] == [fault.field for fault in after[1]]


def test_other_integers_stay():
    value = {"trajectory_id": 1, "rollout": 2, "steps": [{"query": 3, "retrieved": [4, 5.0]}]}
    integer_ids_as_text([value], Trajectory)
    assert value == {
        "trajectory_id": "1",
        "rollout": 2,
        "steps": [{"query": 3, "retrieved": [4, 5.0]}],
    }


def test_null_is_missing_where_a_file_has_no_other_way_to_say_so():
    value = {
        "trajectory_id": "t",
        "question_id": "q",
        "question": "?",
        "steps": [{"query": "s", "valid": None}],
        "answer": None,
        "model": None,
    }
    assert [fault.field for fault in read(value, Trajectory)[1]] == ["steps[0].valid", "model"]
    record, _ = read(value, Trajectory, null_is_missing=True)
    assert record.steps[0].valid
    assert record.model == ""
    value["question"] = None
    _, faults = read(value, Trajectory, null_is_missing=True)
    assert [(fault.field, fault.code) for fault in faults] == [("question", "wrong_type")]


def test_messages_are_short_and_printable():
    assert dotted(("steps", 2, "retrieved", 0)) == "steps[2].retrieved[0]"
    assert dotted(()) == ""
    assert len(shown("x" * 1000)) == 60
    shown("\ud83d").encode()
    _, faults = read({"trajectory_id": "\ud83d"}, Trajectory)
    for fault in faults:
        str(fault).encode()
