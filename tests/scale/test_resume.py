"""An audit that is killed goes on where it was, and ends with the same bytes."""

import random
import signal
import time
from pathlib import Path

import pytest

from scale import many_files

KILLS = 20
SMALL_DELAY = 0.04


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_files.write_pool(tmp_path_factory.mktemp("resume") / "pool")


@pytest.fixture(scope="module")
def expected(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("expected")
    code = many_files.program(folder / "opened")
    many_files.finish(many_files.start(code, pool, folder / "out"))
    return (folder / "out" / "report.json").read_bytes()


def finished_files(work: Path) -> set[str]:
    return {path.name for path in work.glob("file-*.arrays")}


def entries(work: Path) -> int:
    return len(list(work.glob("*.arrays")))


def test_twenty_kills_lose_nothing(pool: Path, expected: bytes, tmp_path: Path) -> None:
    # One work folder all along. Kills fall at random times after a random number of further
    # entries, which are more than the kills can reach: 12 files of one chunk, then the sections.
    chance = random.Random(1)
    opened, work = tmp_path / "opened", tmp_path / "work"
    code = many_files.program(opened, section_rows=24, delay=SMALL_DELAY)
    after_the_first = 0
    for kill in range(KILLS):
        opened.write_text("")
        done = finished_files(work)
        before = entries(work)
        process = many_files.start(code, pool, tmp_path / "out", "--work", str(work))
        wanted = before + chance.randrange(3)
        while process.poll() is None and entries(work) < wanted:
            time.sleep(0.002)
        time.sleep(chance.random() * 2 * SMALL_DELAY)
        assert process.poll() is None, f"done before kill {kill}: {process.communicate()}"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        after_the_first += before > 0
        read = {f"file-{names(pool).index(name):05d}.arrays" for name in opened.read_text().split()}
        assert not read & done, "a finished file was read again"
    assert after_the_first >= KILLS // 2
    assert not (tmp_path / "out" / "report.json").exists()

    opened.write_text("")
    done = finished_files(work)
    many_files.finish(many_files.start(code, pool, tmp_path / "out", "--work", str(work)))
    assert len(opened.read_text().split()) == 12 - len(done)
    assert (tmp_path / "out" / "report.json").read_bytes() == expected
    assert not list(work.glob(".*")) or all(
        path.name.endswith(".partial") for path in work.glob(".*")
    )


def names(pool: Path) -> list[str]:
    return sorted(str(path) for path in pool.glob("trajectories-*"))
