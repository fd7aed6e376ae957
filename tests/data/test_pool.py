"""Pools: order, what is set aside, what is refused, and that file order changes nothing."""

import hashlib
import random

import numpy as np
import pytest

from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.parquet import write_parquet
from herald_jax.data.records import Node, OracleRow, Passage, Step, Trajectory
from herald_jax.pool.find import find_pool_files
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


def test_a_pool_by_hand():
    pool = pool_from_records(RECORDS, PASSAGES, ORACLE)
    rows = pool.rows
    assert [record.trajectory_id for record in rows.records] == ["d", "a", "b", "c"]
    assert pool.question_ids == ["q1", "q2"]
    assert pool.questions == ["text of q1", "text of q2"]
    assert [row.question_id for row in pool.oracle] == ["q1", "q2"]
    assert [passage.passage_id for passage in pool.passages] == ["p1", "p10", "p2"]
    assert pool.ids.encode(["p1", "p10", "p2"]).tolist() == [0, 1, 2]
    u, v, z = (int(code) for code in pool.ids.encode(["u", "v", "z"]))
    assert min(u, v, z) >= 3 and len({u, v, z}) == 3

    assert rows.question.tolist() == [0, 0, 0, 1]
    assert [rows.retrieved[row].tolist() for row in range(4)] == [[], [0], [2, u, 2], []]
    assert [rows.citations[row].tolist() for row in range(4)] == [[1, v, 1], [], [], []]
    assert rows.searches.tolist() == [0, 2, 1, 0]
    assert rows.invalid.tolist() == [0, 1, 1, 0]
    assert rows.repeated.tolist() == [False, True, False, False]
    assert rows.answer_tokens.tolist() == [2, 1, 1, NO_ANSWER]
    assert rows.em.tolist() == [1, 1, 1, 0]
    assert rows.f1.tolist() == [1, 1, 1, 0]
    assert rows.is_gold.tolist() == [True, False, False, False]

    assert [pool.support[question].tolist() for question in range(2)] == [[2, z], [0]]
    np.testing.assert_array_equal(pool.gold_em, [1, np.nan])
    np.testing.assert_array_equal(pool.gold_f1, [1, np.nan])
    assert pool.gold_tokens.tolist() == [2, NO_ANSWER]
    assert pool.set_aside == {}
    assert pool.skipped == [] and pool.warnings == []


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
    assert [record.trajectory_id for record in pool.rows.records] == ["c"]
    assert pool.set_aside == {"not_logged": 4, "no_oracle": 1}
    assumed = pool_from_records(records, PASSAGES, ORACLE, assume_no_citations=True)
    assert [record.trajectory_id for record in assumed.rows.records] == ["a", "c"]
    assert assumed.set_aside == {"not_logged": 2, "no_oracle": 2}
    assert records[0].citations is None  # the caller's records are left alone


def test_nothing_to_judge_is_no_error(tmp_path):
    pool = load_pool(*write(tmp_path, [], [], []))
    assert len(pool.rows) == 0 and len(pool.rows.retrieved) == 0
    assert pool.question_ids == [] and pool.set_aside == {}
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
        assert pool.rows.records == expected.rows.records
        assert pool.passages == expected.passages
        assert pool.oracle == expected.oracle
        np.testing.assert_array_equal(pool.rows.retrieved.offsets, expected.rows.retrieved.offsets)
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
    assert [record.trajectory_id for record in pool.rows.records] == ["d", "a", "b", "c"]


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
        assert pool_from_records(RECORDS[1:2], PASSAGES, labels).oracle == labels
        return
    with pytest.raises(InputError) as caught:
        pool_from_records(RECORDS[1:2], PASSAGES, labels)
    assert [(fault.field, fault.code) for fault in caught.value.faults] == faults


def test_files_that_cannot_be_read_are_never_skipped(tmp_path):
    trajectories, corpus, _ = write(tmp_path)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError) as caught:
        load_pool(
            [*trajectories, tmp_path / "bad.parquet"],
            corpus,
            [tmp_path / "none.jsonl", tmp_path],
            skip_bad_rows=True,
        )
    assert [fault.code for fault in caught.value.faults] == ["unreadable"] * 3
    assert all(fault.remedy for fault in caught.value.faults)


def test_missing_files_are_named(tmp_path):
    write_jsonl(tmp_path / "corpus.jsonl", [])
    with pytest.raises(InputError, match="trajectories") as caught:
        find_pool_files(tmp_path)
    assert len(caught.value.faults) == 2
    with pytest.raises(InputError, match="no such directory") as caught:
        find_pool_files(tmp_path / "nowhere")
    assert len(caught.value.faults) == 1
    with pytest.raises(InputError, match="--trajectories, --corpus and --oracle") as caught:
        find_pool_files(tmp_path / "corpus.jsonl")
    assert len(caught.value.faults) == 1


def test_progress_is_told(tmp_path):
    paths = write(tmp_path)
    calls = []
    load_pool(*paths, progress=lambda file, rows: calls.append((file.rsplit("/")[-1], rows)))
    assert calls == [("trajectories.jsonl", 4), ("corpus.jsonl", 3), ("oracle.jsonl", 3)]


def test_squad_rules_reach_the_metrics():
    records = [trajectory("a", answer="“x”")]
    assert pool_from_records(records, PASSAGES, ORACLE).rows.em.tolist() == [1]
    assert pool_from_records(records, PASSAGES, ORACLE, rules="squad").rows.em.tolist() == [0]
