"""Pools: order, what is set aside, what is refused, and that file order changes nothing."""

import hashlib
import random
from functools import partial

import numpy as np
import pytest
from pool_rows import PLAIN

from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.parquet import write_parquet
from herald_jax.data.records import Node, OracleRow, Passage, Step, Trajectory
from herald_jax.pool import logs
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.ingest import Longest
from herald_jax.pool.load import load_pool, pool_from_records
from herald_jax.types import NO_ANSWER, InputError


def trajectory(name, question_id="q1", **fields):
    defaults = {"question": f"text of {question_id}", "steps": [], "answer": "x", "citations": []}
    return Trajectory(name, question_id, **(defaults | fields))


PASSAGES = [Passage("p2", "two"), Passage("p10", "ten"), Passage("p1", "one", "title")]
ORACLE = [
    OracleRow("q2", [], ["p1"]),
    OracleRow("q1", ["X y", "x"], ["p2", "z", "p2"]),
    OracleRow("q0", ["nobody asked"], []),
]
RECORDS = [
    trajectory("c", "q2", answer=None, rollout=1),
    trajectory("b", "q1", rollout=2, steps=[Step("s", ["p2", "u", "p2"]), Step(" ", ["p1"])]),
    trajectory("d", "q1", rollout=1, answer="X y", citations=["p10", "v", "p10"]),
    trajectory(
        "a", "q1", rollout=2, steps=[Step("S", []), Step("s ", ["p1"]), Step("s", ["p1"], False)]
    ),
]


def write(folder, trajectories=RECORDS, passages=PASSAGES, oracle=ORACLE):
    write_jsonl(folder / "trajectories.jsonl", trajectories)
    write_jsonl(folder / "corpus.jsonl", passages)
    write_jsonl(folder / "oracle.jsonl", oracle)
    return find_pool_files(folder)


def names(pool):
    """Trajectory ids of the rows."""
    return [pool.rows.name(row) for row in range(len(pool.rows))]


def test_a_pool_by_hand():
    pool = pool_from_records(RECORDS, PASSAGES, ORACLE)
    rows = pool.rows
    assert names(pool) == ["d", "a", "b", "c"]
    assert pool.records_of(rows) == [RECORDS[at] for at in (2, 3, 1, 0)]
    assert pool.records([(0, 2), (0, 1)]) == {(0, 1): RECORDS[0], (0, 2): RECORDS[1]}
    assert [passage.passage_id for passage in pool.passages] == ["p1", "p10", "p2"]
    # Passages by rank, then the support id that is none; nothing else has a code of its own.
    assert pool.ids.names == ["p1", "p10", "p2", "z"]

    # All questions of the oracle, asked or not.
    assert pool.questions.ids == ["q0", "q1", "q2"]
    assert pool.counts.tolist() == [0, 3, 1]
    assert (pool.n_rows, pool.n_questions) == (4, 2)
    assert rows.question.tolist() == [1, 1, 1, 2]
    (u,) = set(rows.retrieved[2].tolist()) - {2}
    (v,) = set(rows.citations[0].tolist()) - {1}
    assert min(u, v) >= 4 and u != v
    assert [rows.retrieved[row].tolist() for row in range(4)] == [[], [0], [2, u, 2], []]
    assert [rows.citations[row].tolist() for row in range(4)] == [[1, v, 1], [], [], []]
    assert rows.table["rollout"].tolist() == [1, 2, 2, 1]
    assert rows.table["searches"].tolist() == [0, 2, 1, 0]
    assert rows.table["invalid"].tolist() == [0, 1, 1, 0]
    assert rows.table["repeated"].tolist() == [False, True, False, False]
    assert rows.table["answer_tokens"].tolist() == [2, 1, 1, NO_ANSWER]
    assert rows.table["em"].tolist() == [1, 1, 1, 0]
    assert rows.table["f1"].tolist() == [1, 1, 1, 0]
    assert rows.table["is_gold"].tolist() == [True, False, False, False]

    assert pool.questions.golds == [["nobody asked"], ["X y", "x"], []]
    support = [pool.questions.support[question].tolist() for question in range(3)]
    assert support == [[], [2, 3], [0]]
    np.testing.assert_array_equal(pool.questions.gold_em, [1, 1, np.nan])
    np.testing.assert_array_equal(pool.questions.gold_f1, [1, 1, np.nan])
    assert pool.questions.gold_tokens.tolist() == [2, 2, NO_ANSWER]
    assert pool.longest == Longest(
        retrieved=3, citations=3, candidates=0, searches=2, answer_tokens=2
    )
    assert pool.set_aside == {}
    assert pool.skipped == [] and pool.warnings == [] and pool.inputs == {}


