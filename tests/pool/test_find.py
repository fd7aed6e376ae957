"""Which files are meant by a folder."""

import pytest

from herald_jax.data.jsonl import write_jsonl
from herald_jax.pool.find import find_pool_files
from herald_jax.types import InputError


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
