"""Folders that cannot be written to, and names that are none, are refused before any work."""

import importlib
import sys
from pathlib import Path

import pytest

from herald_jax.types import HeraldError


@pytest.mark.parametrize("option", ["--out", "--work"])
def test_a_folder_that_is_none(herald, option, tmp_path):
    (tmp_path / "taken").write_text("")
    done = herald("audit", "logs", option, "", folder=tmp_path)
    assert (done.code, "an empty name" in done.err) == (2, True)
    done = herald("audit", "logs", option, "taken", folder=tmp_path)
    assert (done.code, "taken is a file; name a folder" in done.err) == (2, True)
    done = herald("audit", "logs", option, "taken/below", folder=tmp_path)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_an_empty_name_among_logs(herald, tmp_path):
    done = herald("audit", "", folder=tmp_path)
    assert (done.code, "an empty name" in done.err) == (2, True)


@pytest.mark.parametrize(
    "where", ["foo", "localhost:99999/0/2", "localhost:0/0/2", "localhost:1234/2/2", "h:1/-1/2"]
)
def test_an_address_of_processes_that_is_none(where):
    from herald_jax.pool.peers import connect

    with pytest.raises(HeraldError, match="expected auto, or HOST:PORT/INDEX/COUNT"):
        connect(where)


def test_the_launcher_starts_audits_alone(capsys, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "scripts")
    launch = importlib.import_module("launch")
    monkeypatch.setattr(sys, "argv", ["launch.py", "2", "validate", "x"])
    with pytest.raises(SystemExit):
        launch.main()
    assert "an audit" in capsys.readouterr().err
    assert launch.failed(1, 2) == 2
    assert launch.failed(1, -9) == 137
    assert "process 1 was ended by SIGKILL" in capsys.readouterr().err
