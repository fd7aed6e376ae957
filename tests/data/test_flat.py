"""Flat columns: the same rows and the same faults, by whatever way a file is read."""

import threading

import fsspec
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chunks import Audit, check
from data_strategies import trajectories
from flat_records import records_of
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data import flat_files
from herald_jax.data.flat import Flat
from herald_jax.data.flat_files import read_flat
from herald_jax.data.jsonl import read_jsonl, write_jsonl
from herald_jax.data.parquet import arrow_schema, read_parquet, write_parquet
from herald_jax.data.records import OracleRow, Step, Trajectory

AUDIT = Audit(["p1", "p2", "7"], [OracleRow("q", ["Oslo"], ["p2", "elsewhere"])])
RECORDS = [
    Trajectory("t1", "q", "?", [Step("a", ["p1", "x"]), Step(" ", None)], "Oslo", ["p1"], "m"),
    Trajectory("t2", "q", "?", [], None, None, rollout=-5, candidates=["p2", "x"]),
    Trajectory("t3", "7", "!", [Step("b", None), Step("B ", [], False)], "", [], candidates=[]),
    Trajectory("t4", "q", "?", [Step("b", ["7"]), Step("B ", ["7"])], "oslo", ["7"], pool="one"),
]


def table(records=RECORDS):
    rows = [msgspec.to_builtins(record) for record in records]
    return pa.Table.from_pylist(rows, schema=arrow_schema(Trajectory))


def batch_of(columns):
    return pa.table(columns).combine_chunks().to_batches()[0]


def with_column(name, column):
    found = table()
    columns = dict(zip(found.column_names, found.columns, strict=True))
    if column is None:
        del columns[name]
    else:
        columns[name] = column
    return columns


STEP = [("query", pa.large_string()), ("valid", pa.bool_())]


@pytest.mark.parametrize(
    "columns",
    [
        with_column("question_id", pa.array(["q", "q", "7", "q"]).dictionary_encode()),
        with_column("question_id", pa.array(["q", "q", "7", "q"], pa.large_string())),
        with_column("answer", pa.array(["Oslo", None, "", "oslo"]).dictionary_encode()),
        with_column("model", pa.array(["m", None, "", None]).dictionary_encode()),
        with_column("model", pa.array(["m", None, "", None])),
        with_column("pool", pa.array([None, None, None, "one"])),
        with_column("rollout", pa.array([None, -5, 0, None], pa.int16())),
        with_column("selected", pa.array([None, False, None, False])),
        with_column(
            "candidates", pa.array([None, ["p2", "x"], [], None], pa.large_list(pa.string()))
        ),
        with_column(
            "citations",
            pa.array(
                [["p1"], None, [], ["7"]], pa.large_list(pa.dictionary(pa.int8(), pa.string()))
            ),
        ),
        with_column("generated_tokens", None),
        with_column("unknown", pa.array([1.5, None, 2, 3])),
        with_column(
            "steps",
            pa.array(
                [
                    [{"query": "a", "retrieved": ["p1", "x"]}, {"query": " "}],
                    [],
                    [{"query": "b"}, {"query": "B ", "retrieved": [], "valid": False}],
                    [{"query": "b", "retrieved": ["7"]}, {"query": "B ", "retrieved": ["7"]}],
                ],
                pa.large_list(
                    pa.struct(
                        [*STEP, ("retrieved", pa.list_(pa.dictionary(pa.int32(), pa.string())))]
                    )
                ),
            ),
        ),
    ],
)
def test_other_writers_batches_are_taken_as_they_are(tmp_path, columns):
    batch = batch_of(columns)
    flat = Flat.of_batch(batch, 1)
    assert flat is not None
    check(flat, AUDIT, RECORDS, [1, 2, 3, 4])
    for start in range(4):
        for stop in range(start + 1, 5):
            flat = Flat.of_batch(batch.slice(start, stop - start), start + 1)
            assert flat is not None
            check(flat, AUDIT, RECORDS[start:stop], range(start + 1, stop + 1))
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=3)
    lines = []
    for part in read_flat(tmp_path / "rows.parquet", batch_rows=2):
        lines += part.flat.line.tolist()
        check(part.flat, AUDIT, [RECORDS[line - 1] for line in part.flat.line], part.flat.line)
    assert lines == [1, 2, 3, 4]


