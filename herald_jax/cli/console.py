"""What a user is told: messages on stderr, results on stdout."""

import os
import sys
from typing import TextIO

import typer

NAME = "herald"


def say(message: str) -> None:
    """One message to stderr."""
    tell(f"{NAME}: {message}")


def tell(line: str) -> None:
    """One line to stderr; where nobody reads it, the work goes on."""
    try:
        typer.echo(line, err=True)
    except OSError:
        _drop(sys.stderr)


def show(text: str, end: str = "\n") -> None:
    """A result to stdout. A reader that has gone, as `head` does, has read what it wanted.

    Raises:
        HeraldError: stdout cannot be written, for example because the disk is full.
    """
    try:
        typer.echo(f"{text}{end}", nl=False)
    except BrokenPipeError:
        _drop(sys.stdout)
    except OSError as error:
        _drop(sys.stdout)
        from herald_jax.types import HeraldError

        raise HeraldError(f"cannot write to stdout ({error.strerror or error})") from error


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _drop(stream: TextIO) -> None:
    """Send what a stream still holds, and what is to come, nowhere: Python flushes it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
