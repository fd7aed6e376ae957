"""`herald sample`, `audit`, `report` as a user runs them, on a small sample."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herald_jax import __version__

ROOT = Path(__file__).resolve().parent.parent.parent
REPORTS = ["report.html", "report.json", "report.md"]
# Fewer replicates than the default: these tests are about the command, not about the figures.
SETTINGS = "[statistics]\nreplicates = 200\n"


Herald = Callable[..., Any]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


@pytest.fixture(scope="module")
def place(herald: Herald, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sample in `pool`, settings, and its audit in `out`."""
    folder = tmp_path_factory.mktemp("end-to-end")
    made = herald("sample", "pool", "--questions", "40", "--seed", "3", folder=folder)
    assert made.code == 0, made.err
    (folder / "audit.toml").write_text(SETTINGS, encoding="utf-8")
    ran = herald("audit", "pool", "-m", "audit.toml", "--out", "out", folder=folder)
    assert ran.code == 0, ran.err
    (folder / "stdout.txt").write_text(ran.out, encoding="utf-8")
    (folder / "stderr.txt").write_text(ran.err, encoding="utf-8")
    return folder


def copy_of_pool(place: Path, target: Path) -> Path:
    target.mkdir()
    for path in (place / "pool").iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_an_audit_writes_three_reports_and_prints_the_verdict(place: Path) -> None:
    from herald_jax.audit.verdict import verdict

    assert sorted(os.listdir(place / "out")) == REPORTS
    report = json.loads((place / "out" / "report.json").read_bytes())
    assert report["schema"] == 1
    assert report["herald_jax"] == __version__
    assert report["common"]["questions"] > 0
    assert report["manifest"]["statistics"]["replicates"] == 200
    printed = (place / "stdout.txt").read_text(encoding="utf-8")
    assert str(verdict(report)) in printed
    assert str((place / "out" / "report.html").resolve()) in printed


def test_progress_goes_to_stderr(place: Path) -> None:
    said = (place / "stderr.txt").read_text(encoding="utf-8")
    assert "read trajectories" in said
    assert "Traceback" not in said


def test_python_gives_the_same_bytes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from herald_jax.audit import run
    from herald_jax.manifest import load_manifest
    from herald_jax.pool.find import find_pool_files
    from herald_jax.pool.load import load_pool

    monkeypatch.chdir(place)
    pool = load_pool(*find_pool_files("pool"))
    report = run(pool, load_manifest("audit.toml"))
    assert report.to_json() == (place / "out" / "report.json").read_bytes()


