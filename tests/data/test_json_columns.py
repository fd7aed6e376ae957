"""JSON Lines read by columns: line for line what the exact way reads, and refuses."""

import json

import msgspec
import pytest
from data_strategies import trajectories
from flat_records import records_of
from hypothesis import given, settings
from hypothesis import strategies as st

from herald_jax.data import flat_files
from herald_jax.data.flat_files import read_flat
from herald_jax.data.json_columns import read_columns
from herald_jax.data.json_skeleton import Skeleton
from herald_jax.data.jsonl import read_jsonl
from herald_jax.data.records import Trajectory


def assert_read_alike(path, data, **options):
    """Both ways give the same records and the same faults; how many lines columns took."""
    path.write_bytes(data)
    records, faults, rows = {}, [], 0
    for batch in read_jsonl(path, Trajectory):
        plain = [msgspec.structs.replace(r, generated_tokens=None) for r in batch.records]
        records |= dict(zip(batch.lines, plain, strict=True))
        faults += batch.faults
        rows += batch.rows
    found = list(read_flat(path, **options))
    assert [fault for batch in found for fault in batch.faults] == faults
    assert sum(batch.rows for batch in found) == rows
    together = [item for batch in found for item in records_of(batch.flat).items()]
    assert together == list(records.items())


def taken(data, skeleton=None):
    """The lines of a block that columns take, as records."""
    flat, others = read_columns(data, 1, skeleton or Skeleton())
    assert len(flat) + len(others) == data.count(b"\n")
    return records_of(flat)


LINE = {
    "trajectory_id": "t",
    "question_id": "q",
    "question": "Who?",
    "model": "m",
    "pool": "one",
    "rollout": 3,
    "selected": True,
    "steps": [
        {"query": "a, b", "retrieved": ["p1", "p2"], "valid": True},
        {"query": "c", "retrieved": []},
        {"query": "", "valid": False, "retrieved": None},
    ],
    "answer": "Oslo",
    "citations": ["p1"],
    "malformed_citations": 2,
    "generated_tokens": 17,
    "candidates": ["p3"],
}


def line(**changes):
    return {**LINE, **changes}


def without(*names):
    return {name: value for name, value in LINE.items() if name not in names}


def written(*rows, separators=(", ", ": "), **options):
    return "".join(
        json.dumps(row, separators=separators, **options) + "\n" for row in rows
    ).encode()


REGULAR = [
    LINE,
    line(answer=None, citations=None, candidates=None, generated_tokens=None),
    line(citations=[], candidates=[], steps=[]),
    without("model", "pool", "rollout", "selected", "citations", "candidates"),
    line(rollout=-(2**63), malformed_citations=2**31 - 1),
    line(steps=[{"retrieved": ["x"], "query": "q"}], answer="a: b, c [d] {e}"),
    line(question="\u201cWho\u201d said 5\u00bd \U0001f427?", trajectory_id=""),
    line(question='a "b" \\ \n \t \x7f', answer="\\", steps=[{"query": '"'}]),
    line(score=0.5, tags=["a", "b"], note="n", done=False, nothing=None, none=[], count=7),
    line(steps=[{"query": "q", "took": 1.5e3, "engine": "e"}]),
]


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("row", REGULAR)
def test_regular_lines_are_taken(tmp_path, row, separators, ascii_only):
    data = written(LINE, row, LINE, separators=separators, ensure_ascii=ascii_only)
    assert set(taken(data)) == {1, 2, 3}
    assert set(taken(data.replace(b"\n", b"\r\n"))) == {1, 2, 3}
    assert_read_alike(tmp_path / "rows.jsonl", data)
    assert_read_alike(tmp_path / "rows.jsonl", data.removesuffix(b"\n"))


def changed(old, new):
    data = written(LINE)
    assert data.count(old) == 1
    return data.replace(old, new)


