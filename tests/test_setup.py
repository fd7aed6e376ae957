"""`scripts/setup.sh` says what is wrong with the Python that it is given."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "setup.sh"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a shell script")


def run_setup(python: str | Path, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", SCRIPT, folder / "venv", python], capture_output=True, text=True, check=False
    )
    assert not (folder / "venv").exists()
    return done.returncode, done.stderr


def shim(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_one_that_does_not_run(tmp_path: Path) -> None:
    python = shim(tmp_path / "python3.12", "echo 'no version is set' >&2; exit 127")
    code, said = run_setup(python, tmp_path)
    assert code == 2
    assert f"{python} does not run as a Python: no version is set" in said


def test_one_that_is_not_there(tmp_path: Path) -> None:
    code, said = run_setup(tmp_path / "none", tmp_path)
    assert code == 2
    assert "does not run as a Python" in said
    assert "No such file" in said


def test_one_that_is_too_old(tmp_path: Path) -> None:
    old = 'case "$2" in *python_version*) echo 3.9.1;; *) exit 1;; esac'
    code, said = run_setup(shim(tmp_path / "python3", old), tmp_path)
    assert code == 2
    assert "is Python 3.9.1, at least 3.11 is needed" in said
