"""The files of a pool folder."""

from pathlib import Path

from herald_jax.data.sources import ENDINGS, folder_files
from herald_jax.types import Fault, InputError

KINDS = ("trajectories", "corpus", "oracle")


def find_pool_files(directory: Path | str) -> tuple[list[str], list[str], list[str]]:
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
    names = {path: path.rsplit("/", 1)[-1] for path in files}
    found = {
        kind: [
            path for path, name in names.items() if name.startswith(kind) and name.endswith(ENDINGS)
        ]
        for kind in KINDS
    }
    present = ", ".join(list(names.values())[:8]) or "nothing"
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
    trajectories, corpus, oracle = found.values()
    return trajectories, corpus, oracle
