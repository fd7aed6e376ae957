"""JSON Lines to the letter: framing, what is refused, and that the fast way is the exact one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data import jsonl
from herald_jax.data.jsonl import read_jsonl, write_jsonl
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory

GOOD = b'{"passage_id": "p1", "text": "t"}'


def read(tmp_path, data, kind=Passage, **options):
    path = tmp_path / "file.jsonl"
    path.write_bytes(data)
    return list(read_jsonl(path, kind, **options))


def outcome(tmp_path, data, kind=Passage, **options):
    """Records by line, and faults as (line, field, code)."""
    batches = read(tmp_path, data, kind, **options)
    records = {}
    for batch in batches:
        records |= dict(zip(batch.lines, batch.records, strict=True))
    faults = [(f.line, f.field, f.code) for batch in batches for f in batch.faults]
    return records, faults


def codes(tmp_path, line, kind=Passage):
    """Codes of a line that stands between two good ones, which must load."""
    records, faults = outcome(tmp_path, GOOD + b"\n" + line + b"\n" + GOOD, Passage)
    assert {1, 3} <= set(records)
    assert {number for number, _, _ in faults} <= {2}
    assert (2 in records) == (not faults)
    return [code for _, _, code in faults]


def test_framing(tmp_path):
    data = (
        b"\xef\xbb\xbf" + GOOD + b"\r\n\n \t\r\n" + GOOD.replace(b"p1", b"p2\xe2\x80\xa8\xc2\x85")
    )
    records, faults = outcome(tmp_path, data)
    assert faults == []
    assert {line: record.passage_id for line, record in records.items()} == {
        1: "p1",
        4: "p2\u2028\u0085",
    }


def test_an_empty_file_has_no_rows(tmp_path):
    assert outcome(tmp_path, b"") == ({}, [])
    assert outcome(tmp_path, b"\xef\xbb\xbf\n\n") == ({}, [])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"passage_id":"a","text":"t","passage_id":"b"}', "duplicate_key"),
        (b'{"passage_id":"a","text":"t","x":{"y":1,"y":1}}', "duplicate_key"),
        (b'{"passage_id":"a","text":"t","x":[{"y":1,"\\u0079":1}]}', "duplicate_key"),
        (b'{"passage_id":"\\u003a","text":"t","text":"t"}', "duplicate_key"),
        (b'{"passage_id":"a","text" :"t","text"\t: "t"}', "duplicate_key"),
        (b'{"passage_id":"a","text":"t","x":NaN}', "nonfinite_number"),
        (b'{"passage_id":"a","text":"t","x":-Infinity}', "nonfinite_number"),
        (b'{"passage_id":"a","text":"t","x":1e999}', "nonfinite_number"),
        (b'{"passage_id":"a","text":"\\ud83d"}', "lone_surrogate"),
        (b'{"passage_id":"a","text":"t","x":"\\udf0a\\ud83c"}', "lone_surrogate"),
        (b'{"passage_id":"a","text":"t","\\ud83d":1}', "lone_surrogate"),
        (b'{"passage_id":"a","text":"t","x":"\xff"}', "not_utf8"),
        (b'{"passage_id":"a","text":"t","\xed\xa0\x80":1}', "not_utf8"),
        (b'{"passage_id":"a","text":"t"', "bad_json"),
        (b'{"passage_id":"a","text":"t"} {}', "bad_json"),
        (b'{"passage_id":"a","text":"t",}', "bad_json"),
        (b'{"passage_id":"a","text":"\x01"}', "bad_json"),
        (b'{"passage_id":"a","text":"t","x":007}', "bad_json"),
        (b'{"passage_id":"a","text":"t","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "bad_json"),
        (b"\xef\xbb\xbf" + GOOD, "bad_json"),
        (b"\x0b", "bad_json"),
        (b'["passage_id"]', "wrong_type"),
        (b"null", "wrong_type"),
        (b'{"passage_id":"a"}', "missing_field"),
        (b'{"passage_id":"a","text":null}', "wrong_type"),
        (b'{"passage_id":5.0,"text":"t"}', "bad_id"),
        (b'{"passage_id":1e2,"text":"t"}', "bad_id"),
        (b'{"passage_id":true,"text":"t"}', "bad_id"),
        (b'{"passage_id":null,"text":"t"}', "wrong_type"),
    ],
)
def test_a_bad_line_is_refused_and_the_others_load(tmp_path, line, code):
    assert codes(tmp_path, line) == [code]


@pytest.mark.parametrize(
    "line",
    [
        b'{"passage_id":"a","text":"\\ud83c\\udf0a"}',
        b'{"passage_id":":\\":","text":": \\u003a :","title":"\\u003A"}',
        b'{"passage_id":"a","text":"t","x":{"passage_id":1},"y":[{"z":1},{"z":1}]}',
        b'{"passage_id":"a","text":"t","":0,"x":1e-999,"y":' + b"9" * 6000 + b"}",
    ],
)
def test_odd_but_good_lines_load(tmp_path, line):
    assert codes(tmp_path, line) == []


def test_all_faults_of_a_line_are_named(tmp_path):
    line = (
        b'{"trajectory_id": 1.5, "question": 3, '
        b'"steps": [{"query": "q"}, {"retrieved": ["p", {}]}, 4], "answer": "x", '
        b'"rollout": 99999999999999999999, "selected": 1, '
        b'"malformed_citations": -1}'
    )
    _, faults = outcome(tmp_path, line, Trajectory)
    assert faults == [
        (1, "trajectory_id", "bad_id"),
        (1, "question_id", "missing_field"),
        (1, "question", "wrong_type"),
        (1, "steps[1].query", "missing_field"),
        (1, "steps[1].retrieved[1]", "wrong_type"),
        (1, "steps[2]", "wrong_type"),
        (1, "rollout", "wrong_type"),
        (1, "selected", "wrong_type"),
        (1, "malformed_citations", "wrong_type"),
    ]


def test_faults_say_what_to_do(tmp_path):
    (batch,) = read(tmp_path, b'{"passage_id": 5.0, "text": "t", "text": 1}\n{"text": []}')
    for fault in batch.faults:
        assert fault.file == str(tmp_path / "file.jsonl")
        assert fault.expected and fault.got and fault.remedy
        assert not fault.warning


@pytest.mark.parametrize(
    "digits", ["7", "-1", "9007199254740993", "18446744073709551557", "8" * 5000]
)
def test_integer_ids_are_their_digits(tmp_path, digits):
    records, faults = outcome(tmp_path, b'{"passage_id": %s, "text": ""}' % digits.encode())
    assert faults == []
    assert records[1].passage_id == digits


def test_minus_zero_is_zero(tmp_path):
    for extra in (b"", b', "x": "\\u003a"'):  # the fast way and the exact one
        records, _ = outcome(tmp_path, b'{"passage_id": -0, "text": ""%s}' % extra)
        assert records[1].passage_id == "0"


def test_states_of_a_trajectory(tmp_path):
    line = (
        b'{"trajectory_id": 1, "question_id": "q", "question": "?", "answer": null, "unknown": {}, '
        b'"steps": [{"query": "a"}, {"query": "b", "retrieved": [], "valid": false}, '
        b'{"query": " ", "retrieved": [3, "p"]}]}'
    )
    records, faults = outcome(tmp_path, line, Trajectory)
    assert faults == []
    assert records[1] == Trajectory(
        "1", "q", "?", [Step("a", None), Step("b", [], False), Step(" ", ["3", "p"])], None, None
    )
    assert not records[1].logged


def test_a_bare_string_is_one_gold(tmp_path):
    line = (
        b'{"question_id": "q", "answers": "Oslo", "support_ids": [], "nodes": [{"node_id": 1, '
        b'"depends_on": [], "support_ids": ["p"], "answers": "x"}]}'
    )
    records, faults = outcome(tmp_path, line, OracleRow)
    assert faults == []
    assert records[1].answers == ["Oslo"]
    assert (records[1].nodes[0].node_id, records[1].nodes[0].answers) == ("1", ["x"])


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.sampled_from('":,{}[]\\ aé\u2028\n')),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(':"a ', max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


class Pairs(dict):
    """An object that json writes with the pairs it is given, equal keys included."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self._pairs = pairs

    def items(self):
        return self._pairs


