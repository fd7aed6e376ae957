"""What is found in a work folder is used when it is whole and of this audit, else told by name."""

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scale import many_files

FILES = 4


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_files.write_pool(tmp_path_factory.mktemp("checks") / "pool", files=FILES)


@pytest.fixture(scope="module")
def first(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished audit: `out` and `work`."""
    folder = tmp_path_factory.mktemp("first")
    code = many_files.program(folder / "opened")
    work = ("--work", str(folder / "work"))
    many_files.finish(many_files.start(code, pool, folder / "out", *work))
    return folder


def again(pool: Path, first: Path, folder: Path, damage) -> tuple[str, list[str]]:
    """What an audit over a damaged copy of the work says, and which files it opened."""
    work, opened = folder / "work", folder / "opened"
    shutil.copytree(first / "work", work)
    damage(work)
    opened.write_text("")
    code = many_files.program(opened)
    said = many_files.finish(many_files.start(code, pool, folder / "out", "--work", str(work)))
    report = (folder / "out" / "report.json").read_bytes()
    assert report == (first / "out" / "report.json").read_bytes()
    return said, [Path(name).name for name in opened.read_text().split()]


def test_all_that_is_whole_is_used(pool, first, tmp_path):
    said, opened = again(pool, first, tmp_path, lambda work: None)
    assert opened == []
    assert "not used" not in said
    assert f"going on with what {tmp_path / 'work'} holds" in said


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("damage", [flip, cut])
def test_a_damaged_entry_is_named_and_its_file_read_again(pool, first, tmp_path, damage):
    name = "rows-00002-00000.arrays"
    said, opened = again(pool, first, tmp_path, lambda work: damage(work / name))
    assert f"{tmp_path / 'work' / name}: " in said
    assert "not used, and done again" in said
    assert opened == ["trajectories-02.jsonl"]


def test_a_damaged_result_is_named_and_worked_again(pool, first, tmp_path):
    said, opened = again(pool, first, tmp_path, lambda work: flip(work / "section-00001.arrays"))
    assert f"{tmp_path / 'work' / 'section-00001.arrays'}: " in said
    assert opened == []


def test_entries_of_another_audit_are_named_and_not_used(pool, first, tmp_path):
    other = many_files.write_pool(tmp_path / "other", files=FILES, questions=6)
    code = many_files.program(tmp_path / "noted")
    work = ("--work", str(tmp_path / "foreign"))
    many_files.finish(many_files.start(code, other, tmp_path / "elsewhere", *work))

    def swap(own: Path) -> None:
        for name in ("file-00001.arrays", "section-00000.arrays"):
            shutil.copy(tmp_path / "foreign" / name, own / name)

    said, opened = again(pool, first, tmp_path, swap)
    for name in ("file-00001.arrays", "section-00000.arrays"):
        assert f"{tmp_path / 'work' / name}: made from other files or settings" in said
    assert opened == ["trajectories-01.parquet"]


def test_a_changed_file_is_read_again(pool, first, tmp_path):
    copy = tmp_path / "pool"
    shutil.copytree(pool, copy)
    opened = tmp_path / "opened"
    code = many_files.program(opened)
    work = ("--work", str(tmp_path / "work"))
    many_files.finish(many_files.start(code, copy, tmp_path / "out", *work))
    opened.write_text("")
    path = copy / "trajectories-00.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"ada 1"', b'"ada 2"', 1))
    many_files.finish(many_files.start(code, copy, tmp_path / "out", *work))
    assert opened.read_text().split() == [str(path)]


def test_other_weights_use_the_rows_that_are_there(pool, first, tmp_path):
    opened = tmp_path / "opened"
    opened.write_text("")
    work = tmp_path / "work"
    shutil.copytree(first / "work", work)
    manifest = tmp_path / "other.toml"
    manifest.write_text(many_files.LEAN + "[reward]\nanswer = 2.0\n")
    process = many_files.start(
        many_files.program(opened), pool, tmp_path / "out", "--work", str(work), "-m", str(manifest)
    )
    many_files.finish(process)
    assert opened.read_text() == ""
    assert (tmp_path / "out" / "report.json").read_bytes() != (
        first / "out" / "report.json"
    ).read_bytes()


def test_a_full_disk_keeps_what_was_done(pool, first, tmp_path):
    # A limit on the size of files stands for the disk: the second entry of a file is too large.
    sizes = sorted(path.stat().st_size for path in (first / "work").glob("rows-*.arrays"))
    code = many_files.program(tmp_path / "opened")
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({sizes[0] - 1},) * 2)\n"
    arguments = ["audit", str(pool), "-m", str(pool / "lean.toml"), "-q", "--out"]
    work, out = tmp_path / "work", tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", limit + code, *arguments, str(out), "--work", str(work)],
        cwd=many_files.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "run the same command again" in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()
    assert not list(work.glob("*.partial"))
    many_files.finish(many_files.start(code, pool, out, "--work", str(work)))
    assert (out / "report.json").read_bytes() == (first / "out" / "report.json").read_bytes()
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_an_unreadable_file_keeps_what_was_done(pool, first, tmp_path):
    copy = tmp_path / "pool"
    shutil.copytree(pool, copy)
    bad = copy / "trajectories-03.parquet"
    whole = bad.read_bytes()
    bad.write_bytes(whole[:500])
    opened = tmp_path / "opened"
    code = many_files.program(opened)
    work = ("--work", str(tmp_path / "work"))
    process = many_files.start(code, copy, tmp_path / "out", *work)
    _, said = process.communicate()
    assert process.returncode == 2
    assert f"{bad}: unreadable" in said.decode()
    bad.write_bytes(whole)
    opened.write_text("")
    many_files.finish(many_files.start(code, copy, tmp_path / "out", *work))
    assert opened.read_text().split() == [str(bad)]


@pytest.mark.parametrize("kind", ["rows-{:05d}-00000", "section-{:05d}"])
def test_an_entry_in_the_place_of_another_is_named_and_not_used(pool, first, tmp_path, kind):
    names = [f"{kind.format(at)}.arrays" for at in (0, 1)]

    def swap(own: Path) -> None:
        shutil.copy(own / names[1], own / names[0])

    said, _ = again(pool, first, tmp_path, swap)
    assert f"{tmp_path / 'work' / names[0]}: made from other files or settings" in said
