"""Faults that people met in import, metrics and padding, through the project's own functions.

Of `support-joint`, the joint score and F1 and exact match of the support set are no figures of an
audit; its answer scores, set precision and recall are here. Of `padded-gather`, no gradient runs
through the fixed-point sums of an audit. Of `shape-buckets`, no buffer is given away here.
"""

import base64
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest

from herald_jax.data.blocks import block_widths, bucket, group_blocks, oracle_block, visible_block
from herald_jax.data.columns import Columns
from herald_jax.data.ids import IdTable
from herald_jax.data.jsonl import read_jsonl
from herald_jax.data.metrics import contains, exact_match, f1
from herald_jax.data.parquet import read_parquet, write_parquet
from herald_jax.data.pool import load_pool, pool_from_records
from herald_jax.data.ragged import Ragged
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.data.text import normalise, query_key
from herald_jax.kernels.features import FeatureWeights, grounding
from herald_jax.kernels.membership import describe_labels, describe_state
from herald_jax.kernels.sums import margin_scale, margin_totals, question_sums
from herald_jax.types import PAD, Visible

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is absent")


def by_case(kind):
    """Every file of a kind, or one parameter that skips when there is none."""
    paths = sorted(CASES.glob(f"{kind}-*.json")) or [CASES / f"{kind}-open.json"]
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


def load(path):
    case = json.loads(path.read_text(encoding="utf-8"))
    return case["input"], case["expected"]["values"]


def exact(value):
    return float(Fraction(value["frac"]))


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def written_pool(folder, trajectories, corpus, oracle):
    return load_pool(
        [write_lines(folder / "trajectories.jsonl", trajectories)],
        [write_lines(folder / "corpus.jsonl", corpus)],
        [write_lines(folder / "oracle.jsonl", oracle)],
    )


def citation_status(pool, row):
    """What the codes of a row say of each distinct citation, in order of first appearance."""
    status = {}
    for code in pool.rows.citations[row]:
        if code in pool.rows.retrieved[row]:
            word = "retrieved"
        else:
            word = "real_unretrieved" if code < pool.ids.corpus_size else "nonexistent"
        status[pool.ids.decode(code)] = word
    return status


@by_case("jsonl-framing")
def test_jsonl_framing(path, tmp_path):
    given, expected = load(path)
    file = tmp_path / "trajectories.jsonl"
    file.write_bytes(base64.b64decode(given["file_base64"]))
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
        for row in expected["accepted"]
    ]
    first_of_line = {}
    for fault in (fault for batch in batches for fault in batch.faults):
        first_of_line.setdefault(fault.line, fault.code)
    assert [list(pair) for pair in first_of_line.items()] == expected["rejected"]


@by_case("id-width")
def test_id_width(path, tmp_path):
    given, expected = load(path)
    corpus = [{"passage_id": name, "text": ""} for name in json.loads(given["corpus_ids_json"])]
    rows = []
    for line in given["rows_jsonl"]:
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
    passages = write_lines(tmp_path / "corpus.jsonl", corpus)
    names = [p.passage_id for batch in read_jsonl(passages, Passage) for p in batch.records]
    assert names == expected["corpus_ids"]
    assert len(IdTable(names)) == expected["n_distinct_corpus_ids"]

    bad = {name for name, status in expected["citation_status"].items() if status == "bad_id"}
    file = write_lines(tmp_path / "all.jsonl", rows)
    faults = [fault for batch in read_jsonl(file, Trajectory) for fault in batch.faults]
    assert {rows[fault.line - 1]["trajectory_id"] for fault in faults} == bad
    assert {fault.code for fault in faults} <= {"bad_id"}

    good = [row for row in rows if row["trajectory_id"] not in bad]
    oracle = [{"question_id": "q", "answers": [], "support_ids": []}]
    pool = written_pool(tmp_path, good, corpus, oracle)
    for row, record in enumerate(pool.rows.records):
        assert citation_status(pool, row) == expected["citation_status"][record.trajectory_id]