@given(
    st.lists(st.tuples(st.text(':"a ', max_size=2), JSON), min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([":", " : ", ":\t"]),
)
def test_the_fast_way_never_takes_a_repeated_key(pairs, ascii_only, colon):
    line = json.dumps(Pairs(pairs), ensure_ascii=ascii_only, separators=(",", colon)).encode()
    keys = [key for key, _ in pairs]
    fast = jsonl.decode_surely([line])
    if len(set(keys)) < len(keys):
        assert fast is None
    else:
        assert fast == [json.loads(line)]


@given(
    st.lists(st.sampled_from([GOOD, b"", b"{", b'{"passage_id":7,"text":""}', b"\r"]), max_size=9)
)
def test_block_size_changes_nothing(tmp_path_factory, lines):
    tmp_path = tmp_path_factory.mktemp("blocks")
    data = b"\n".join(lines)
    whole = outcome(tmp_path, data)
    assert outcome(tmp_path, data, block_bytes=1) == whole
    assert outcome(tmp_path, data, block_bytes=40) == whole


def test_what_is_written_reads_back(tmp_path):
    records = [
        Trajectory("t\u2028", "q", "?", [Step("a", None), Step("b", [])], None, [], rollout=3),
        Trajectory("u", "q", "?", [], "x", None, selected=True, generated_tokens=5),
    ]
    write_jsonl(tmp_path / "file.jsonl", records)
    (batch,) = read_jsonl(tmp_path / "file.jsonl", Trajectory)
    assert batch.records == records
