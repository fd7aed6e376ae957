"""However the work is cut, report.json has the same bytes: processes, devices, sections, files."""

import subprocess
import sys
from pathlib import Path

import pytest

from scale import many_files

FILES = 5


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_files.write_pool(tmp_path_factory.mktemp("shared") / "pool", files=FILES)


@pytest.fixture(scope="module")
def expected(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("expected")
    code = many_files.program(folder / "opened", section_rows=512)
    many_files.finish(many_files.start(code, pool, folder / "out"))
    return (folder / "out" / "report.json").read_bytes()


def launch(count: int, pool: Path, out: Path, *further: str) -> "subprocess.CompletedProcess[str]":
    """The audit by the launcher that people use."""
    manifest = str(pool / "lean.toml")
    command = ["audit", str(pool), "-m", manifest, "--out", str(out), *further]
    return subprocess.run(
        [sys.executable, "scripts/launch.py", str(count), *command],
        cwd=many_files.ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("count", [2, 4])
def test_processes_share_an_audit(count: int, pool: Path, expected: bytes, tmp_path: Path) -> None:
    done = launch(count, pool, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.json").read_bytes() == expected
    assert done.stdout.count("Report:") == 1


def test_processes_go_on_with_what_one_has_done(
    pool: Path, expected: bytes, tmp_path: Path
) -> None:
    work = ("--work", str(tmp_path / "work"))
    code = many_files.program(tmp_path / "opened")
    many_files.finish(many_files.start(code, pool, tmp_path / "one", *work))
    (tmp_path / "work" / "file-00001.arrays").unlink()
    for path in (tmp_path / "work").glob("section-*"):
        path.unlink()
    done = launch(2, pool, tmp_path / "out", *work)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.json").read_bytes() == expected


def test_a_fault_ends_all_processes(pool: Path, tmp_path: Path) -> None:
    copy = tmp_path / "pool"
    copy.mkdir()
    for path in pool.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / "trajectories-99.jsonl").write_bytes(b'{"trajectory_id": 1}\n')
    done = launch(2, copy, tmp_path / "out")
    assert done.returncode == 2
    assert "trajectories-99.jsonl:1" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("section_rows", [8, 40])
def test_eight_devices_and_small_sections(
    section_rows: int, pool: Path, expected: bytes, tmp_path: Path
) -> None:
    code = many_files.program(tmp_path / "opened", section_rows=section_rows)
    many_files.finish(many_files.start(code, pool, tmp_path / "out", devices=8))
    assert (tmp_path / "out" / "report.json").read_bytes() == expected


def test_nobody_to_connect_to_is_a_clear_error(pool: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "herald_jax.cli", "audit", str(pool), "--distributed", "auto"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--distributed auto" in done.stderr
    assert "Traceback" not in done.stderr