@by_case("null-vs-empty")
def test_null_vs_empty(path, tmp_path):
    given, expected = load(path)
    preamble = given["preamble"]
    rows = [
        json.loads(json.dumps(preamble["template"]).replace("{i}", str(i)))
        for i in range(preamble["count"])
    ] + given["records"]
    file = write_lines(tmp_path / "trajectories.jsonl", rows)
    records = [r for batch in read_jsonl(file, Trajectory) for r in batch.records]
    write_parquet(tmp_path / "records.parquet", records, Trajectory)
    again = [r for b in read_parquet(tmp_path / "records.parquet", Trajectory) for r in b.records]
    assert again == records

    columns = Columns.of_records(again, IdTable(["p1", "p2"]), IdTable([]))
    pq.write_table(columns.to_table(), tmp_path / "columns.parquet")
    columns = Columns.of_table(pq.read_table(tmp_path / "columns.parquet"))
    without = [
        bool(columns.answer_tokens[row] > 0 and not len(columns.citations[row])) if known else None
        for row, known in enumerate(columns.citations_logged)
    ]
    unretrieved = [
        bool(set(columns.citations[row].tolist()) - set(columns.returned[row].tolist()))
        if known
        else None
        for row, known in enumerate(columns.logged)
    ]
    found = {
        record.trajectory_id: {"answer_without_citation": a, "cites_unretrieved": u}
        for record, a, u in zip(records, without, unretrieved, strict=True)
    }
    for name, states in expected["by_trajectory"].items():
        assert found[name] == states, name
    known = [value for value in without if value is not None]
    assert without.count(None) == expected["n_unknown_answer_without_citation"]
    assert len(known) == expected["n_known"]
    assert np.mean(known) == exact(expected["rate_answer_without_citation"])


@by_case("detectors")
def test_ids_and_queries_of_detectors(path, tmp_path):
    given, expected = load(path)
    support = given["oracle_support_by_trajectory"]
    labels = {
        row["question_id"]: {
            "question_id": row["question_id"],
            "answers": [],
            "support_ids": support[row["trajectory_id"]],
        }
        for row in given["trajectories"]
    }
    pool = written_pool(tmp_path, given["trajectories"], given["corpus"], list(labels.values()))
    rows = pool.rows
    assert len(rows) == len(given["trajectories"])
    for row, record in enumerate(rows.records):
        states = expected["by_trajectory"][record.trajectory_id]
        cited, got = rows.citations[row].tolist(), rows.retrieved[row].tolist()
        gold = pool.support[rows.question[row]].tolist()
        assert citation_status(pool, row) == states["citation_status"]
        assert len(cited) - len(set(cited)) == states["duplicate_citations"]
        assert bool(rows.searches[row] == 0) == states["no_search"]
        assert rows.invalid[row] == states["blank_queries"]
        keys = Counter(query_key(step.query) for step in record.steps if step.executed)
        assert sum(keys.values()) - len(keys) == states["repeated_queries"]
        assert rows.repeated[row] == (states["repeated_queries"] > 0)
        without = bool(rows.answer_tokens[row] > 0 and not cited)
        assert without == states["answer_without_citation"]
        named = {
            "uncited_support": [code for code in gold if code not in cited],
            "unretrieved_support": [code for code in gold if code not in got],
            "over_retrieved": [code for code in dict.fromkeys(got) if code not in gold],
        }
        for name, codes in named.items():
            assert sorted(pool.ids.decode(code) for code in codes) == sorted(states[name]), name


@by_case("answer-metrics")
def test_answer_metrics(path):
    given, expected = load(path)
    for row in given["rows"]:
        scores = expected["by_trajectory"][row["trajectory_id"]]
        answer, golds = row["answer"], row["oracle_answers"]
        assert exact_match(answer, golds) == scores["em"], row
        assert f1(answer, golds) == exact(scores["f1"]), row
        assert contains(answer, golds) == scores["contains"], row


@by_case("unicode-normalisation")
def test_unicode_normalisation(path):
    given, expected = load(path)
    for row in given["rows"]:
        (gold,) = row["oracle_answers"]
        name = row["trajectory_id"]
        for ours, theirs in (("unicode", "unicode"), ("squad", "squad_ascii")):
            assert exact_match(row["answer"], [gold], ours) == expected["em"][name][theirs], row
        assert [normalise(row["answer"]), normalise(gold)] == expected["unicode_normal_form"][name]


@by_case("support-joint")
def test_support_is_a_set_and_answers_score(path):
    given, expected = load(path)
    records = [
        Trajectory(
            row["trajectory_id"], row["trajectory_id"], "?", [], row["answer"], row["citations"]
        )
        for row in given["rows"]
    ]
    oracle = [
        OracleRow(row["trajectory_id"], row["oracle_answers"], row["support_ids"])
        for row in given["rows"]
    ]
    names = {name for row in given["rows"] for name in row["citations"] + row["support_ids"]}
    pool = pool_from_records(records, [Passage(name, "") for name in names], oracle, rules="squad")
    rows = np.arange(len(pool.rows), dtype=np.int32)
    widths = block_widths(pool)
    visible, labels = visible_block(pool, rows, widths), oracle_block(pool, rows, widths)

    def set_scores(visible, oracle):
        state = describe_state(visible, jnp.int32(pool.ids.corpus_size))
        gold = describe_labels(visible.citations, visible.citations, oracle)
        none = jnp.zeros(())
        shares = [
            FeatureWeights(precision=none + p, recall=none + (1 - p), hacking=none) for p in (1, 0)
        ]
        return [grounding(state, gold.support, gold.n_support, share) for share in shares]

    precision, recall = jax.vmap(set_scores, in_axes=-1)(visible, labels)
    for row, record in enumerate(pool.rows.records):
        scores = expected["by_trajectory"][record.trajectory_id]
        assert pool.rows.em[row] == scores["answer_em"]
        assert pool.rows.f1[row] == pytest.approx(exact(scores["answer_f1"]), abs=1e-12)
        has_support = bool(len(pool.support[pool.rows.question[row]]))
        assert has_support == (scores["support_precision"] is not None)
        if has_support:
            assert precision[row] == np.float32(exact(scores["support_precision"]))
            assert recall[row] == np.float32(exact(scores["support_recall"]))
    assert pool.rows.f1.mean() == pytest.approx(exact(expected["mean_answer_f1"]), abs=1e-12)