ODD = [
    b"\n",
    b" \t\r\n",
    b"{}\n",
    b"[]\n",
    b'"a"\n',
    b'"a": "b"\n',
    b'{"a\n',
    written(without("answer")),
    written(without("steps")),
    written(line(steps=[{"retrieved": []}])),
    written(line(steps=[{}])),
    written(line(steps=None)),
    written(line(steps=["a"])),
    written(line(extra={"a": 1})),
    written(line(extra=[1, 2])),
    written(line(extra=[["a"]])),
    written(line(citations=[1, 2])),
    written(line(citations=["p1", 2])),
    written(line(citations=[["p1"]])),
    written(line(citations="p1")),
    written(line(question=["Who?"])),
    written(line(trajectory_id=7)),
    written(line(trajectory_id=None)),
    written(line(rollout=2**63)),
    written(line(rollout=3.0)),
    written(line(rollout=None)),
    written(line(malformed_citations=-1)),
    written(line(generated_tokens=2**31)),
    written(line(selected=1)),
    written(line(model=None)),
    written(line(extra=float("nan"))),
    written(LINE, indent=0).replace(b"\n", b" ") + b"\n",
    changed(b'"rollout": 3', b'"rollout": 03'),
    changed(b'"rollout": 3', b'"rollout": +3'),
    changed(b'"rollout": 3', b'"rollout": 3.'),
    changed(b'"rollout": 3', b'"rollout":  3'),
    changed(b'"rollout": 3', b'"extra": 1e999'),
    changed(b'"rollout": 3', b'"rollout": 3, "rollout": 3'),
    changed(b'"rollout": 3', b'"rollout": 3, "query": "a"'),
    changed(b'"rollout": 3', b'"rollout": 3, "x": "a", "x": "a"'),
    changed(b'"rollout": 3', b'"rollout": 3, "x": 1, "y": 1, "x": 2'),
    changed(b'"rollout": 3', b'"roll\\u006fut": 3'),
    changed(b'"rollout": 3', b'"rollout" : 3'),
    changed(b'"rollout": 3', b'"rollout": 3 '),
    changed(b'"rollout": 3', b'"rollout": 3, '),
    changed(b'"rollout": 3, ', b'"rollout": 3 '),
    changed(b'"rollout": 3', b'"rollout": 3}, {"query": "a"'),
    changed(b'"rollout": 3', b'"rollout": 3}], "x": "a"'),
    changed(b'"rollout": 3', b'"rollout": -'),
    changed(b'"rollout": 3', b'"rollout": "3'),
    changed(b'"Oslo"', b'"Oslo" "Oslo"'),
    changed(b'"Oslo"', b'"Oslo", "Oslo"'),
    changed(b'"Oslo"', b'"Oslo"]'),
    changed(b'"Oslo"', b'["Oslo"'),
    changed(b'"Oslo"', b'"Os\tlo"'),
    changed(b'"Oslo"', b'"Os\x00lo"'),
    changed(b'"Oslo"', b'"Os\\xlo"'),
    changed(b'"Oslo"', b'"\\ud800"'),
    changed(b'"Oslo"', b'"Oslo\\"'),
    changed(b'"Oslo"', b'\\"Oslo"'),
    changed(b'"Oslo"', b'"\xff"'),
    changed(b'"Oslo"', b'"\xed\xa0\x80"'),
    changed(b'["p1", "p2"]', b'["p1" "p2"]'),
    changed(b'["p1", "p2"]', b'["p1",, "p2"]'),
    changed(b'["p1", "p2"]', b'["p1"; "p2"]'),
    changed(b'["p1", "p2"]', b'["p1":"p2"]'),
    changed(b'["p1", "p2"]', b'["p1", "p2",]'),
    changed(b'["p1", "p2"]', b'["p1", "p2"}'),
    changed(b'["p1", "p2"]', b'["p1", null, "p2"]'),
    changed(b'["p1", "p2"]', b'"p1", "p2"]'),
    changed(b'"valid": true}, ', b'"valid": true, "query": "again"}, '),
    changed(b'"valid": true}, ', b'"valid": true, "x": 1, "x": 1}, '),
    changed(b'"valid": true}, ', b'"valid": true, "answer": "a"}, '),
    changed(b'"valid": true}, ', b'"valid": true}], '),
    changed(b'"valid": true}, ', b'"valid": true}'),
    changed(b'"valid": true}, ', b'"valid": true}, {}, '),
    changed(b'"valid": true}, ', b'"valid": true}}, '),
    changed(b'"valid": true}, ', b'"valid": 1}, '),
    written(LINE).replace(b"}\n", b"\n"),
    written(LINE).replace(b"}\n", b"}}\n"),
    written(LINE).replace(b"}\n", b"},\n"),
    written(LINE).replace(b"}\n", b"} \n"),
    written(LINE).replace(b"}\n", b"}\r\r\n"),
    b" " + written(LINE),
    b"\xef\xbb\xbf" + written(LINE),
    written(LINE).replace(b"{", b"[", 1),
    written(LINE).replace(b"{", b"", 1),
    written(LINE).replace(b"{", b"{ ", 1),
    written(LINE).replace(b"{", b"{1", 1),
    written(LINE).replace(b"{", b'{"a", ', 1),
    written(LINE).replace(b"{", b'{"a" ', 1),
    b'{"steps": [{"query": "a"}]}\n',
]