def test_integer_ids():
    step = pa.struct([("query", pa.string()), ("retrieved", pa.list_(pa.int32()))])
    columns = with_column(
        "steps", pa.array([[{"query": "a", "retrieved": [7, -1]}]] * 4, pa.list_(step))
    )
    columns["trajectory_id"] = pa.array([2**63 + 5, 7, 0, 1], pa.uint64())
    columns["citations"] = pa.array([[1], [], [7, 7], [7]], pa.list_(pa.int64()))
    columns["question_id"] = pa.array([7, 7, 8, 7], pa.uint8())
    flat = Flat.of_batch(batch_of(columns), 1)
    records = [
        msgspec.structs.replace(
            record,
            trajectory_id=name,
            question_id=question,
            steps=[Step("a", ["7", "-1"])],
            citations=citations,
        )
        for record, name, question, citations in zip(
            RECORDS,
            ["9223372036854775813", "7", "0", "1"],
            ["7", "7", "8", "7"],
            [["1"], [], ["7", "7"], ["7"]],
            strict=True,
        )
    ]
    check(flat, AUDIT, records, [1, 2, 3, 4])


def test_what_lies_behind_a_null_list_is_not_there():
    items = pa.array(["p1", "secret", "p2"])
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3, 3], pa.int32()), items, mask=pa.array([False, True, False, True])
    )
    flat = Flat.of_batch(batch_of(with_column("citations", lists)), 1)
    expected = [["p1"], None, ["p2"], None]
    records = [
        msgspec.structs.replace(record, citations=citations)
        for record, citations in zip(RECORDS, expected, strict=True)
    ]
    check(flat, AUDIT, records, [1, 2, 3, 4])


STRING_LISTS = pa.list_(pa.string())
BROKEN = pa.StringArray.from_buffers(
    4, *pa.array([b"?", b"?", b"\xff", b"?"], pa.binary()).buffers()[1:]
)


@pytest.mark.parametrize(
    "columns",
    [
        with_column("trajectory_id", pa.array(["t1", None, "t3", "t4"])),
        with_column("trajectory_id", pa.array([1.0, 2.0, 3.0, 4.0])),
        with_column("trajectory_id", pa.array([True, False, True, True])),
        with_column("question", pa.array(["?", "?", None, "?"]).dictionary_encode()),
        with_column("question", pa.array([1, 2, 3, 4])),
        with_column("question", BROKEN),
        with_column("citations", pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4]), BROKEN)),
        with_column("citations", pa.array([[b"a"], [], None, []])),
        with_column("unknown", pa.array([{"a": 1}] * 4)),
        with_column("answer", pa.array([["a"], [], None, ["a"]])),
        with_column("answer", pa.nulls(4)),
        with_column("model", pa.array([3, 4, 5, 6])),
        with_column("rollout", pa.array([1, 2**63, 3, 4], pa.uint64())),
        with_column("rollout", pa.array([1.0, 2.0, 3.0, 4.0])),
        with_column("rollout", pa.array([1, 2, 3, 3]).dictionary_encode()),
        with_column("selected", pa.array([1, 0, 1, 0])),
        with_column("malformed_citations", pa.array([0, -1, 2**31 - 1, 2**31])),
        with_column("generated_tokens", pa.array([0, -1, None, 2**31])),
        with_column("citations", pa.array([["a", None], [], None, []], STRING_LISTS)),
        with_column("citations", pa.array([[1.0], [], None, []])),
        with_column("citations", pa.array([[[]], [], None, []])),
        with_column("citations", pa.array([[], [], None, []], pa.list_(pa.null()))),
        with_column("citations", pa.array([["a"], ["b"], None, ["c"]], pa.list_(pa.string(), 1))),
        with_column("citations", pa.array(["a", "b", None, "c"])),
        with_column("candidates", pa.nulls(4)),
        with_column("candidates", pa.array([["a", None], [], None, []], STRING_LISTS)),
        with_column("steps", pa.array([[], None, [], []], table().schema.field("steps").type)),
        with_column("steps", pa.array([[], [], [], []], pa.list_(pa.null()))),
        with_column("steps", pa.array([[], [1], [], []])),
        with_column("steps", pa.array([[{"query": "a"}, None], [], [], []])),
        with_column("steps", pa.array([[{"query": None}], [], [], [{"query": "x"}]])),
        with_column("steps", pa.array([[{"retrieved": ["p1"]}], [], [], []])),
        with_column("steps", pa.array([[{"query": "a", "retrieved": ["p", None]}], [], [], []])),
        with_column("steps", pa.array([[{"query": "a", "valid": None}], [], [], []])),
        with_column("steps", pa.array([[{"query": "a", "valid": 1}], [], [], []])),
        with_column("question_id", None),
        with_column("answer", None),
        with_column("citations", None),
    ],
)
def test_irregular_files_are_read_as_records_are(tmp_path, columns):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    batches = list(read_parquet(path, Trajectory))
    for batch_rows in (1, 65536):
        parts = list(read_flat(path, batch_rows=batch_rows))
        assert [f for part in parts for f in part.faults] == [f for b in batches for f in b.faults]
        assert sum(part.rows for part in parts) == 4
        records = {
            line: record
            for batch in batches
            for line, record in zip(batch.lines, batch.records, strict=True)
        }
        lines = [line for part in parts for line in part.flat.line.tolist()]
        assert lines == list(records)
        for part in parts:
            found = part.flat.line.tolist()
            check(part.flat, AUDIT, [records[line] for line in found], found)


