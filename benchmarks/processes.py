"""A command in a process of its own: how long it takes, the memory that it has at its peak."""

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
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        start = time.perf_counter()
        process = subprocess.Popen(
            [str(argument) for argument in arguments],
            env=os.environ | environment,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = said.read()
    if process.returncode:
        raise CommandError(words.strip()[-2000:] or f"exit code {process.returncode}")
    unit = 1 if sys.platform == "darwin" else KIBIBYTE
    return Run(seconds, usage.ru_maxrss * unit, words)


def herald(*arguments: str | Path, cache: Path) -> Run:
    """A `herald` command; its compiled programs are kept below `cache`."""
    command = [sys.executable, "-m", "herald_jax.cli", *arguments]
    return run(command, XDG_CACHE_HOME=str(cache))
