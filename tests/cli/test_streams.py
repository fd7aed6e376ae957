"""Streams and files that fail: one line, an exit code that means what it says, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from herald_jax.cli.console import counted
from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.records import Passage

HERALD = [sys.executable, "-m", "herald_jax.cli"]
FULL = Path("/dev/full")

needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
needs_posix = pytest.mark.skipif(os.name == "nt", reason="pipes close otherwise here")


def closed_pipe() -> int:
    """The writing end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@needs_full
@pytest.mark.parametrize("arguments", [["manifest"], ["--version"], ["--help"]])
def test_a_full_disk_is_one_line(arguments: list[str], tmp_path: Path) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(
            [*HERALD, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "No space left on device" in done.stderr


@needs_posix
def test_a_reader_that_has_gone_is_no_error() -> None:
    writer = closed_pipe()
    done = subprocess.run(
        [*HERALD, "manifest"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@needs_posix
def test_faults_count_though_nobody_reads_them(tmp_path: Path) -> None:
    writer = closed_pipe()
    done = subprocess.run(
        [*HERALD, "validate", "none.jsonl"],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "herald: 1 file: 1 fault, 0 warnings\n")


@needs_posix
def test_work_goes_on_though_nobody_reads_of_its_progress(tmp_path: Path) -> None:
    writer = closed_pipe()
    done = subprocess.run(
        [*HERALD, "sample", "out", "--questions", "14", "--rollouts", "1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=writer,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stdout) == (0, b"")
    assert (tmp_path / "out" / "trajectories.jsonl").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*HERALD, "sample", "file/below", "--questions", "14", "--rollouts", "1", "--quiet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "file/below: cannot be written" in done.stderr


def test_one_of_a_thing_is_not_many(tmp_path: Path) -> None:
    assert [counted(number, "file") for number in (0, 1, 1_200)] == [
        "0 files",
        "1 file",
        "1,200 files",
    ]
    write_jsonl(tmp_path / "corpus.jsonl", [Passage("p", "t")])
    done = subprocess.run(
        [*HERALD, "validate", "corpus.jsonl"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "herald: 1 file: 0 faults, 0 warnings\n"
