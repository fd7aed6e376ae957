"""Pools on disk and their encodings, and what two pools have in common."""

from pathlib import Path

import numpy as np
from audit_comparison import write_pool

from herald_jax.pool.encoded_write import write_encoded
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool
from herald_jax.pool.rows import LISTS, ROW, Rows

FIELDS = [name for name in ROW.names if not name.endswith("_end")]


def written(folder: Path, records):
    """The files of a pool, written into `folder` (`reference.hostile.pool`)."""
    folder.mkdir(parents=True, exist_ok=True)
    write_pool(folder, records)
    return find_pool_files(folder)


def both(folder: Path, records, form: str = "parquet", **settings):
    """A pool from its files, the folder of its encoding and what that holds."""
    files = written(folder / "logs", records)
    contents = write_encoded(folder / "encoded", *files, form=form, **settings)
    return load_pool(*files, **settings), folder / "encoded", contents


def assert_same_rows(found: Rows, expected: Rows) -> None:
    assert len(found) == len(expected)
    for name in FIELDS:
        assert found.table[name].tolist() == expected.table[name].tolist(), name
    assert found.names.to_pylist() == expected.names.to_pylist()
    for name in LISTS:
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours.values.tolist() == theirs.values.tolist(), name
        assert ours.offsets.tolist() == theirs.offsets.tolist(), name


def assert_same_pool(found, expected) -> None:
    """Everything that an audit reads."""
    assert found.ids.names == expected.ids.names
    assert found.passages == expected.passages
    assert found.questions.ids == expected.questions.ids
    assert found.questions.golds == expected.questions.golds
    for name in ("gold_em", "gold_f1", "gold_tokens"):
        np.testing.assert_array_equal(
            getattr(found.questions, name), getattr(expected.questions, name)
        )
    for name in ("values", "offsets"):
        ours, theirs = (getattr(pool.questions.support, name) for pool in (found, expected))
        assert ours.tolist() == theirs.tolist()
    assert found.counts.tolist() == expected.counts.tolist()
    for name in ("longest", "models", "pools", "set_aside", "skipped", "warnings", "inputs"):
        assert getattr(found, name) == getattr(expected, name), name
    assert list(found.inputs) == list(expected.inputs)
    assert [log.name for log in found.logs] == [log.name for log in expected.logs]
    assert_same_rows(found.rows, expected.rows)