def test_the_python_example_of_the_readme_runs(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    (tmp_path / "herald-sample").symlink_to(place / "pool")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    *verdict, asr = capsys.readouterr().out.splitlines()
    assert "40 questions" in verdict[0]
    assert 0 <= float(asr) <= 1


def test_report_draws_the_same_pages_again(herald: Herald, place: Path, tmp_path: Path) -> None:
    done = herald("report", place / "out" / "report.json", "--out", tmp_path, folder=place)
    assert done.code == 0, done.err
    assert sorted(os.listdir(tmp_path)) == ["report.html", "report.md"]
    for name in os.listdir(tmp_path):
        assert (tmp_path / name).read_bytes() == (place / "out" / name).read_bytes()


def test_report_refuses_a_report_with_parts_missing(
    herald: Herald, place: Path, tmp_path: Path
) -> None:
    report = json.loads((place / "out" / "report.json").read_bytes())
    del report["primary"]["fake_id"]["oracle_worst"]["R0"]["asr"]
    (tmp_path / "report.json").write_text(json.dumps(report), encoding="utf-8")
    done = herald("report", "report.json", folder=tmp_path)
    assert done.code == 2
    assert "expected a report.json" in done.err
    assert "Traceback" not in done.err
    assert os.listdir(tmp_path) == ["report.json"]


def test_files_named_one_by_one_give_the_same_figures(
    herald: Herald, place: Path, tmp_path: Path
) -> None:
    trajectories = lines(place / "pool" / "trajectories.jsonl")
    half = len(trajectories) // 2
    (tmp_path / "b.jsonl").write_text("".join(trajectories[half:]), encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("".join(trajectories[:half]), encoding="utf-8")
    done = herald(
        "audit",
        *("--trajectories", "b.jsonl", "--trajectories", "a.jsonl"),
        *("--corpus", place / "pool" / "corpus.jsonl"),
        *("--oracle", place / "pool" / "oracle.jsonl"),
        *("--manifest", place / "audit.toml", "--quiet"),
        folder=tmp_path,
    )
    assert done.code == 0, done.err
    assert done.err == ""
    report = json.loads((tmp_path / "herald-report" / "report.json").read_bytes())
    whole = json.loads((place / "out" / "report.json").read_bytes())
    for data in (report, whole):
        del data["inputs"]
    assert report == whole


def test_fail_on_exits_1_with_the_reports_written(
    herald: Herald, place: Path, tmp_path: Path
) -> None:
    tripping = "R0.citation_laundering.oracle_worst.questions>0"
    arguments = ("audit", place / "pool", "-m", place / "audit.toml", "--fail-on")
    passing = herald(*arguments, tripping.replace(">", "<"), folder=tmp_path)
    assert passing.code == 0, passing.err
    tripped = herald(*arguments, tripping, "--out", "again", folder=tmp_path)
    assert tripped.code == 1, tripped.err
    assert "--fail-on tripped: R0.citation_laundering.oracle_worst.questions" in tripped.err
    assert sorted(os.listdir(tmp_path / "again")) == REPORTS


def test_faults_are_all_listed_and_nothing_is_written(
    herald: Herald, place: Path, tmp_path: Path
) -> None:
    pool = copy_of_pool(place, tmp_path / "pool")
    path = pool / "trajectories.jsonl"
    good = lines(path)
    missing = json.loads(good[0])
    del missing["question"]
    path.write_text(
        "".join([json.dumps(missing) + "\n", *good[1:], "{not json\n"]), encoding="utf-8"
    )
    done = herald("audit", "pool", folder=tmp_path)
    assert done.code == 2
    assert "trajectories.jsonl:1: question" in done.err
    assert f"trajectories.jsonl:{len(good) + 1}" in done.err
    assert "Traceback" not in done.err
    assert os.listdir(tmp_path) == ["pool"]

    done = herald("audit", "pool", "--skip-bad-rows", "-m", place / "audit.toml", folder=tmp_path)
    assert done.code == 0, done.err
    assert done.err.count("herald: skipped ") == 2
    report = json.loads((tmp_path / "herald-report" / "report.json").read_bytes())
    assert report["set_aside"] == {"bad_row": 2}
    assert report["rows"] == len(good) - 1


def test_nothing_to_measure_is_said_and_fails_the_gate(
    herald: Herald, place: Path, tmp_path: Path
) -> None:
    pool = copy_of_pool(place, tmp_path / "pool")
    path = pool / "trajectories.jsonl"
    silent = [{**json.loads(line), "answer": None, "citations": []} for line in lines(path)]
    path.write_text("".join(json.dumps(row) + "\n" for row in silent), encoding="utf-8")
    done = herald(
        "audit", "pool", "-m", place / "audit.toml", "--fail-on", "insufficient", folder=tmp_path
    )
    assert done.code == 1, done.err
    assert done.out.startswith("Not measured")
    assert "measured" in done.err.splitlines()[-1]
    report = json.loads((tmp_path / "herald-report" / "report.json").read_bytes())
    assert report["lattice"]["sufficient"] == []


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX has them")
def test_an_interruption_leaves_no_report(place: Path, tmp_path: Path) -> None:
    (tmp_path / "herald-report").mkdir()
    (tmp_path / "herald-report" / "report.json").write_text("old", encoding="utf-8")
    command = [sys.executable, "-m", "herald_jax.cli", "audit", str(place / "pool")]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "read " in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert os.listdir(tmp_path / "herald-report") == ["report.json"]
    assert (tmp_path / "herald-report" / "report.json").read_text(encoding="utf-8") == "old"
