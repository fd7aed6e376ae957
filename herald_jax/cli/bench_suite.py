"""The benchmarks of the checkout, and how one is run: as a process of its own.

So each has clean caches and a peak memory of its own, and one that fails stops no other.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import herald_jax
from herald_jax.interrupts import at_interrupt
from herald_jax.types import HeraldError

SUITE = "suite.toml"
# What is kept of the words of a benchmark that failed.
LAST_WORDS = 4000
# How long a benchmark may take to end, and to clear up its files, once it is interrupted.
GRACE_SECONDS = 5.0
KIBIBYTE = 1024  # of `ru_maxrss` on Linux; macOS counts bytes


@dataclass(frozen=True)
class Benchmark:
    """One script.

    Attributes:
        name: as in `--only`.
        script: its path.
        about: what it measures, a sentence.
        long: not for a quick run.
        always: run whatever was chosen.
    """

    name: str
    script: Path
    about: str
    long: bool = False
    always: bool = False


def load_suite() -> list[Benchmark]:
    """The benchmarks of this checkout, in the order in which they run.

    Raises:
        HeraldError: the package is not run from a checkout.
    """
    folder = Path(herald_jax.__file__).resolve().parents[1] / "benchmarks"
    try:
        entries = tomllib.loads((folder / SUITE).read_text(encoding="utf-8"))["benchmark"]
    except FileNotFoundError as error:
        raise HeraldError(
            "herald bench needs the checkout: benchmarks/ is no part of the installed package; "
            "clone the repository, run `make setup` in it, and then `.venv/bin/herald bench`"
        ) from error
    return [Benchmark(**{**entry, "script": folder / entry["script"]}) for entry in entries]


def run_benchmark(benchmark: Benchmark, *, quick: bool) -> dict[str, Any]:
    """Run one to its end; Ctrl-C ends it and what it started, and clears up its files.

    Returns:
        Its entry in the results: name, about, status, seconds, peak memory, rows; the end of what
        it said where it failed.
    """
    folder = tempfile.mkdtemp(prefix="herald-bench-")
    out = Path(folder) / "out.json"
    command = [sys.executable, str(benchmark.script), "--out", str(out)]
    entry: dict[str, Any] = {"name": benchmark.name, "about": benchmark.about}
    try:
        with tempfile.TemporaryFile(dir=folder) as said:
            start = time.perf_counter()
            # A group of its own, so that whatever it starts ends with it. Its temporary files go
            # where they are deleted with the folder.
            process = subprocess.Popen(
                [*command, "--quick"] if quick else command,
                env=os.environ | {"TMPDIR": folder},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            with at_interrupt(lambda: end(process.pid, folder)):
                _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            entry["seconds"] = time.perf_counter() - start
            entry["peak_bytes"] = usage.ru_maxrss * (1 if sys.platform == "darwin" else KIBIBYTE)
            said.seek(0)
            words = said.read().decode(errors="replace")
        return entry | outcome(process.returncode, out, words)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def outcome(code: int, out: Path, words: str) -> dict[str, Any]:
    """What a process that has ended left: its JSON, or why there is none."""
    try:
        document = json.loads(out.read_bytes())
        rows = document.pop("rows")
        machine = document.pop("machine")
    except (OSError, ValueError, KeyError) as error:
        code, document, rows, machine = code or 1, {}, [], {}
        words = words or f"no results: {error}"
    for shown in ("schema", "quick"):
        document.pop(shown, None)
    found = {
        "status": "ok" if code == 0 else "failed",
        "load_before": machine.get("load_before"),
        "machine": machine,
        "rows": rows,
        "more": document,
    }
    if code:
        said = anonymous(words.strip())[-LAST_WORDS:]
        found["failure"] = said or f"it ended with exit code {code}"
    return found


def anonymous(words: str) -> str:
    """Without the folders of this machine, which mean nothing on another."""
    root = Path(herald_jax.__file__).resolve().parents[1]
    places = {
        f"{root}{os.sep}": "",
        sys.prefix: "environment",
        sys.base_prefix: "python",
        tempfile.gettempdir(): "temporary",
        str(Path.home()): "~",
    }
    for place, name in places.items():
        words = words.replace(place, name)
    return words


def end(group: int, folder: str) -> None:
    """End a process group, gently at first, and delete its files."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGINT)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            if os.waitpid(group, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
                continue
        break
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
