"""What LOGS may be: folders, files, patterns; and what a partial audit tells."""

import json
import shutil
from pathlib import Path

import pytest
from scale import many_files


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_files.write_pool(tmp_path_factory.mktemp("sources") / "pool", files=3, questions=4)


@pytest.fixture(scope="module")
def expected(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("expected")
    many_files.finish(many_files.start(many_files.program(folder / "opened"), pool, folder / "out"))
    return report(folder / "out")


def report(out: Path) -> dict:
    found = json.loads((out / "report.json").read_text())
    found["inputs"] = sorted(entry["sha256"] for entry in found["inputs"].values())
    return found


def test_a_pattern_with_the_rest_named(herald, pool, expected, tmp_path):
    done = herald(
        "audit",
        f"{pool}/traj*",
        "--corpus",
        str(pool / "corpus.jsonl"),
        "--oracle",
        str(pool / "oracle.jsonl"),
        "-m",
        str(pool / "lean.toml"),
        folder=tmp_path,
    )
    assert done.code == 0, done.err
    assert report(tmp_path / "herald-report") == expected


def test_files_of_other_names_are_told_by_their_keys(herald, pool, expected, tmp_path):
    names = {"a.jsonl": "corpus.jsonl", "b.jsonl": "oracle.jsonl"}
    names |= {
        f"run{n}{path.suffix}": path.name for n, path in enumerate(sorted(pool.glob("traj*")))
    }
    for name, original in names.items():
        shutil.copy(pool / original, tmp_path / name)
    done = herald("audit", *names, "-m", str(pool / "lean.toml"), folder=tmp_path)
    assert done.code == 0, done.err
    assert report(tmp_path / "herald-report") == expected


def test_a_folder_with_logs_of_any_name(herald, pool, expected, tmp_path):
    (tmp_path / "logs").mkdir()
    for n, path in enumerate(sorted(pool.glob("traj*"))):
        shutil.copy(path, tmp_path / "logs" / f"step-{n}{path.suffix}")
    further = ("--corpus", str(pool / "corpus.jsonl"), "--oracle", str(pool / "oracle.jsonl"))
    manifest = ("-m", str(pool / "lean.toml"))
    done = herald("audit", "logs", *further, *manifest, folder=tmp_path)
    assert done.code == 0, done.err
    assert report(tmp_path / "herald-report") == expected


def test_what_is_missing_twice_or_of_no_kind_is_told(herald, pool, tmp_path):
    logs = [str(path) for path in pool.glob("traj*")]
    done = herald("audit", *logs, "--corpus", str(pool / "corpus.jsonl"), folder=tmp_path)
    assert (done.code, "LOGS hold no oracle" in done.err) == (2, True)
    done = herald("audit", str(pool), "--corpus", str(pool / "corpus.jsonl"), folder=tmp_path)
    assert (done.code, "drop it, or --corpus" in done.err) == (2, True)
    (tmp_path / "odd.jsonl").write_text('{"a": 1}\n')
    done = herald("audit", "odd.jsonl", *logs, folder=tmp_path)
    assert (done.code, "odd.jsonl: unknown_kind" in done.err) == (2, True)
    done = herald("audit", "none/*.jsonl", folder=tmp_path)
    assert (done.code, "no_match" in done.err) == (2, True)
    assert "Traceback" not in done.err


def test_a_partial_report_says_so_and_agrees_with_the_whole(herald, pool, expected, tmp_path):
    work = tmp_path / "work"
    code = many_files.program(tmp_path / "opened", section_rows=16)
    process = many_files.start(code, pool, tmp_path / "out", "--work", str(work))
    many_files.finish(process)
    done = herald("partial", "work", "--out", "all", folder=tmp_path)
    assert done.code == 0, done.err
    whole = report(tmp_path / "all")
    assert "not worked yet" not in done.out
    assert whole.pop("partial")["rows"] == 48
    assert whole | {"worst": []} == expected | {"worst": []}

    sections = sorted(work.glob("section-*"))
    assert len(sections) > 2
    sections[-1].unlink()
    done = herald("partial", "work", "--out", "some", folder=tmp_path)
    assert done.code == 0, done.err
    some = report(tmp_path / "some")
    assert some["partial"]["sections"] == len(sections) - 1
    assert some["rows"] == some["partial"]["rows"] < 48
    assert "of 48 not worked yet" in done.out
    assert "not worked yet" in (tmp_path / "some" / "report.html").read_text()


def test_nothing_partial_is_a_clear_error(herald, tmp_path):
    done = herald("partial", "nowhere", folder=tmp_path)
    assert (done.code, "no audit has come as far" in done.err) == (2, True)
