"""Faults of import: framing of lines, wide ids, what was not logged, ids and queries as written."""

import base64
import json
from collections import Counter
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from flat_records import records_of
from pool_blocks import oracle_of, visible_of
from trajectory_arrays import rules

from herald_jax.data.flat_files import read_flat
from herald_jax.data.ids import IdTable
from herald_jax.data.jsonl import read_jsonl
from herald_jax.data.parquet import read_parquet, write_parquet
from herald_jax.data.records import Passage, Trajectory
from herald_jax.data.text import query_key
from herald_jax.kernels import programs
from known_faults.audits import audited
from known_faults.cases import (
    Case,
    citation_status,
    exact,
    ids_of_codes,
    one_question_each,
    write_lines,
    written_pool,
)


def jsonl_framing(case: Case, folder: Path) -> None:
    file = folder / "trajectories.jsonl"
    file.write_bytes(base64.b64decode(case.given["file_base64"]))
    batches = list(read_jsonl(file, Trajectory))
    accepted = [
        {"line": line, "trajectory_id": record.trajectory_id, "answer": record.answer}
        for batch in batches
        for line, record in zip(batch.lines, batch.records, strict=True)
    ]
    assert accepted == [
        {
            "line": row["line"],
            "trajectory_id": row["trajectory_id"],
            "answer": "".join(map(chr, row["answer_code_points"])),
        }
        for row in case.expected["accepted"]
    ]
    first_of_line: dict[int, str] = {}
    for fault in (fault for batch in batches for fault in batch.faults):
        first_of_line.setdefault(fault.line, fault.code)
    assert [list(pair) for pair in first_of_line.items()] == case.expected["rejected"]


def id_width(case: Case, folder: Path) -> None:
    corpus = [{"passage_id": i, "text": ""} for i in json.loads(case.given["corpus_ids_json"])]
    rows = []
    for line in case.given["rows_jsonl"]:
        row = json.loads(line)
        rows.append(
            {
                "trajectory_id": row["trajectory_id"],
                "question_id": "q",
                "question": "?",
                "steps": [{"query": "s", "retrieved": row["retrieved"]}],
                "answer": "x",
                "citations": row["citations"],
            }
        )
    file = write_lines(folder / "passages.jsonl", corpus)
    names = [p.passage_id for batch in read_jsonl(file, Passage) for p in batch.records]
    assert names == case.expected["corpus_ids"]
    assert len(IdTable(names)) == case.expected["n_distinct_corpus_ids"]

    statuses = case.expected["citation_status"]
    bad = {name for name, status in statuses.items() if status == "bad_id"}
    file = write_lines(folder / "all.jsonl", rows)
    faults = [fault for batch in read_jsonl(file, Trajectory) for fault in batch.faults]
    assert {rows[fault.line - 1]["trajectory_id"] for fault in faults} == bad
    assert {fault.code for fault in faults} <= {"bad_id"}

    pool = written_pool(
        folder,
        [row for row in rows if row["trajectory_id"] not in bad],
        [{"passage_id": name, "text": ""} for name in dict.fromkeys(names)],
        [{"question_id": "q", "answers": [], "support_ids": []}],
    )
    assert len(pool.rows) == len(rows) - len(bad)
    for row, record in enumerate(pool.records_of(pool.rows)):
        assert citation_status(pool, row, record) == statuses[record.trajectory_id]


def _logs(case: Case) -> list[dict]:
    preamble = case.given["preamble"]
    template = json.dumps(preamble["template"])
    first = [json.loads(template.replace("{i}", str(i))) for i in range(preamble["count"])]
    return [*first, *case.given["records"]]


def _three_states(case: Case, folder: Path) -> dict[str, dict[str, bool | None]]:
    """The two checks of every log, after it went from JSONL to arrays to Parquet and back."""
    file = write_lines(folder / "trajectories.jsonl", _logs(case))
    records = [r for batch in read_jsonl(file, Trajectory) for r in batch.records]
    write_parquet(folder / "records.parquet", records, Trajectory)
    again = [r for b in read_parquet(folder / "records.parquet", Trajectory) for r in b.records]
    assert again == records

    (batch,) = read_flat(folder / "records.parquet")
    columns = records_of(batch.flat).values()
    without = [
        None if row.citations is None else bool((row.answer or "").split() and not row.citations)
        for row in columns
    ]
    unretrieved = [
        bool(set(row.citations) - {n for s in row.steps if s.executed for n in s.retrieved})
        if row.logged
        else None
        for row in columns
    ]
    return {
        record.trajectory_id: {"answer_without_citation": a, "cites_unretrieved": u}
        for record, a, u in zip(records, without, unretrieved, strict=True)
    }


def null_vs_empty(case: Case, folder: Path) -> None:
    found = _three_states(case, folder)
    for name, states in case.expected["by_trajectory"].items():
        assert found[name] == states, name
    values = [states["answer_without_citation"] for states in found.values()]
    known = [value for value in values if value is not None]
    assert values.count(None) == case.expected["n_unknown_answer_without_citation"]
    assert len(known) == case.expected["n_known"]
    assert np.mean(known) == float(exact(case.expected["rate_answer_without_citation"]))


