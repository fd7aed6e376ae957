"""Parquet: records survive it, files of other writers are read, faults name the row."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_strategies import oracle_rows, passages, trajectories
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.jsonl import read_jsonl, write_jsonl
from herald_jax.data.parquet import arrow_schema, read_parquet, write_parquet
from herald_jax.data.records import Node, OracleRow, Passage, Step, Trajectory


def read(path, kind, **options):
    batches = list(read_parquet(path, kind, **options))
    return (
        [record for batch in batches for record in batch.records],
        [(fault.line, fault.field, fault.code) for batch in batches for fault in batch.faults],
    )


def written(tmp_path, columns):
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table(columns), path)
    return path


@given(
    st.one_of(
        st.tuples(st.just(Trajectory), st.lists(trajectories(), max_size=5)),
        st.tuples(st.just(Passage), st.lists(passages(), max_size=5)),
        st.tuples(st.just(OracleRow), st.lists(oracle_rows(), max_size=5)),
    )
)
def test_records_survive_jsonl_and_parquet(tmp_path_factory, case):
    kind, records = case
    folder = tmp_path_factory.mktemp("files")
    write_jsonl(folder / "file.jsonl", records)
    loaded = [r for batch in read_jsonl(folder / "file.jsonl", kind) for r in batch.records]
    write_parquet(folder / "file.parquet", loaded, kind)
    again, faults = read(folder / "file.parquet", kind, batch_rows=2)
    assert faults == []
    assert again == loaded == records


def test_the_schema_is_explicit():
    schema = arrow_schema(Trajectory)
    assert schema.field("citations").nullable
    assert not schema.field("steps").nullable
    step = schema.field("steps").type.value_type
    assert step.field("retrieved").nullable
    assert not step.field("query").nullable


def test_a_file_without_any_logged_list_keeps_its_types(tmp_path):
    path = tmp_path / "file.parquet"
    write_parquet(path, [Trajectory("t", "q", "?", [], None, None)], Trajectory)
    assert pq.read_schema(path) == arrow_schema(Trajectory)


def test_other_writers_types_are_read(tmp_path):
    step = pa.struct(
        [
            ("query", pa.large_string()),
            ("retrieved", pa.large_list(pa.dictionary(pa.int8(), pa.string()))),
        ]
    )
    path = written(
        tmp_path,
        {
            "trajectory_id": pa.array([2**63 + 5, 7], pa.uint64()),
            "question_id": pa.array(["q", "q"]).dictionary_encode(),
            "question": pa.array(["?", "?"], pa.large_string()),
            "steps": pa.array([[{"query": "a", "retrieved": ["p", "p"]}], []], pa.large_list(step)),
            "answer": pa.array([None, "x"]),
            "citations": pa.array([[1, 2], None], pa.large_list(pa.int32())),
            "model": pa.array([None, "m"]),
            "rollout": pa.array([3, None], pa.int8()),
            "unknown": pa.array([1.5, 2.5]),
        },
    )
    records, faults = read(path, Trajectory)
    assert faults == []
    assert records == [
        Trajectory(
            "9223372036854775813", "q", "?", [Step("a", ["p", "p"])], None, ["1", "2"], rollout=3
        ),
        Trajectory("7", "q", "?", [], "x", None, model="m"),
    ]


def test_nested_nodes_are_read(tmp_path):
    path = tmp_path / "file.parquet"
    rows = [OracleRow("q", ["a"], ["p"], [Node("n", [], ["p"], ["b"]), Node("m", ["n"], [], [])])]
    write_parquet(path, rows, OracleRow)
    assert read(path, OracleRow) == (rows, [])


def test_faults_name_the_row(tmp_path):
    path = written(
        tmp_path,
        {
            "passage_id": pa.array(["a", None, "c", "d"]),
            "text": pa.array(["t", "t", None, "t"]),
        },
    )
    records, faults = read(path, Passage, batch_rows=2)
    assert records == [Passage("a", "t"), Passage("d", "t")]
    assert faults == [(2, "passage_id", "wrong_type"), (3, "text", "wrong_type")]


def test_float_ids_are_refused(tmp_path):
    path = written(tmp_path, {"passage_id": pa.array([1.0, 2.0]), "text": pa.array(["t", "t"])})
    assert read(path, Passage) == ([], [(1, "passage_id", "bad_id"), (2, "passage_id", "bad_id")])


def test_an_id_that_is_not_a_number_is_called_so(tmp_path):
    path = written(tmp_path, {"passage_id": [float("nan"), float("-inf")], "text": ["a", "b"]})
    (batch,) = read_parquet(path, Passage)
    assert [fault.got for fault in batch.faults] == ["NaN", "-Infinity"]


def test_a_missing_or_repeated_column_is_one_fault_of_the_file(tmp_path):
    path = written(tmp_path, {"passage_id": pa.array(["a", "b"])})
    assert read(path, Passage) == ([], [(0, "text", "missing_field")])
    table = pa.table(
        [pa.array(["a"]), pa.array(["t"]), pa.array(["u"])], ["passage_id", "text", "text"]
    )
    pq.write_table(table, path)
    assert read(path, Passage) == ([], [(0, "text", "duplicate_key")])


def test_text_that_is_not_utf8(tmp_path):
    broken = pa.array([b"t", b"\xff"], pa.binary())
    path = written(
        tmp_path,
        {
            "passage_id": pa.array(["a", "b"]),
            "text": pa.StringArray.from_buffers(2, broken.buffers()[1], broken.buffers()[2]),
        },
    )
    assert read(path, Passage) == ([Passage("a", "t")], [(2, "", "not_utf8")])


def test_a_file_that_is_no_parquet(tmp_path):
    path = tmp_path / "file.parquet"
    path.write_text("{}\n")
    with pytest.raises(pa.ArrowInvalid):
        read(path, Passage)