@pytest.mark.parametrize("data", ODD)
def test_odd_lines_are_left_and_the_others_taken(tmp_path, data):
    around = written(LINE)
    assert set(taken(data)) == set()
    assert set(taken(around + data + around)) == {1, 2 + data.count(b"\n")}
    assert_read_alike(tmp_path / "rows.jsonl", around + data + around)
    assert_read_alike(tmp_path / "rows.jsonl", data)


LINES = trajectories().map(lambda row: msgspec.json.encode(row) + b"\n")
PIECES = st.sampled_from(
    [b'"', b"\\", b"\\u00", b"{", b"}", b"[", b"]", b",", b", ", b":", b" ", b"\n", b"\r", b"1",
     b"-", b"null", b"true", b"\xc3", b'"query":"a"', b'"answer":null,', b'}],"x":[{"', b"\x00"]
)  # fmt: skip


@st.composite
def damaged(draw):
    """Lines of which bytes were cut out, put in or copied from elsewhere."""
    data = b"".join(draw(st.lists(LINES, min_size=1, max_size=4)))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        stop = min(start + draw(st.integers(0, 12)), len(data))
        piece = draw(st.one_of(st.just(b""), PIECES, st.just(data[stop : stop + 30])))
        data = data[:start] + piece + data[stop:]
    return data


@given(damaged(), st.integers(1, 4))
@settings(max_examples=400)
def test_damaged_lines_are_read_alike(tmp_path_factory, data, batch_rows):
    path = tmp_path_factory.getbasetemp() / "damaged.jsonl"
    assert_read_alike(path, data)
    assert_read_alike(path, data, batch_rows=batch_rows)


@given(st.lists(trajectories(), min_size=1, max_size=4))
def test_what_was_written_here_is_taken(records):
    data = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
    plain = [msgspec.structs.replace(record, generated_tokens=None) for record in records]
    assert list(taken(data).values()) == plain


def test_a_skeleton_remembers_keys_but_not_without_end():
    skeleton = Skeleton()
    for number in range(600):
        data = written(line(**{f"extra_{number}": number}))
        assert set(taken(data, skeleton)) == ({1} if number < 240 else set())
    assert set(taken(written(LINE), skeleton)) == {1}


def test_blocks_are_cut_between_lines(tmp_path, monkeypatch):
    data = b"".join(written(line(trajectory_id=f"t{n}")) + b"\n" * (n % 3) for n in range(20))
    for block in (1, 700, 1500, 1 << 20):
        monkeypatch.setattr(flat_files, "BLOCK_BYTES", block)
        for batch_rows in (1, 3, 100):
            assert_read_alike(tmp_path / "rows.jsonl", data, batch_rows=batch_rows)
