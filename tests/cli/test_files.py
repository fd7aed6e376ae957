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


def test_pages_of_two_audits_are_never_mixed(tmp_path: Path) -> None:
    files.write_all(tmp_path, {"report.json": b"old"})
    (tmp_path / "report.md").mkdir()
    with pytest.raises(HeraldError, match=r"report\.md is a folder"):
        files.write_all(tmp_path, {"report.json": b"new", "report.md": b"new"})
    assert (tmp_path / "report.json").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["report.json", "report.md"]


def test_a_place_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_bytes(b"")
    with pytest.raises(HeraldError, match="choose another folder with --out"):
        files.write_all(blocker / "below", {"report.json": b"{}"})
