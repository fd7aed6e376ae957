"""The sample on disk: the same bytes each time, whole or not at all, and without faults."""

import pytest

from herald_jax.data.jsonl import read_jsonl
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.data.validate import validate_files
from herald_jax.types import HeraldError
from herald_jax.world import sample, write_sample

FILES = {"trajectories.jsonl", "corpus.jsonl", "oracle.jsonl", "README.txt"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("sample") / "new"
    write_sample(out, seed=4, questions=14, rollouts=2)
    return out


def test_same_seed_same_bytes(folder, tmp_path):
    stages = []
    write_sample(
        tmp_path, seed=4, questions=14, rollouts=2, progress=lambda *told: stages.append(told)
    )
    assert {path.name for path in folder.iterdir()} == FILES
    assert {path.name for path in tmp_path.iterdir()} == FILES
    for name in FILES:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()
    assert stages[0] == ("questions", 1, 14) and stages[-1] == ("rollouts", 28, 28)


def test_another_seed_other_bytes(folder, tmp_path):
    write_sample(tmp_path, seed=5, questions=14, rollouts=2)
    for name in ("trajectories.jsonl", "corpus.jsonl", "oracle.jsonl"):
        assert (folder / name).read_bytes() != (tmp_path / name).read_bytes()


def test_files_have_no_faults(folder):
    names = ("trajectories.jsonl", "corpus.jsonl", "oracle.jsonl")
    assert validate_files([folder / name for name in names]) == []


def test_files_load_as_records(folder):
    counts = {}
    for name, kind in (
        ("trajectories", Trajectory),
        ("corpus", Passage),
        ("oracle", OracleRow),
    ):
        batches = list(read_jsonl(folder / f"{name}.jsonl", kind))
        assert not any(batch.faults for batch in batches)
        counts[name] = sum(len(batch.records) for batch in batches)
    assert counts == {"trajectories": 28, "corpus": 40 * 46, "oracle": 14}


def test_a_failed_write_leaves_the_old_file(folder, tmp_path, monkeypatch):
    write_sample(tmp_path, seed=4, questions=14, rollouts=2)
    before = (tmp_path / "corpus.jsonl").read_bytes()

    def fail(path, records):
        path.write_bytes(b"half a li")
        raise OSError("disk full")

    monkeypatch.setattr(sample, "write_jsonl", fail)
    with pytest.raises(HeraldError, match="disk full"):
        write_sample(tmp_path, seed=5, questions=14, rollouts=2)
    assert (tmp_path / "corpus.jsonl").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_no_rollouts_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least 1"):
        write_sample(tmp_path / "none", rollouts=0)
    assert not (tmp_path / "none").exists()