def test_models_and_pools_are_numbered_in_order(tmp_path):
    records = [
        trajectory(str(at), model=model, pool=pool, rollout=at)
        for at, (model, pool) in enumerate([("b", ""), ("", "y"), ("é", "x"), ("b", "y")])
    ]
    pool = pool_from_records(records, PASSAGES, ORACLE)
    assert (pool.models.all, pool.pools.all) == (("", "b", "é"), ("", "x", "y"))
    assert pool.rows.table["model"].tolist() == [1, 0, 2, 1]
    assert pool.rows.table["pool"].tolist() == [0, 2, 1, 2]


def test_rows_that_cannot_be_judged_are_counted():
    records = [
        trajectory("a", citations=None),
        trajectory("b", steps=[Step("s", None)]),
        trajectory("c", steps=[Step("s", None, False), Step(" ", None)]),  # they returned nothing
        trajectory("d", "unknown"),
        trajectory("e", "unknown", citations=None),
        trajectory("f", steps=[Step("s", None)], citations=None),
    ]
    pool = pool_from_records(records, PASSAGES, ORACLE)
    assert names(pool) == ["c"]
    assert (pool.n_rows, pool.n_questions, pool.counts.tolist()) == (1, 1, [0, 1, 0])
    assert pool.set_aside == {"not_logged": 4, "no_oracle": 1}
    assumed = pool_from_records(records, PASSAGES, ORACLE, assume_no_citations=True)
    assert names(assumed) == ["a", "c"]
    assert assumed.set_aside == {"not_logged": 2, "no_oracle": 2}
    assert records[0].citations is None  # the caller's records are left alone


def test_nothing_to_judge_is_no_error(tmp_path):
    pool = load_pool(*write(tmp_path, [], [], []))
    assert len(pool.rows) == 0 and len(pool.rows.retrieved) == 0
    assert (pool.n_rows, pool.n_questions) == (0, 0)
    assert pool.questions.ids == [] and pool.set_aside == {}
    assert pool.inputs[str(tmp_path / "trajectories.jsonl")] == {
        "sha256": hashlib.sha256(b"").hexdigest(),
        "rows": 0,
    }


def test_the_order_of_files_and_rows_changes_nothing(tmp_path):
    expected = pool_from_records(RECORDS, PASSAGES, ORACLE)
    shuffler = random.Random(0)
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        lists = [shuffler.sample(items, len(items)) for items in (RECORDS, PASSAGES, ORACLE)]
        for kind, items in zip(("trajectories", "corpus", "oracle"), lists, strict=True):
            write_jsonl(folder / f"{kind}-1.jsonl", items[:2])
            write_parquet(folder / f"{kind}-2.parquet", items[2:], type(items[0]))
        pool = load_pool(*find_pool_files(folder))
        assert pool.records_of(pool.rows) == expected.records_of(expected.rows)
        assert pool.passages == expected.passages
        assert pool.questions.ids == expected.questions.ids
        assert pool.questions.golds == expected.questions.golds
        for field in ("support", "gold_em", "gold_f1", "gold_tokens"):
            found, wanted = getattr(pool.questions, field), getattr(expected.questions, field)
            np.testing.assert_array_equal(
                getattr(found, "values", found), getattr(wanted, "values", wanted)
            )
        for field in PLAIN:
            if field not in ("file", "line"):
                np.testing.assert_array_equal(pool.rows.table[field], expected.rows.table[field])
        # Codes beyond the table are each file's own.
        for found, wanted in zip(pool.rows.lists, expected.rows.lists, strict=True):
            np.testing.assert_array_equal(found.offsets, wanted.offsets)
            np.testing.assert_array_equal(np.minimum(found.values, 4), np.minimum(wanted.values, 4))
        assert {name: entry["rows"] for name, entry in pool.inputs.items()} == {
            str(folder / f"{kind}-{part}"): rows
            for kind, count in (("trajectories", 4), ("corpus", 3), ("oracle", 3))
            for part, rows in (("1.jsonl", 2), ("2.parquet", count - 2))
        }


