"""All faults of all files at once, and warnings of ids that look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.near import look
from herald_jax.data.parquet import write_parquet
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory
from herald_jax.data.validate import kind_of_file, validate_files


def short(faults):
    return [(f.file.rsplit("/")[-1], f.line, f.field, f.code, f.warning) for f in faults]


def test_good_files_have_no_faults(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [Passage("p1", "t")])
    write_parquet(tmp_path / "b.parquet", [Passage("p2", "t")], Passage)
    write_jsonl(tmp_path / "c.jsonl", [OracleRow("q", ["x"], ["p1"])])
    write_jsonl(tmp_path / "d.jsonl", [Trajectory("t", "q", "?", [Step("s", ["p1"])], "x", ["f"])])
    assert validate_files(sorted(tmp_path.iterdir())) == []


def test_ids_are_distinct_over_all_files_of_a_kind(tmp_path):
    write_jsonl(tmp_path / "corpus1.jsonl", [Passage("p", "t")])
    write_parquet(tmp_path / "corpus2.parquet", [Passage("o", "t"), Passage("p", "t")], Passage)
    (fault,) = validate_files(sorted(tmp_path.iterdir()))
    assert (fault.line, fault.code) == (2, "duplicate_id")
    assert fault.file.endswith("corpus2.parquet")
    assert "corpus1.jsonl:1" in fault.got
    assert fault.expected and fault.remedy


def test_kinds_of_files(tmp_path):
    cases = {
        "trajectories-1.jsonl": ("", Trajectory),
        "corpus.jsonl": ('{"trajectory_id": 1}', Passage),
        "oracle_dev.jsonl": ("{", OracleRow),
        "x.jsonl": ('\ufeff\n{broken\n{"trajectory_id": 1, "question_id": 1}', Trajectory),
        "y.jsonl": ('{"passage_id": 1}', Passage),
        "z.jsonl": ('{"question_id": 1, "support_ids": []}', OracleRow),
        "w.jsonl": ('{"question_id": 1}', None),
        "v.jsonl": ("", None),
    }
    for name, (text, kind) in cases.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert kind_of_file(tmp_path / name) is kind, name


def test_files_of_no_kind_and_no_files(tmp_path):
    (tmp_path / "v.jsonl").write_text("{}")
    found = validate_files([tmp_path / "v.jsonl", tmp_path / "none.jsonl", tmp_path])
    assert [fault.code for fault in found] == ["unknown_kind", "unreadable", "unreadable"]


def test_ids_that_look_alike(tmp_path):
    corpus = [Passage(name, "") for name in ("7", "p1", "ﬁ", "x")]
    oracle = [OracleRow("Q", [], ["P1"])]
    records = [
        Trajectory("t", "q", "?", [Step("s", ["007", "x", "y"])], "a", [" p1", "fi", "7.0", "Y"]),
        Trajectory("T", "q", "?", [], "a", [" p1"], candidates=["X"]),
    ]
    write_jsonl(tmp_path / "corpus.jsonl", corpus)
    write_jsonl(tmp_path / "oracle.jsonl", oracle)
    write_jsonl(tmp_path / "trajectories.jsonl", records)
    found = validate_files(sorted(tmp_path.iterdir()))
    assert [(f.file.rsplit("/")[-1], f.line, f.field, f.got) for f in found] == [
        ("oracle.jsonl", 1, "support_ids", '"P1"'),
        ("trajectories.jsonl", 1, "steps.retrieved", '"007"'),
        ("trajectories.jsonl", 1, "citations", '" p1"'),
        ("trajectories.jsonl", 1, "citations", '"fi"'),
        ("trajectories.jsonl", 1, "citations", '"7.0"'),
        ("trajectories.jsonl", 1, "citations", '"Y"'),
        ("trajectories.jsonl", 2, "candidates", '"X"'),
        ("trajectories.jsonl", 1, "question_id", '"q"'),
        ("trajectories.jsonl", 2, "trajectory_id", '"T"'),
    ]
    assert all(fault.warning and fault.code == "near_id" for fault in found)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("é", "e\u0301", True),
        ("Ａ1", "a1", True),
        ("\u00a0a", "a", True),
        ("-0", "0", True),
        ("+7", "7.", True),
        ("-7", "7", False),
        ("7.5", "7", False),
        ("a-7", "a7", False),
        ("7a", "07a", False),
    ],
)
def test_looks(one, other, alike):
    assert (look(one) == look(other)) == alike


@given(st.text(max_size=8))
def test_a_look_is_one_for_both_ways(name):
    # The shortcut for ASCII gives what the general way gives.
    assert look(name) == look(f"{name}\u3000")


@given(st.integers(-(10**30), 10**30), st.integers(0, 3))
def test_numbers_look_like_their_value(number, zeros):
    sign = "-" if number < 0 else ""
    assert look(f"{sign}{'0' * zeros}{abs(number)}.0") == look(str(number))
