"""Runs the command in this process: programs that one audit compiled serve the next."""

import contextlib
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from herald_jax.cli.app import run


@dataclass(frozen=True)
class Outcome:
    """What a user sees of a command."""

    code: int
    out: str
    err: str


Herald = Callable[..., Outcome]


def run_herald(*arguments: str | Path, folder: Path) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["herald", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            run()
    return Outcome(int(caught.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def herald() -> Herald:
    """`herald(*arguments, folder=...)` runs the command in `folder`."""
    return run_herald
