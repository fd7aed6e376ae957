"""What is no regular file is refused before anything waits for it."""

import os
from pathlib import Path

import pytest

from herald_jax.data.imports.benchmark import import_benchmark
from herald_jax.data.validate import validate_files
from herald_jax.pool.load import load_pool
from herald_jax.types import InputError

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.parquet", "x.jsonl", "x.parquet"])
def test_a_named_pipe_is_refused(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    (fault,) = validate_files([tmp_path / name])
    assert (fault.code, fault.got) == ("unreadable", "a pipe, not a regular file")
    assert fault.remedy == "write it to a file and name that"


def test_a_device_is_refused() -> None:
    (fault,) = validate_files([os.devnull])
    assert fault.got == "a device, not a regular file"


def test_a_pipe_among_the_files_of_a_pool_or_of_a_benchmark_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="a pipe") as caught:
        load_pool([pipe], [pipe], [pipe])
    assert len(caught.value.faults) == 3
    with pytest.raises(InputError, match="a pipe"):
        import_benchmark("musique", [pipe], tmp_path / "out")
    (tmp_path / "q.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="a pipe"):
        import_benchmark("2wiki", [tmp_path / "q.json"], tmp_path / "out", aliases=pipe)