def test_all_faults_of_all_files_are_listed(tmp_path):
    paths = write(
        tmp_path,
        [*RECORDS, trajectory("a"), trajectory("e", question="another text")],
        [*PASSAGES, Passage("p1", "again")],
        [*ORACLE, OracleRow("q1", [], [])],
    )
    with (tmp_path / "corpus.jsonl").open("ab") as file:
        file.write(b'{"passage_id": 1.5}\n')
    with pytest.raises(InputError) as caught:
        load_pool(*paths)
    found = [(f.file.rsplit("/")[-1], f.line, f.field, f.code) for f in caught.value.faults]
    assert found == [
        ("trajectories.jsonl", 5, "trajectory_id", "duplicate_id"),
        ("trajectories.jsonl", 6, "question", "question_disagrees"),
        ("corpus.jsonl", 4, "passage_id", "duplicate_id"),
        ("corpus.jsonl", 5, "passage_id", "bad_id"),
        ("corpus.jsonl", 5, "text", "missing_field"),
        ("oracle.jsonl", 4, "question_id", "duplicate_id"),
    ]
    pool = load_pool(*paths, skip_bad_rows=True)
    assert pool.set_aside == {"bad_row": 5}
    assert pool.skipped == list(caught.value.faults)
    assert [passage.text for passage in pool.passages] == ["one", "ten", "two"]
    assert names(pool) == ["d", "a", "b", "c"]


def test_integer_and_string_ids_clash(tmp_path):
    paths = write(tmp_path, [], [], [])
    (tmp_path / "corpus.jsonl").write_text(
        '{"passage_id": 7, "text": ""}\n'
        '{"passage_id": "7", "text": ""}\n'
        '{"passage_id": "007", "text": ""}\n'
    )
    with pytest.raises(InputError) as caught:
        load_pool(*paths)
    assert [(fault.line, fault.code) for fault in caught.value.faults] == [(2, "duplicate_id")]


@pytest.mark.parametrize(
    ("nodes", "faults"),
    [
        ([Node("a", ["b"], [], []), Node("b", [], [], [])], []),
        ([Node("a", ["c"], [], [])], [("nodes[0].depends_on[0]", "unknown_node")]),
        ([Node("a", ["a"], [], [])], [("nodes", "dependency_cycle")]),
        (
            [Node("a", ["b"], [], []), Node("b", ["c"], [], []), Node("c", ["a"], [], [])],
            [("nodes", "dependency_cycle")],
        ),
        ([Node("a", [], [], []), Node("a", [], [], [])], [("nodes[1].node_id", "duplicate_id")]),
    ],
)
def test_evidence_graphs(nodes, faults):
    labels = [OracleRow("q1", [], [], nodes)]
    if not faults:
        assert names(pool_from_records(RECORDS[1:2], PASSAGES, labels)) == ["b"]
        return
    with pytest.raises(InputError) as caught:
        pool_from_records(RECORDS[1:2], PASSAGES, labels)
    assert [(fault.field, fault.code) for fault in caught.value.faults] == faults


def test_files_that_cannot_be_read_are_never_skipped(tmp_path):
    (log,), corpus, _ = write(tmp_path, [*RECORDS, RECORDS[0]])
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1")
    with pytest.raises(InputError) as caught:
        load_pool([bad, log], corpus, [tmp_path / "none.jsonl", bad], skip_bad_rows=True)
    # What is wrong with the files that can be read is told all the same.
    assert [(fault.code, fault.line) for fault in caught.value.faults] == [
        ("unreadable", 0),
        ("duplicate_id", 5),
        ("unreadable", 0),
        ("unreadable", 0),
    ]
    assert all(fault.remedy for fault in caught.value.faults)


