"""Files that belong together are written whole and all, or not at all."""

import os
import time
from pathlib import Path

import pytest

from herald_jax.data import together
from herald_jax.data.together import write_together
from herald_jax.types import HeraldError


def new(path: Path) -> None:
    path.write_bytes(b"new")


def write(folder: Path, **others: object) -> list[Path]:
    return write_together(folder, {"a": new, "b": new, **others}, remedy="name another")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interruption_leaves_what_was_there(
    tmp_path: Path, interruption: type[BaseException]
) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def interrupted(path: Path) -> None:
        path.write_bytes(b"n")
        raise interruption

    with pytest.raises(interruption):
        write(tmp_path, b=interrupted)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"
    with pytest.raises(interruption):
        write(tmp_path / "made", b=interrupted)
    assert os.listdir(tmp_path) == ["a"]


def test_a_full_disk_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(together.os, "fsync", full)
    with pytest.raises(HeraldError, match=r"cannot be written \(No space left.*; name another"):
        write(tmp_path)
    assert os.listdir(tmp_path) == []


def test_drafts_of_a_killed_process_are_removed_and_those_of_a_living_one_are_not(
    tmp_path: Path,
) -> None:
    killed, living, foreign = (
        tmp_path / name for name in (".a.1.partial", ".a.2.partial", ".c.1.partial")
    )
    for path in (killed, living, foreign):
        path.write_bytes(b"")
    days_ago = time.time() - 2 * 86400
    for path in (killed, foreign):
        os.utime(path, (days_ago, days_ago))
    write(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".a.2.partial", ".c.1.partial", "a", "b"]
