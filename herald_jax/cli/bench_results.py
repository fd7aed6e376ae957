"""`bench.json` and its page: written after every benchmark, read again to be compared.

{"schema": 1, "kind": "herald-jax benchmarks", "herald_jax", "commit", "begun", "quick",
 "complete", "machine": {...}, "read_bandwidth": bytes a second,
 "benchmarks": [{"name", "about", "status", "seconds", "peak_bytes", "load_before",
                 "rows": [{"name", "against", "ratio", "unit", "goal", "at_most", "met",
                           "seconds", "peer_seconds", "detail"}],
                 "more": {...}, "failure"}]}
"""

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import herald_jax
from herald_jax.cli.files import write_all
from herald_jax.pages.bench import render_bench
from herald_jax.types import HeraldError

SCHEMA = 1
KIND = "herald-jax benchmarks"
MEMORY = "memory"
BYTES_OF_GIGABYTE = 1e9
ROW_KEYS = ("name", "against", "ratio", "goal", "met", "seconds", "peer_seconds", "detail")


class Results:
    """The results of a run, on disk after each benchmark.

    Args:
        out: the JSON file; the page goes beside it.
        quick: small sizes were measured.
    """

    def __init__(self, out: Path, *, quick: bool) -> None:
        self._out = out
        self.data: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": KIND,
            "herald_jax": herald_jax.__version__,
            "commit": commit(),
            "begun": datetime.now(UTC).isoformat(timespec="seconds"),
            "quick": quick,
            "complete": False,
            "machine": {},
            "read_bandwidth": None,
            "benchmarks": [],
        }

    def add(self, found: dict[str, Any], *, complete: bool) -> None:
        """Take in what a benchmark found, and write."""
        machine = found.pop("machine")
        if machine and not self.data["machine"]:
            self.data["machine"] = machine
        if found["name"] == MEMORY and found["rows"]:
            self.data["read_bandwidth"] = found["rows"][0]["ratio"] * BYTES_OF_GIGABYTE
        self.data["benchmarks"].append(found)
        self.data["complete"] = complete
        contents = {self._out.name: (json.dumps(self.data, indent=1) + "\n").encode()}
        if self.data["machine"]:
            contents[self._out.with_suffix(".html").name] = render_bench(self.data).encode()
        write_all(self._out.parent, contents)

    def say_kept(self) -> None:
        """Where what was measured lies, when Ctrl-C cuts the run short."""
        if self.data["benchmarks"]:
            # Not through Python's streams, which may be in use (`interrupts.at_interrupt`).
            os.write(2, f"{os.linesep}herald: kept {self._out}{os.linesep}".encode())


def commit() -> str | None:
    """The commit of the checkout, `+` behind it where files were changed since."""
    root = Path(herald_jax.__file__).resolve().parents[1]
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def read_results(path: Path) -> dict[str, Any]:
    """The results in a file.

    Raises:
        HeraldError: unreadable, or no results of a schema that this version knows.
    """

    def malformed(reason: str) -> HeraldError:
        return HeraldError(
            f"{path}: expected a bench.json of `herald bench`, got {reason}; run it again"
        )

    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise malformed(error.strerror or "a file that cannot be read") from error
    except ValueError as error:
        raise malformed(f"no JSON: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise malformed("another kind of file")
    if data.get("schema") != SCHEMA:
        raise malformed(f"schema {data.get('schema')!r}, this version reads {SCHEMA}")
    for benchmark in data["benchmarks"]:
        for row in benchmark["rows"]:
            if missing := [key for key in ROW_KEYS if key not in row]:
                raise malformed(f"a row of {benchmark['name']} without {', '.join(missing)}")
    return data
