"""An encoded pool in the place of LOGS."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from herald_jax.pool.encoded import ROWS, is_encoded
from herald_jax.pool.find import PoolFiles


def find_encoded(
    logs: Sequence[str] | None, named: Mapping[str, Sequence[str] | None], skip_bad_rows: bool
) -> Path | None:
    """The encoded pool that LOGS name; None where they name log files."""
    folder = next((log for log in logs or () if is_encoded(log)), None)
    if folder is None:
        return None
    if len(logs or ()) > 1 or any(named.values()):
        raise typer.BadParameter(f"{folder} is an encoded pool: name it alone")
    if skip_bad_rows:
        raise typer.BadParameter(
            f"{folder} is an encoded pool: bad rows were settled when it was encoded; "
            "leave out --skip-bad-rows"
        )
    return Path(folder)


def files_of_rows(folder: Path) -> PoolFiles:
    """The files of an encoded pool that grow with its rows, for those who ask how large it is."""
    found = [path for path in (folder / ROWS).rglob("*") if path.is_file()]
    return PoolFiles(sorted(map(str, found)), [], [])