def null_vs_empty_in_an_audit(case: Case, folder: Path) -> None:
    """What was not logged is set aside and counted; it is in no rate."""
    logs = one_question_each(_logs(case))
    ids = {
        name
        for row in logs
        for names in (row.get("citations"), *(step.get("retrieved") for step in row["steps"]))
        for name in names or []
    }
    report = audited(
        written_pool(
            folder,
            logs,
            [{"passage_id": name, "text": ""} for name in ids],
            [{"question_id": r["question_id"], "answers": [], "support_ids": []} for r in logs],
        )
    )
    states = list((_three_states(case, folder) | case.expected["by_trajectory"]).values())
    judged = [state for state in states if None not in state.values()]
    assert report["rows"] == len(judged)
    assert report["set_aside"].get("not_logged", 0) == len(states) - len(judged)
    for flag, state in (
        ("answer_without_citation", "answer_without_citation"),
        ("cited_not_retrieved", "cites_unretrieved"),
    ):
        assert report["natural"][flag] == sum(row[state] for row in judged), flag


def _detector_files(case: Case) -> tuple[list[dict], list[dict], list[dict]]:
    labels = case.given["oracle_support_by_trajectory"]
    logs = one_question_each(case.given["trajectories"])
    oracle = [
        {
            "question_id": row["question_id"],
            "answers": [],
            "support_ids": labels[row["trajectory_id"]],
        }
        for row in logs
    ]
    return logs, case.given["corpus"], oracle


def detectors(case: Case, folder: Path) -> None:
    pool = written_pool(folder, *_detector_files(case))
    rows = pool.rows
    assert len(rows) == len(case.given["trajectories"])
    for row, record in enumerate(pool.records_of(rows)):
        states = case.expected["by_trajectory"][record.trajectory_id]
        cited, got = rows.citations[row].tolist(), rows.retrieved[row].tolist()
        gold = pool.questions.support[int(rows.question[row])].tolist()
        assert citation_status(pool, row, record) == states["citation_status"]
        assert len(cited) - len(set(cited)) == states["duplicate_citations"]
        assert bool(rows.table["searches"][row] == 0) == states["no_search"]
        assert rows.table["invalid"][row] == states["blank_queries"]
        keys = Counter(query_key(step.query) for step in record.steps if step.executed)
        assert sum(keys.values()) - len(keys) == states["repeated_queries"]
        assert rows.table["repeated"][row] == (states["repeated_queries"] > 0)
        without = bool(rows.table["answer_tokens"][row] > 0 and not cited)
        assert without == states["answer_without_citation"]
        named = {
            "uncited_support": [code for code in gold if code not in cited],
            "unretrieved_support": [code for code in gold if code not in got],
            "over_retrieved": [code for code in dict.fromkeys(got) if code not in gold],
        }
        ids = ids_of_codes(pool, row, record)
        for name, codes in named.items():
            assert sorted(ids[code] for code in codes) == sorted(states[name]), name


def _fires(case: Case, name: str, answer: str | None) -> dict[str, bool]:
    """The detectors of a trajectory, by its states."""
    states = case.expected["by_trajectory"][name]
    status = states["citation_status"]
    gold = set(case.given["oracle_support_by_trajectory"][name])
    return {
        "no_search": states["no_search"] and bool((answer or "").strip()),
        "cited_not_retrieved": "real_unretrieved" in status.values(),
        "fake_citation": "nonexistent" in status.values(),
        "repeated_query": states["repeated_queries"] > 0,
        "answer_without_citation": states["answer_without_citation"],
        "support_id_mismatch": bool(status) and not gold & set(status),
    }


def detectors_of_arrays(case: Case, folder: Path) -> None:
    """The same through the kernels that an audit runs, row by row."""
    pool = written_pool(folder, *_detector_files(case))
    rows = np.arange(len(pool.rows), dtype=np.int32)
    state = programs.describe(visible_of(pool, rows), jnp.int32(len(pool.passages)))
    measured = programs.measure_originals(state, oracle_of(pool, rows), rules())
    distinct = np.asarray(state.present & state.first).sum(axis=0)
    for row, record in enumerate(pool.records_of(pool.rows)):
        fires = _fires(case, record.trajectory_id, record.answer)
        found = {name: bool(getattr(measured.flags, name)[row]) for name in fires}
        assert found == fires, record.trajectory_id
        states = case.expected["by_trajectory"][record.trajectory_id]
        repeats = len(record.citations or []) - distinct[row]
        assert repeats == states["duplicate_citations"]


def detectors_in_an_audit(case: Case, folder: Path) -> None:
    """The report counts the rows on which each detector fires."""
    report = audited(written_pool(folder, *_detector_files(case)))
    fires = [
        _fires(case, row["trajectory_id"], row["answer"]) for row in case.given["trajectories"]
    ]
    for name in fires[0]:
        assert report["natural"][name] == sum(row[name] for row in fires), name
