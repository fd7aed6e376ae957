"""`herald encode`, and `herald audit` of what it wrote, as a user runs them."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
Herald = Callable[..., Any]

SETTINGS = """
[statistics]
replicates = 50
[operators]
names = ["same_final_deletion", "citation_laundering", "fake_id"]
[sections]
pools = []
split_by_model = false
cancellation = false
scales = false
budgets = false
group_signal = false
"""


@pytest.fixture(scope="module")
def place(herald: Herald, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample in `pool`, settings, its audit in `plain`, its encoding in `encoded`."""
    folder = tmp_path_factory.mktemp("encode")
    assert herald("sample", "pool", "--questions", "12", folder=folder).code == 0
    (folder / "audit.toml").write_text(SETTINGS, encoding="utf-8")
    audited = herald("audit", "pool", "-m", "audit.toml", "--out", "plain", folder=folder)
    assert audited.code == 0, audited.err
    done = herald("encode", "pool", "encoded", "-m", "audit.toml", folder=folder)
    assert done.code == 0, done.err
    (folder / "stderr.txt").write_text(done.err, encoding="utf-8")
    (folder / "verdict.txt").write_text(audited.out.split("\n\nReport:")[0], encoding="utf-8")
    return folder


def reports(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_it_says(place: Path) -> None:
    said = (place / "stderr.txt").read_text(encoding="utf-8")
    for stage in (
        "read trajectories: 96",
        "write rows: 96",
        "write strings: 96",
        "digest files: 4",
    ):
        assert stage in said
    assert "herald: wrote encoded: 96 rows, 12 questions, 0." in said
    assert said.endswith("herald: next: herald audit encoded\n")


def test_reports_are_those_of_the_logs_to_the_byte(place: Path, herald: Herald) -> None:
    done = herald("audit", "encoded", "-m", "audit.toml", "--out", "again", folder=place)
    assert done.code == 0, done.err
    assert "open rows: 96" in done.err
    assert "read trajectories" not in done.err
    assert done.out.startswith((place / "verdict.txt").read_text(encoding="utf-8"))
    assert reports(place / "again") == reports(place / "plain")


def test_array_record(place: Path, herald: Herald) -> None:
    arguments = ("pool", "records", "-m", "audit.toml", "--format", "array_record", "-q")
    done = herald("encode", *arguments, folder=place)
    assert done.code == 0, done.err
    assert done.out == ""
    done = herald("audit", "records", "-m", "audit.toml", "--out", "third", "-q", folder=place)
    assert done.code == 0, done.err
    assert reports(place / "third") == reports(place / "plain")


def test_files_may_be_named_one_by_one(place: Path, herald: Herald, tmp_path: Path) -> None:
    named = [f"--{kind}={place / 'pool' / kind}.jsonl" for kind in ("corpus", "oracle")]
    logs = place / "pool" / "trajectories.jsonl"
    done = herald("encode", *named, f"--trajectories={logs}", "a", folder=tmp_path)
    assert done.code == 0, done.err
    done = herald("encode", logs, "b", *named, folder=tmp_path)
    assert done.code == 0, done.err
    said = [json.loads((tmp_path / name / "encoded.json").read_bytes()) for name in "ab"]
    assert said[0] == said[1]


def test_a_work_folder_is_gone_on_with(place: Path, herald: Herald, tmp_path: Path) -> None:
    arguments = ("encode", place / "pool", "out", "--work", "work")
    assert herald(*arguments, folder=tmp_path).code == 0
    first = (tmp_path / "out" / "encoded.json").read_bytes()
    done = herald(*arguments, folder=tmp_path)
    assert done.code == 0
    assert "going on with what work holds" in done.err
    assert (tmp_path / "out" / "encoded.json").read_bytes() == first


def test_bad_rows(place: Path, herald: Herald, tmp_path: Path) -> None:
    shutil.copytree(place / "pool", tmp_path / "pool")
    with (tmp_path / "pool" / "trajectories.jsonl").open("a", encoding="utf-8") as file:
        file.write("{}\n")
    done = herald("encode", "pool", "out", "-q", folder=tmp_path)
    assert done.code == 2
    assert "trajectories.jsonl:97: trajectory_id: missing_field" in done.err
    assert sorted(os.listdir(tmp_path)) == ["pool"]
    done = herald("encode", "pool", "out", "-q", "--skip-bad-rows", folder=tmp_path)
    assert done.code == 0
    assert "skipped pool/trajectories.jsonl:97" in done.err
    assert "set aside, bad_row: 1 row\n" in done.err


def test_a_stale_pool_is_refused(place: Path, herald: Herald, tmp_path: Path) -> None:
    shutil.copytree(place / "pool", tmp_path / "pool")
    assert herald("encode", "pool", "out", "-q", folder=tmp_path).code == 0
    (tmp_path / "squad.toml").write_text('[data]\nrules = "squad"\n', encoding="utf-8")
    done = herald("audit", "out", "-m", "squad.toml", "-q", folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert 'out/encoded.json: settings.rules: stale: expected data.rules = "squad"' in done.err
    assert "encode the originals again (herald encode), or audit them" in done.err
    with (tmp_path / "pool" / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")
    done = herald("audit", "out", "-q", folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "pool/corpus.jsonl: stale: expected" in done.err
    assert not (tmp_path / "herald-report").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["encode"], "Missing argument 'OUT'"),
        (["encode", "pool"], "give LOGS, or --trajectories, --corpus, --oracle"),
        (["encode", "pool", "audit.toml"], "OUT audit.toml is a file"),
        (["encode", "pool", "pool"], "pool: holds other files; name a new folder"),
        (["encode", "pool", "out", "--format", "csv"], "'array_record'"),
        (["encode", "encoded", "out"], "encoded is an encoded pool; name the logs"),
        (["encode", "nowhere", "out"], "no such directory"),
        (["audit", "encoded", "pool"], "encoded is an encoded pool: name it alone"),
        (["audit", "encoded", "--oracle", "x"], "encoded is an encoded pool: name it alone"),
        (["audit", "encoded", "--skip-bad-rows"], "settled when it was encoded"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_why(
    arguments: list[str], message: str, place: Path, herald: Herald
) -> None:
    before = sorted(os.listdir(place))
    done = herald(*arguments, folder=place)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert sorted(os.listdir(place)) == before


def test_help_shows_examples(herald: Herald, tmp_path: Path) -> None:
    done = herald("encode", "--help", folder=tmp_path)
    assert done.code == 0
    assert "herald encode logs/ encoded --format array_record" in done.out
    assert "encode" in herald("--help", folder=tmp_path).out


def test_the_examples_of_the_documentation_run(
    place: Path, herald: Herald, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "encoded.md").read_text(encoding="utf-8")
    training, loading = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    shutil.copytree(place / "pool", tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(loading, "docs/encoded.md", "exec"), names)
    assert names["pool"].n_rows == 96
    arguments = ("logs", "encoded", "--format", "array_record", "-q")
    assert herald("encode", *arguments, folder=tmp_path).code == 0
    pytest.importorskip("grain")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(training, "docs/encoded.md", "exec"), names)
    assert out.getvalue().endswith("96\n")
    assert len(names["batches"]) == 96


def test_every_column_is_described(place: Path) -> None:
    text = (ROOT / "docs" / "encoded.md").read_text(encoding="utf-8")
    columns = pq.read_schema(place / "encoded" / "rows" / "00000.parquet").names
    assert [name for name in columns if f"`{name}`" not in text] == []


COMMAND = """
import sys
from herald_jax.cli import main
from herald_jax.pool import encoded_write
plain = encoded_write.{function}
def slow(*arguments, **options):
    print("there", flush=True)
    import time
    time.sleep(60)
encoded_write.{function} = slow
sys.argv = ["herald", "encode", "pool", "encoded", "--quiet"]
main()
"""


@pytest.mark.parametrize("function", ["_write_rows", "write_corpus", "write_contents"])
def test_ctrl_c_leaves_what_was_there(function: str, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "pool", tmp_path / "pool")
    shutil.copytree(place / "encoded", tmp_path / "encoded")
    before = (tmp_path / "encoded" / "encoded.json").read_bytes()
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND.format(function=function)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        time.sleep(0.1)
        process.send_signal(2)
        _, complained = process.communicate(timeout=60)
    assert (process.returncode, complained) == (130, "herald: interrupted\n")
    assert sorted(os.listdir(tmp_path)) == ["encoded", "pool"]
    assert (tmp_path / "encoded" / "encoded.json").read_bytes() == before
