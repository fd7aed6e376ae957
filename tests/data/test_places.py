"""Single rows, read again."""

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_strategies import trajectories
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.parquet import write_parquet
from herald_jax.data.places import read_places
from herald_jax.data.records import Trajectory


@given(st.lists(trajectories(), max_size=9), st.lists(st.integers(1, 10), max_size=5))
def test_any_rows_of_any_file(tmp_path_factory, records, lines):
    folder = tmp_path_factory.mktemp("rows")
    write_jsonl(folder / "rows.jsonl", records)
    write_parquet(folder / "rows.parquet", records, Trajectory)
    table = pq.read_table(folder / "rows.parquet")
    pq.write_table(table, folder / "groups.parquet", row_group_size=2)
    expected = {line: records[line - 1] for line in sorted(set(lines)) if line <= len(records)}
    for name in ("rows.jsonl", "rows.parquet", "groups.parquet"):
        assert read_places(folder / name, lines) == expected


def test_other_lines_may_hold_anything(tmp_path):
    path = tmp_path / "rows.jsonl"
    record = Trajectory("t", "q", "?", [], None)
    write_jsonl(path, [record])
    path.write_bytes(b"\xef\xbb\xbf{\n\n\xff\n" + path.read_bytes())
    assert read_places(path, [4]) == {4: record}
    assert read_places(path, [1, 2, 4, 9]) == {4: record}  # no record, no entry
    with fsspec.open("memory://places/rows.jsonl", "wb") as file:
        file.write(path.read_bytes())
    assert read_places("memory://places/rows.jsonl", [4]) == {4: record}


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_places(tmp_path / "rows.jsonl", [1])
    (tmp_path / "rows.parquet").write_bytes(b"no")
    with pytest.raises(pa.ArrowInvalid):
        read_places(tmp_path / "rows.parquet", [1])
