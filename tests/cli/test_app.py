"""The command line before any audit runs: help, usage errors, exit codes, no tracebacks."""

import subprocess
import sys
from pathlib import Path

import pytest

from herald_jax import __version__
from herald_jax.cli import main

COMMANDS = ("audit", "sample", "validate", "manifest", "report")


def herald(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Run the command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["herald", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert herald(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"herald-jax {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert herald(monkeypatch, command, "--help") == 0
    text = capsys.readouterr().out
    assert "Examples:" in text
    assert f"  herald {command}" in text


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
        (["audit"], "give POOL_DIR, or --trajectories, --corpus, --oracle"),
        (["audit", "--corpus", "c.jsonl"], "--trajectories, --oracle beside --corpus"),
        (["audit", "pool", "--corpus", "c.jsonl"], "not both"),
        (["audit", "pool", "--bogus"], "No such option"),
        (["audit", "pool", "--out", __file__], "is a file"),
        (["audit", "pool", "--fail-on", "insuficient"], "expected `insufficient`"),
        (["audit", "pool", "--manifest", "none.toml"], "unreadable"),
        (["audit", "no-such-folder"], "no such directory"),
        (["sample", "out", "--questions", "0"], "questions"),
        (["sample", "out", "--seed", "x"], "seed"),
        (["sample", __file__], "is a file"),
        (["report", "none.json"], "expected a report.json"),
        (["report", __file__], "not JSON"),
        (["validate"], "Missing argument"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_why(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert herald(monkeypatch, *arguments) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.out == ""
    assert list(tmp_path.iterdir()) == []


def test_every_problem_of_a_manifest_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[reward]\nanswr = 1\n[statistics]\nlevel = 2\n", encoding="utf-8")
    assert herald(monkeypatch, "audit", tmp_path, "--manifest", path) == 2
    text = capsys.readouterr().err
    assert "reward.answr" in text
    assert "did you mean `answer`?" in text
    assert "statistics.level" in text
    assert "Traceback" not in text


def test_manifest_prints_the_defaults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from herald_jax.manifest import Manifest, load_manifest

    assert herald(monkeypatch, "manifest") == 0
    path = tmp_path / "printed.toml"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    assert load_manifest(path) == Manifest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 2}', "schema 2, this version reads 1"),
        ("[1]", "no `schema` key"),
        ('{"schema": 1, "rows": NaN}', "NaN is not a JSON number"),
        ('{"schema": 1', "not JSON"),
    ],
)
def test_report_refuses_what_is_no_report(
    text: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    path = tmp_path / "report.json"
    path.write_text(text, encoding="utf-8")
    assert herald(monkeypatch, "report", path) == 2
    assert message in capsys.readouterr().err
    assert [item.name for item in tmp_path.iterdir()] == ["report.json"]
