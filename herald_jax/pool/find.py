"""Which files are meant: those of a pool folder, or of several paths, sorted by kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.data.sources import ENDINGS, expand, folder_files
from herald_jax.data.tables import unreadable
from herald_jax.data.validate import kind_of_file
from herald_jax.types import Fault, InputError

KINDS = ("trajectories", "corpus", "oracle")
_CLASSES = dict(zip(KINDS, (Trajectory, Passage, OracleRow), strict=True))


class PoolFiles(NamedTuple):
    """Files of a pool by kind."""

    trajectories: list[str]
    corpus: list[str]
    oracle: list[str]


def sort_files(paths: Sequence[Path | str]) -> PoolFiles:
    """Files, patterns, folders and addresses, told apart by kind.

    A file's name tells where it begins with trajectories, corpus or oracle, and its keys otherwise.
    Of a folder those files count whose names tell; where it has trajectories under other names
    alone, these count.

    Raises:
        InputError: a file is of no kind or cannot be read, or a pattern matches nothing.
    """
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    faults: list[Fault] = []
    for path in paths:
        files = folder_files(path)
        if files is None:
            for name in expand([path]):
                _sort(name, found, faults)
            continue
        logs = [name for name in files if name.endswith(ENDINGS)]
        told = {name: kind for name in logs if (kind := _by_name(name)) is not None}
        for name, kind in told.items():
            found[kind].append(name)
        if "trajectories" not in told.values():
            for name in logs:
                if name not in told:
                    _sort(name, found, faults)
    if faults:
        raise InputError(faults)
    return PoolFiles(**found)


def _sort(path: str, found: dict[str, list[str]], faults: list[Fault]) -> None:
    """Put a file where it belongs."""
    try:
        record = kind_of_file(path)
    except (OSError, pa.ArrowException) as error:
        faults.append(unreadable(path, error))
        return
    for kind, name in _CLASSES.items():
        if name is record:
            found[kind].append(path)
            return
    faults.append(
        Fault(
            file=path,
            line=0,
            field="",
            code="unknown_kind",
            expected="trajectories, a corpus or an oracle",
            got="a name and keys of none of them",
            remedy="name it with --trajectories, --corpus or --oracle",
        )
    )


def _by_name(path: str) -> str | None:
    name = path.rsplit("/", 1)[-1]
    return next((kind for kind in KINDS if name.startswith(kind)), None)


def find_pool_files(directory: Path | str) -> PoolFiles:
    """The files of a pool folder: trajectories*, corpus* and oracle*, JSON Lines or Parquet.

    Args:
        directory: a folder of this machine, or the address of one.

    Returns:
        Trajectories, corpus and oracle files, each sorted by name.

    Raises:
        InputError: the folder is missing, or has no file of a kind.
    """
    files = folder_files(directory)
    if files is None:
        got, remedy = "no such directory", "check the path"
        if Path(directory).exists():
            got = "a file"
            remedy = "name its folder, or each file with --trajectories, --corpus and --oracle"
        raise InputError(
            [
                Fault(
                    file=str(directory),
                    line=0,
                    field="",
                    code="not_a_directory",
                    expected="a folder with trajectories*, corpus* and oracle* files",
                    got=got,
                    remedy=remedy,
                )
            ]
        )
    logs = [path for path in files if path.endswith(ENDINGS)]
    found = {kind: [path for path in logs if _by_name(path) == kind] for kind in KINDS}
    present = ", ".join(path.rsplit("/", 1)[-1] for path in files[:8]) or "nothing"
    faults = [
        Fault(
            file=str(directory),
            line=0,
            field="",
            code="missing_file",
            expected=f"a file {kind}*.jsonl or {kind}*.parquet",
            got=present,
            remedy=f"name the {kind} file in the command, or put it there",
        )
        for kind, paths in found.items()
        if not paths
    ]
    if faults:
        raise InputError(faults)
    return PoolFiles(**found)
