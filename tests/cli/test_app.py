"""The command line before any audit runs: help, usage errors, exit codes, no tracebacks."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herald_jax import __version__
from herald_jax.manifest import Manifest, load_manifest

COMMANDS = ("audit", "bench", "partial", "sample", "validate", "manifest", "report", "import")


Herald = Callable[..., Any]


def test_version(herald: Herald, tmp_path: Path) -> None:
    done = herald("--version", folder=tmp_path)
    assert (done.code, done.out) == (0, f"herald-jax {__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command: str, herald: Herald, tmp_path: Path) -> None:
    done = herald(command, "--help", folder=tmp_path)
    assert done.code == 0
    assert "Examples:" in done.out
    assert f"  herald {command}" in done.out


def test_help_and_usage_errors_do_not_wait_for_jax() -> None:
    program = (
        "import sys; sys.argv = ['herald', 'audit', '--help']\n"
        "from herald_jax.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "herald_jax.cli", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"herald-jax {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bogus"], "No such command"),
        (["audit"], "give LOGS, or --trajectories, --corpus, --oracle"),
        (["audit", "--corpus", "c.jsonl"], "--trajectories, --oracle beside --corpus"),
        (["audit", "none.jsonl", "--corpus", "c.jsonl"], "none.jsonl: unreadable"),
        (["audit", "none*.jsonl"], "none*.jsonl: no_match"),
        (["audit", "pool", "--bogus"], "No such option"),
        (["audit", "pool", "--out", __file__], "is a file"),
        (["audit", "pool", "--fail-on", "insuficient"], "expected `insufficient`"),
        (["audit", "pool", "--manifest", "none.toml"], "unreadable"),
        (["audit", "no-such-folder"], "no such directory"),
        (["audit", __file__], "got a file; name its folder, or each file with --trajectories"),
        (["sample", "out", "--questions", "0"], "questions"),
        (["sample", "out", "--seed", "x"], "seed"),
        (["sample", __file__], "is a file"),
        (["report", "none.json"], "expected a report.json"),
        (["report", __file__], "not JSON"),
        (["validate"], "Missing argument"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_why(
    arguments: list[str], message: str, herald: Herald, tmp_path: Path
) -> None:
    done = herald(*arguments, folder=tmp_path)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([".", "--corpus", "c.jsonl"], "LOGS hold corpus.jsonl: drop it, or --corpus c.jsonl"),
        (["traj*.jsonl", "oracle.jsonl"], "LOGS hold no corpus: name them with --corpus"),
        (["corpus*"], "LOGS hold no trajectories: name them with --trajectories"),
        (["*", "other.jsonl"], "a name and keys of none of them"),
    ],
)
def test_files_of_a_kind_are_named_once_and_none_is_missing(
    arguments: list[str], message: str, herald: Herald, tmp_path: Path
) -> None:
    names = ["corpus.jsonl", "oracle.jsonl", "other.jsonl", "trajectories.jsonl"]
    for name in names:
        (tmp_path / name).write_text("{}\n", encoding="utf-8")
    done = herald("audit", *arguments, folder=tmp_path)
    assert done.code == 2
    assert message in done.err
    assert sorted(item.name for item in tmp_path.iterdir()) == names


def test_every_problem_of_a_manifest_is_printed(herald: Herald, tmp_path: Path) -> None:
    text = "[reward]\nanswr = 1\n[statistics]\nlevel = 2\n"
    (tmp_path / "bad.toml").write_text(text, encoding="utf-8")
    done = herald("audit", ".", "--manifest", "bad.toml", folder=tmp_path)
    assert done.code == 2
    assert "bad.toml: reward.answr" in done.err
    assert "did you mean `answer`?" in done.err
    assert "bad.toml: statistics.level" in done.err


def test_manifest_prints_the_defaults(herald: Herald, tmp_path: Path) -> None:
    done = herald("manifest", folder=tmp_path)
    assert done.code == 0
    path = tmp_path / "printed.toml"
    path.write_text(done.out, encoding="utf-8")
    assert load_manifest(path) == Manifest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 2}', "schema 2, this version reads 1"),
        ("[1]", "no `schema` key"),
        ('{"schema": 1, "rows": NaN}', "NaN is not a JSON number"),
        ('{"schema": 1', "not JSON"),
        ('{"schema": 1}', "no herald_jax, manifest, manifest_digest, inputs, rows, questions"),
    ],
)
def test_report_refuses_what_is_no_report(
    text: str, message: str, herald: Herald, tmp_path: Path
) -> None:
    (tmp_path / "report.json").write_text(text, encoding="utf-8")
    done = herald("report", "report.json", folder=tmp_path)
    assert done.code == 2
    assert message in done.err
    assert [item.name for item in tmp_path.iterdir()] == ["report.json"]
