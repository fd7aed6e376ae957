"""A command in a process of its own: how long it takes, the memory that it has at its peak.

This file is also the small process that starts it: the peak of a process counts from that of the
one that started it, which may be a large one.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# As `herald audit` says it where no bars can be drawn: `[  10.6 s] read trajectories: 1,000,000`.
STAGE = re.compile(r"^\[ *([\d.]+) s\] (.+): [\d,]+$", re.MULTILINE)
KIBIBYTE = 1024  # of `ru_maxrss` on Linux; macOS counts bytes


@dataclass(frozen=True)
class Run:
    """What became of a command.

    Attributes:
        seconds: from its start to its end.
        peak_bytes: the most memory that it had at once.
        said: its standard error.
    """

    seconds: float
    peak_bytes: int
    said: str

    @property
    def stages(self) -> str:
        """Where the time went, as far as the command says."""
        before, out = 0.0, []
        for end, stage in STAGE.findall(self.said):
            spent, before = float(end) - before, float(end)
            if spent >= 0.05:
                out.append(f"{stage} {spent:.1f} s")
        return ", ".join(out)


class CommandError(Exception):
    """A command that did not end with 0; the text is the end of what it said."""


def run(arguments: Sequence[str | Path], **environment: str) -> Run:
    """Run a command to its end.

    Raises:
        CommandError: it ended with another code than 0.
    """
    with tempfile.TemporaryDirectory() as folder:
        measured, said = Path(folder) / "measured.json", Path(folder) / "said.txt"
        command = [sys.executable, "-I", __file__, measured, *arguments]
        with said.open("wb") as file:
            code = subprocess.run(
                list(map(str, command)),
                env=os.environ | environment,
                stdout=subprocess.DEVNULL,
                stderr=file,
                check=False,
            ).returncode
        words = said.read_text(encoding="utf-8", errors="replace")
        if code:
            raise CommandError(words.strip()[-2000:] or f"exit code {code}")
        return Run(**json.loads(measured.read_text()), said=words)


def measure(measured: str, command: Sequence[str]) -> int:
    """Run a command, write down what it took; its exit code."""
    start = time.perf_counter()
    process = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else KIBIBYTE
    found = {"seconds": seconds, "peak_bytes": usage.ru_maxrss * unit}
    Path(measured).write_text(json.dumps(found))
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def herald(*arguments: str | Path, cache: Path) -> Run:
    """A `herald` command; its compiled programs are kept below `cache`."""
    command = [sys.executable, "-m", "herald_jax.cli", *arguments]
    return run(command, XDG_CACHE_HOME=str(cache))


if __name__ == "__main__":
    sys.exit(measure(sys.argv[1], sys.argv[2:]))
