"""Synthetic pools are pools without a fault, the same whatever the files, and worth auditing."""

from pathlib import Path

import pools
import pyarrow.parquet as pq
import pytest
from plain_audit import differences, figures, plain_report
from pools import Shape, write_pool

from herald_jax.audit import run
from herald_jax.data.validate import validate_files
from herald_jax.manifest import load_manifest
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool

MANIFEST = Path(__file__).resolve().parents[2] / "benchmarks" / "end_to_end.toml"
SHAPE = Shape.of(800, passages=2000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pool")
    write_pool(made, SHAPE, 5)
    return made


def rows_of(folder):
    tables = [pq.read_table(path) for path in sorted(folder.glob("trajectories*.parquet"))]
    return [row for table in tables for row in table.to_pylist()]


def test_it_has_no_fault(folder):
    assert list(validate_files(sorted(folder.iterdir()))) == []


def test_it_has_the_shape_that_was_asked_for(folder):
    rows = rows_of(folder)
    assert len(rows) == SHAPE.rows
    assert len({row["question_id"] for row in rows}) == SHAPE.questions == 100
    assert [row["rollout"] for row in rows] == list(range(8)) * 100
    searched = [row for row in rows if row["steps"]]
    assert 0.9 < len(searched) / len(rows) < 1
    for row in searched:
        assert [len(step["retrieved"]) for step in row["steps"]] == [10] * 4
        assert len({id_ for step in row["steps"] for id_ in step["retrieved"]}) >= 38


@pytest.mark.parametrize(("rows", "questions"), [(1, None), (100, 7), (64, 64)])
def test_questions_share_the_rows(tmp_path, rows, questions):
    shape = Shape.of(rows, questions, passages=500)
    write_pool(tmp_path, shape)
    found = rows_of(tmp_path)
    assert len({(row["question_id"], row["rollout"]) for row in found}) == rows
    assert len({row["question_id"] for row in found}) == shape.questions


def test_the_cut_into_files_changes_no_row(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(pools, "BATCH", 200)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    write_pool(whole, SHAPE, 5)
    monkeypatch.setattr(pools, "FILE_ROWS", 400)
    write_pool(parts, SHAPE, 5)
    assert len(list(parts.glob("trajectories*"))) == 2
    assert rows_of(parts) == rows_of(whole)


def test_another_seed_is_another_pool(folder, tmp_path):
    write_pool(tmp_path, SHAPE, 6)
    assert rows_of(tmp_path)[0] != rows_of(folder)[0]


def test_the_plain_audit_comes_to_the_figures_of_the_report(folder):
    pool = load_pool(*find_pool_files(folder))
    report = run(pool, load_manifest(MANIFEST)).data
    expected = plain_report(folder)
    assert list(differences(expected, report)) == []
    assert figures(expected) > 900
    # Every primary attack has something to attack.
    assert expected["common"]["questions"] > 50
    report["primary"]["fake_id"]["oracle_worst"]["R0"]["mean_margin"] += 1e-4
    del report["lattice"]["minimal"]
    assert len(list(differences(expected, report))) == 2