def test_patterns_and_folders_stand_for_their_files(tmp_path):
    write(tmp_path)
    folder = tmp_path / "logs"
    folder.mkdir()
    files = [folder / "a.parquet", folder / "b.jsonl"]
    write_parquet(files[0], RECORDS[1:], Trajectory)
    write_jsonl(files[1], RECORDS[:1])
    (folder / "notes.txt").touch()
    for named in ([folder], [folder / "*.parquet", folder / "*.jsonl"], [files[0], folder]):
        pool = load_pool(named, [tmp_path / "corpus.*"], [tmp_path / "oracle*"])
        assert names(pool) == ["d", "a", "b", "c"]
        assert [log.name for log in pool.logs] == list(map(str, files))
    with pytest.raises(InputError) as caught:
        load_pool([folder / "*.csv"], [tmp_path / "corpus.*"], [tmp_path / "oracle*"])
    assert [fault.code for fault in caught.value.faults] == ["no_match"]


def test_progress_is_told(tmp_path):
    paths = write(tmp_path)
    calls = []
    load_pool(*paths, progress=lambda *call: calls.append(call))
    # How many rows a table of JSON Lines has is known at its end; of trajectories it is estimated.
    assert list(dict.fromkeys(calls)) == [
        ("read corpus.jsonl", 3, 0),
        ("read corpus.jsonl", 3, 3),
        ("read oracle.jsonl", 3, 0),
        ("read oracle.jsonl", 3, 3),
        ("read trajectories", 4, 4),
    ]


@pytest.mark.parametrize("write_file", [write_jsonl, partial(write_parquet, kind=Trajectory)])
def test_progress_ends_at_all_rows_and_never_goes_back(tmp_path, write_file, monkeypatch):
    monkeypatch.setattr(logs, "read_flat", partial(logs.read_flat, batch_rows=3))
    monkeypatch.setattr(logs, "_SAMPLE", 300)  # by which rows are estimated
    _, corpus, oracle = write(tmp_path, [])
    files = []
    for number, rows in enumerate((7, 0, 11)):
        ending = "jsonl" if write_file is write_jsonl else "parquet"
        files.append(tmp_path / f"{number}.{ending}")
        long = [trajectory(f"{number} {at}", answer="x" * at**2) for at in range(rows)]
        write_file(files[-1], long)
    calls = []
    load_pool(files, corpus, oracle, progress=lambda *call: calls.append(call))
    told = [(done, total) for stage, done, total in calls if stage == "read trajectories"]
    assert told[-1] == (18, 18)
    assert [done for done, _ in told] == [3, 6, 7, 10, 13, 16, 18, 18]
    assert all(done <= total for done, total in told)


def test_squad_rules_reach_the_metrics():
    records = [trajectory("a", answer="“x”")]
    for rules, em in (("unicode", 1), ("squad", 0)):
        pool = pool_from_records(records, PASSAGES, ORACLE, rules=rules)
        assert pool.rows.table["em"].tolist() == [em]


def test_ids_that_look_like_known_ones_are_warned_of_once(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "read_flat", partial(logs.read_flat, batch_rows=1))
    first = [
        # Set aside or not: somebody may have meant another id.
        trajectory("a", "Q1", steps=[Step("s", ["p2", "P2"])], citations=None),
        trajectory("b", steps=[Step(" ", ["p2 "])], citations=["P2", "Z", "unlike"]),
    ]
    second = [trajectory("c", "Q1", candidates=["p02", " P10"]), trajectory("C", citations=["P2"])]
    _, corpus, oracle = write(tmp_path, [])
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    for path, records in zip(files, (first, second), strict=True):
        write_jsonl(path, records)
    pool = load_pool(files, corpus, oracle)
    found = [(f.file.rsplit("/")[-1], f.line, f.field, f.got, f.expected) for f in pool.warnings]
    in_corpus, in_oracle = "which the corpus or the oracle has", "which the oracle has"
    assert found == [
        ("1.jsonl", 1, "steps.retrieved", '"P2"', f'an id unlike "p2", {in_corpus}'),
        ("1.jsonl", 1, "question_id", '"Q1"', f'an id unlike "q1", {in_oracle}'),
        ("1.jsonl", 2, "steps.retrieved", '"p2 "', f'an id unlike "p2", {in_corpus}'),
        ("1.jsonl", 2, "citations", '"Z"', f'an id unlike "z", {in_corpus}'),
        ("2.jsonl", 1, "candidates", '" P10"', f'an id unlike "p10", {in_corpus}'),
    ]
    assert all(fault.warning and fault.code == "near_id" for fault in pool.warnings)
