"""Ctrl-C at any moment: exit code 130, one line, nothing half-written."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX has them")

LINE = "herald: interrupted\n"
BEGIN = """
import atexit, gc, os, signal, sys
from pathlib import Path
from herald_jax.interrupts import at_interrupt, end_on_interrupt, uninterrupted
def press(*_): os.kill(os.getpid(), signal.SIGINT)
"""


def python(program: str, folder: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "program",
    [
        "press(); print('went on')",
        # Where Python's own KeyboardInterrupt would be printed and forgotten.
        "gc.callbacks.append(press); gc.collect(); print('went on')",
        "class Odd:\n  def __del__(self): press()\nodd = Odd(); del odd; print('went on')",
        "try: press(); print('went on')\nexcept BaseException: print('caught')",
        "atexit.register(press)",
    ],
)
def test_it_cannot_be_swallowed(program: str, tmp_path: Path) -> None:
    assert python(f"end_on_interrupt()\n{program}", tmp_path) == (130, "", LINE)


def test_after_the_exit_handlers_the_exit_code_is_decided(tmp_path: Path) -> None:
    program = "atexit.register(press); end_on_interrupt(); sys.exit(1)"
    assert python(program, tmp_path) == (1, "", "")


def test_it_is_ignored_where_the_parent_has_it_ignored(tmp_path: Path) -> None:
    program = "signal.signal(signal.SIGINT, signal.SIG_IGN); end_on_interrupt(); press(); print(1)"
    assert python(program, tmp_path) == (0, "1\n", "")


def test_cleanups_run_from_the_last_to_the_first_and_none_stops_another(tmp_path: Path) -> None:
    program = """
end_on_interrupt()
with at_interrupt(lambda: os.write(1, b"never")): pass
with at_interrupt(lambda: os.write(1, b"first")), at_interrupt(lambda: 1 / 0):
    with at_interrupt(lambda: os.write(1, b"last ")):
        press()
"""
    assert python(program, tmp_path) == (130, "last first", LINE)


def test_it_waits_for_what_must_be_done_whole(tmp_path: Path) -> None:
    program = """
end_on_interrupt()
with uninterrupted():
    with uninterrupted():
        press()
    os.write(1, b"both")
os.write(1, b"never")
"""
    assert python(program, tmp_path) == (130, "both", LINE)


WRITE = """
from herald_jax.data.together import write_together
end_on_interrupt()
def write(path):
    path.write_text("new")
    if {during}: press()
real = Path.replace
def replace(path, final):
    if {between}: press()
    return real(path, final)
Path.replace = replace
write_together(Path("out"), dict(a=write, b=write, c=write), remedy="")
"""


@pytest.mark.parametrize(("moment", "content"), [("during", "old"), ("between", "new")])
def test_files_are_all_old_or_all_new(moment: str, content: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in "abc":
        (out / name).write_text("old", encoding="utf-8")
    moments = {"during": False, "between": False, moment: "'.b.' in path.name"}
    assert python(WRITE.format(**moments), tmp_path) == (130, "", LINE)
    assert {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()} == dict.fromkeys(
        "abc", content
    )


def test_a_folder_made_for_files_that_never_came_is_removed(tmp_path: Path) -> None:
    moments = {"during": "'.b.' in path.name", "between": False}
    assert python(WRITE.format(**moments), tmp_path) == (130, "", LINE)
    assert os.listdir(tmp_path) == []


COMMAND = """
import sys
from herald_jax.cli import main
sys.argv = ["herald", "sample", "out", "--questions", "2000", "--quiet"]
print("begin", flush=True)
main()
"""


# From the imports of native modules to the agents at work.
@pytest.mark.parametrize("seconds", [0.02, 0.2, 0.4, 0.8, 1.6])
def test_a_command_ends_whatever_it_is_doing(seconds: float, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begin\n"
        time.sleep(seconds)
        process.send_signal(2)
        said, complained = process.communicate(timeout=60)
    assert (process.returncode, said, complained) == (130, "", LINE)
    assert os.listdir(tmp_path) == []
