"""`herald validate`: every fault of log files, before an audit meets them."""

from pathlib import Path
from typing import Annotated

import typer

from herald_jax.cli.console import counted, say, show

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
        show(str(fault))
    errors = sum(not fault.warning for fault in faults)
    warnings = len(faults) - errors
    told = f"{counted(errors, 'fault')}, {counted(warnings, 'warning')}"
    say(f"{counted(len(files), 'file')}: {told}")
    if errors:
        raise typer.Exit(FAULTY)
