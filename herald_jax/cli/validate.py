"""`herald validate`: every fault of log files, before an audit meets them."""

from pathlib import Path
from typing import Annotated

import typer

from herald_jax.cli.console import say

EXAMPLES = """
\b
Examples:
  herald validate logs/*.jsonl
  herald validate logs/trajectories.parquet logs/corpus.jsonl logs/oracle.jsonl
\b
The kind of a file is told by its name (trajectories*, corpus*, oracle*), else by its keys.
Exit codes: 0 no fault (warnings may be), 2 a fault.
"""

FAULTY = 2


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help=".jsonl or .parquet")],
) -> None:
    """List every fault of log files.

    One line each: file, line, field, what was expected, what came, what to do.
    """
    from herald_jax.data.validate import validate_files

    faults = validate_files(files)
    for fault in faults:
        typer.echo(str(fault))
    errors = sum(not fault.warning for fault in faults)
    say(f"{len(files)} files: {errors} faults, {len(faults) - errors} warnings")
    if errors:
        raise typer.Exit(FAULTY)
