"""Integer columns against the plain reading of records, and through Parquet."""

import dataclasses

import numpy as np
import pyarrow.parquet as pq
from data_strategies import trajectories
from hypothesis import given
from hypothesis import strategies as st
from reference.text import is_blank, query_key

from herald_jax.data.columns import SCHEMA, Columns
from herald_jax.data.ids import IdTable
from herald_jax.data.jsonl import read_jsonl, write_jsonl
from herald_jax.data.ragged import Ragged
from herald_jax.data.records import Step, Trajectory
from herald_jax.types import NO_ANSWER, PAD

RECORDS = st.lists(trajectories(), max_size=6)
CORPUS = ["p1", "p2", "7"]


def encode(records):
    ids, queries = IdTable(CORPUS), IdTable([])
    return Columns.of_records(records, ids, queries), ids


def assert_equal(ours, theirs):
    for field in dataclasses.fields(Columns):
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        parts = zip(
            (a.values, a.offsets) if isinstance(a, Ragged) else (a,),
            (b.values, b.offsets) if isinstance(b, Ragged) else (b,),
            strict=True,
        )
        for x, y in parts:
            assert x.dtype == y.dtype, field.name
            np.testing.assert_array_equal(x, y, err_msg=field.name)


def executed(record):
    return [step for step in record.steps if step.valid and not is_blank(step.query)]


@given(RECORDS)
def test_columns_are_the_plain_reading(records):
    columns, ids = encode(records)
    assert len(columns) == len(records)

    def names(codes):
        return [ids.decode(code) for code in codes]

    for row, record in enumerate(records):
        searches = executed(record)
        keys = [query_key(step.query) for step in searches]
        assert columns.searches[row] == len(searches)
        assert columns.invalid[row] == len(record.steps) - len(searches)
        assert columns.repeated[row] == (len(set(keys)) < len(keys))
        assert columns.logged[row] == record.logged
        assert names(columns.citations[row]) == (record.citations or [])
        assert columns.citations_logged[row] == (record.citations is not None)
        returned = [name for step in searches for name in step.retrieved or []]
        assert names(columns.returned[row]) == returned
        blank = is_blank(record.answer)
        assert (columns.answer_tokens[row] <= 0) == blank
        assert (columns.answer_tokens[row] == NO_ANSWER) == (record.answer is None)
        assert columns.malformed[row] == record.malformed_citations


@given(RECORDS)
def test_every_state_survives_jsonl_arrays_parquet_arrays(tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("columns")
    write_jsonl(folder / "file.jsonl", records)
    loaded = [r for b in read_jsonl(folder / "file.jsonl", Trajectory) for r in b.records]
    columns, _ = encode(loaded)
    pq.write_table(columns.to_table(), folder / "file.parquet", row_group_size=2)
    assert_equal(Columns.of_table(pq.read_table(folder / "file.parquet")), columns)
    assert pq.read_schema(folder / "file.parquet").equals(SCHEMA)


def test_states_by_hand():
    record = Trajectory(
        "t",
        "q",
        "?",
        [
            Step("a", ["p2", "p2"]),
            Step("b", []),
            Step("c", None),
            Step("\t", ["p1"]),
            Step("A ", ["p1"], False),
        ],
        " ",
        [],
    )
    columns, _ = encode([record])
    assert columns.query.tolist() == [0, 1, 2, PAD, 0]
    assert columns.valid.tolist() == [True, True, True, True, False]
    assert columns.executed.tolist() == [True, True, True, False, False]
    assert columns.retrieved.lengths.tolist() == [2, 0, 0, 1, 1]
    assert columns.retrieved_logged.tolist() == [True, True, False, True, True]
    assert columns.logged.tolist() == [False]  # of an executed search nothing was recorded
    assert columns.returned[0].tolist() == [2, 2]  # "7" < "p1" < "p2"
    assert columns.repeated.tolist() == [False]  # the invalid step repeats nothing
    assert columns.answer_tokens.tolist() == [0]


def test_a_slice_of_a_table_is_read_as_what_it_holds():
    records = [
        Trajectory("t", "q", "?", [Step("a", ["p1"])], "x", ["p1"]),
        Trajectory("u", "q", "?", [Step("b", None), Step("c", ["p2"])], None, None),
    ]
    columns, _ = encode(records)
    second = Columns.of_table(columns.to_table().slice(1))
    assert second.steps.tolist() == [0, 2]
    assert second.retrieved_logged.tolist() == [False, True]
    assert second.returned[0].tolist() == [2]
    assert second.citations_logged.tolist() == [False]
