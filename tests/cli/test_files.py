"""Reports are written whole or not at all."""

import os
from pathlib import Path

import pytest

from herald_jax.cli import files
from herald_jax.types import HeraldError


def test_writes_all_and_leaves_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    paths = files.write_all(folder, {"report.json": b"{}", "report.md": b"#"})
    assert [path.name for path in paths] == ["report.json", "report.md"]
    assert [path.read_bytes() for path in paths] == [b"{}", b"#"]
    assert sorted(os.listdir(folder)) == ["report.json", "report.md"]


def test_new_files_have_the_permissions_of_the_umask(tmp_path: Path) -> None:
    [path] = files.write_all(tmp_path, {"report.json": b"{}"})
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interruption_leaves_the_old_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    files.write_all(tmp_path, {"report.json": b"old", "report.md": b"old"})
    real = files.write_to_disk

    def interrupted(path: Path, data: bytes) -> None:
        real(path, data[:1])
        if path.name.startswith(".report.md"):
            raise interruption

    monkeypatch.setattr(files, "write_to_disk", interrupted)
    with pytest.raises(interruption):
        files.write_all(tmp_path, {"report.json": b"new", "report.md": b"new"})
    assert sorted(os.listdir(tmp_path)) == ["report.json", "report.md"]
    assert (tmp_path / "report.json").read_bytes() == b"old"


def test_an_interruption_removes_the_folder_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, data: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "write_to_disk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_all(tmp_path / "new", {"report.json": b"new"})
    assert not (tmp_path / "new").exists()


def test_a_place_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_bytes(b"")
    with pytest.raises(HeraldError, match="choose another folder with --out"):
        files.write_all(blocker / "below", {"report.json": b"{}"})