@by_case("padded-gather")
def test_padding_is_no_citation_and_no_group(path):
    given, expected = load(path)
    size = len(given["is_support"])
    passages = [Passage(f"p{row:03}", "") for row in range(size)]
    support = [f"p{row:03}" for row, gold in enumerate(given["is_support"]) if gold]
    records = [
        Trajectory(f"t{row:03}", "q", "?", [], "x", [f"p{c:03}" for c in cited if c != PAD])
        for row, cited in enumerate(given["citations_padded"])
    ]
    pool = pool_from_records(records, passages, [OracleRow("q", [], support)])
    (block,) = group_blocks(pool.rows.question, 2 * bucket(len(records), [4]))
    assert PAD in block.rows
    widths = block_widths(pool)

    def count(visible, oracle):
        state = describe_state(visible, jnp.int32(size))
        gold = describe_labels(visible.citations, visible.citations, oracle)
        distinct = state.present & state.first
        return {
            "hits": jnp.sum(distinct & gold.support),
            "nonexistent": jnp.sum(distinct & ~state.real),
            "n_valid": jnp.sum(distinct & state.real),
        }

    visible = visible_block(pool, block.rows, widths)
    counts = jax.vmap(count, in_axes=-1)(visible, oracle_block(pool, block.rows, widths))
    for name, values in counts.items():
        real = np.asarray(values)[block.rows != PAD]
        assert real.tolist() == expected[name], name
        assert not np.asarray(values)[block.rows == PAD].any()

    group = np.array(given["group_id"])
    value = np.array(given["value"], np.float32)
    order = np.argsort(group[group != PAD], kind="stable")
    totals = np.zeros(given["num_groups"])
    for block in group_blocks(group[group != PAD][order].astype(np.int32), 4):
        inside = np.where(block.rows == PAD, 1000, value[group != PAD][order][block.rows])
        shape = (len(block.groups), 1, block.width)
        scale = margin_scale(float(value.max()))
        sums = jax.vmap(
            lambda m, v, scale=scale: question_sums(
                m, v, scale=jnp.float32(scale), tie_tolerance=jnp.float32(0)
            )
        )(
            jnp.asarray(inside.reshape(shape), jnp.float32),
            jnp.asarray((block.rows != PAD).reshape(shape)),
        )
        found = margin_totals(np.asarray(sums.high), np.asarray(sums.low))[:, 0] / scale
        totals[block.groups[block.groups != PAD]] += found[block.groups != PAD]
        assert not found[block.groups == PAD].any()
    assert totals.tolist() == [exact(value) for value in expected["group_sums"]]


@by_case("shape-buckets")
def test_shapes_are_few(path):
    given, expected = load(path)
    traced = []

    def count(visible):
        traced.append(visible.citations.shape)
        return jnp.sum(describe_state(visible, jnp.int32(10**6)).present)

    citations = jax.jit(jax.vmap(count, in_axes=-1))

    def padded(counts):
        rows = bucket(len(counts), given["row_buckets"])
        width = bucket(max(counts), given["width_buckets"])
        lists = Ragged.of_lists([list(range(count)) for count in counts])
        numbers = [*range(len(counts)), *[PAD] * (rows - len(counts))]
        empty = np.zeros(rows, np.int32)
        return Visible(
            retrieved=np.full((1, rows), PAD, np.int32),
            citations=lists.to_padded(numbers, width),
            searches=empty,
            invalid=empty,
            repeated=empty.astype(bool),
            answer_tokens=empty,
            malformed=empty,
        )

    batches = [padded(counts) for counts in given["citation_counts_per_batch"]]
    shapes = [list(batch.citations.shape[::-1]) for batch in batches]
    assert shapes == expected["padded_shapes"]
    totals = [int(citations(batch).sum()) for batch in batches]
    assert totals == expected["total_citations_per_batch"]
    assert len(traced) == expected["compilations_first_pass"]
    for batch in reversed(batches):
        citations(batch)
    assert len(traced) == expected["compilations_first_pass"] + expected["compilations_second_pass"]
