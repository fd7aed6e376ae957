"""Files of other machines, through fsspec: the same pool as from files of this one."""

from pathlib import Path

import fsspec
import pytest
from scale import many_files

from herald_jax.data.sources import expand, identity
from herald_jax.pool.find import find_pool_files, sort_files
from herald_jax.pool.load import load_pool
from herald_jax.types import HeraldError, InputError


@pytest.fixture
def both(tmp_path: Path):
    """A pool on this machine, and its copy in fsspec's memory file system."""
    here = many_files.write_pool(tmp_path / "pool", files=3, questions=4)
    system = fsspec.filesystem("memory")
    for path in here.iterdir():
        system.pipe(f"/far/{path.name}", path.read_bytes())
    yield here, "memory://far"
    system.rm("/far", recursive=True)


def test_a_remote_folder_is_read_as_a_local_one(both) -> None:
    here, far = both
    near, remote = load_pool(*find_pool_files(here)), load_pool(*find_pool_files(far))
    assert near.records_of(near.rows) == remote.records_of(remote.rows)
    assert [*near.inputs.values()] == [*remote.inputs.values()]
    assert all(name.startswith("memory://") for name in remote.inputs)


def test_remote_patterns_and_folders(both) -> None:
    _, far = both
    found = sort_files([f"{far}/traj*", f"{far}/corpus.jsonl", f"{far}/oracle.jsonl"])
    assert [len(files) for files in found] == [3, 1, 1]
    listed = sort_files([far])
    for named, of_folder in zip(found, listed, strict=True):
        assert [name.rsplit("/", 1)[1] for name in named] == [
            name.rsplit("/", 1)[1] for name in of_folder
        ]
    assert expand([f"{far}/trajectories-*.parquet"]) == found.trajectories[1:2]


def test_a_remote_file_that_is_not_there(both) -> None:
    _, far = both
    with pytest.raises(InputError) as caught:
        load_pool([f"{far}/none.jsonl"], [f"{far}/corpus.jsonl"], [f"{far}/oracle.jsonl"])
    assert [fault.code for fault in caught.value.faults] == ["unreadable"]
    with pytest.raises(InputError):
        expand([f"{far}/none-*.jsonl"])


def test_a_scheme_that_nobody_knows(tmp_path: Path) -> None:
    for paths in (["nowhere://x/t.jsonl"], ["nowhere://x/*.jsonl"]):
        with pytest.raises(HeraldError, match=r"nowhere://x/.*; check the address"):
            load_pool(paths, [tmp_path], [tmp_path])
    with pytest.raises(HeraldError, match="check the address"):
        find_pool_files("nowhere://x")


def test_identity_tells_a_changed_file(both) -> None:
    here, far = both
    system = fsspec.filesystem("memory")
    for path in (str(here / "corpus.jsonl"), f"{far}/corpus.jsonl"):
        before = identity(path)
        assert identity(path) == before
        assert before.size == (here / "corpus.jsonl").stat().st_size
    before = identity(f"{far}/corpus.jsonl")
    system.pipe("/far/corpus.jsonl", b"{}")
    assert identity(f"{far}/corpus.jsonl") != before