@given(st.lists(trajectories(), min_size=1, max_size=6), st.data())
def test_parts_are_joined(records, data):
    cuts = data.draw(st.lists(st.integers(0, len(records)), max_size=3).map(sorted))
    lines = list(range(1, len(records) + 1))
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, len(records)], strict=True):
        flat = Flat.of_records(records[start:stop], lines[start:stop])
        if data.draw(st.booleans()) and stop > start:
            batch = table(records).to_batches()[0].slice(start, stop - start)
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns["question_id"] = columns["question_id"].dictionary_encode()
            columns["answer"] = columns["answer"].dictionary_encode()
            flat = Flat.of_batch(pa.RecordBatch.from_pydict(columns), start + 1)
        parts.append(flat)
    check(Flat.joined(parts), AUDIT, records, lines)


def test_faults_of_json_lines_and_the_rest(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_jsonl(path, RECORDS)
    good = path.read_bytes().splitlines()
    path.write_bytes(
        b"\n".join([good[0], b"", b"{", good[1].replace(b'"answer":', b'"answer":1,"answer":')])
        + b"\n"
        + good[2]
    )
    (batch,) = read_jsonl(path, Trajectory)
    for batch_rows in (1, 2, 65536):
        parts = list(read_flat(path, batch_rows=batch_rows))
        assert [fault for part in parts for fault in part.faults] == batch.faults
        assert [fault.line for fault in batch.faults] == [3, 4]
        assert sum(part.rows for part in parts) == batch.rows == 4
        assert max(part.rows for part in parts) == min(batch_rows, 4)
        assert [line for part in parts for line in part.flat.line.tolist()] == [1, 5]


@pytest.mark.parametrize("key", ["\t", "a\\b", '"', "", " ", "\x7f", "é", "\U0001f427", "class"])
def test_keys_that_nobody_knows_may_be_called_anything(tmp_path, key):
    path = tmp_path / "rows.jsonl"
    rows = [msgspec.to_builtins(record) for record in RECORDS]
    rows[1][key] = {key: [1]}
    rows[3]["steps"][0][key] = None
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    (part,) = read_flat(path)
    assert part.faults == []
    check(part.flat, AUDIT, RECORDS, [1, 2, 3, 4])


def test_addresses(tmp_path):
    for name, write in (("rows.jsonl", write_jsonl), ("rows.parquet", None)):
        path = tmp_path / name
        if write:
            write(path, RECORDS)
        else:
            write_parquet(path, RECORDS, Trajectory)
        address = f"memory://flat/{name}"
        with fsspec.open(address, "wb") as file:
            file.write(path.read_bytes())
        (part,) = read_flat(address)
        check(part.flat, AUDIT, RECORDS, [1, 2, 3, 4])


def test_a_file_without_rows(tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(b"\n\n")
    write_parquet(tmp_path / "rows.parquet", [], Trajectory)
    assert (
        list(read_flat(tmp_path / "rows.jsonl")) == list(read_flat(tmp_path / "rows.parquet")) == []
    )


def test_batches_are_bounded_in_bytes(tmp_path, monkeypatch):
    records = [
        msgspec.structs.replace(RECORDS[0], trajectory_id=f"t{n}", answer=f"{n}" * 1000)
        for n in range(40)
    ]
    files = (tmp_path / "rows.jsonl", tmp_path / "rows.parquet")
    write_jsonl(files[0], records)
    write_parquet(files[1], records, Trajectory)
    monkeypatch.setattr(flat_files, "BATCH_BYTES", 10_000)
    monkeypatch.setattr(flat_files, "BLOCK_BYTES", 3_000)
    for path in files:
        parts = list(read_flat(path))
        assert len(parts) > 3
        assert max(part.flat.nbytes for part in parts) < 20_000
        found = [row for part in parts for row in records_of(part.flat).items()]
        assert found == list(enumerate(records, 1))


def test_dictionaries_that_writers_gave_up(tmp_path):
    records = [
        msgspec.structs.replace(RECORDS[0], question_id=f"a rather long question id {n}")
        for n in range(3000)
    ]
    path = tmp_path / "rows.parquet"
    pq.write_table(
        table(records), path, dictionary_pagesize_limit=200, data_page_size=500, row_group_size=2000
    )
    for batch_rows in (700, 65536):
        rows = [
            row
            for part in read_flat(path, batch_rows=batch_rows)
            for row in records_of(part.flat).items()
        ]
        assert rows == list(enumerate(records, 1))


def test_a_reader_may_stop_early(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_jsonl(path, RECORDS * 50)
    before = threading.active_count()
    batches = read_flat(path, batch_rows=3)
    assert len(next(batches).flat) == 3
    batches.close()
    assert threading.active_count() == before
