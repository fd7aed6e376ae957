"""Writes reports so that a reader never sees half of one.

All files are written under temporary names in the target folder and brought to disk before the
first takes its final name. An interruption before that leaves the old report as it was.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from herald_jax.types import HeraldError


def write_all(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write every file of `contents` into `folder`, or none of them.

    Args:
        folder: made when it does not exist.
        contents: file name to bytes.

    Returns:
        The paths written, in the order of `contents`.

    Raises:
        HeraldError: the folder or a file cannot be written.
    """
    made_folder = not folder.exists()
    partial = {folder / f".{name}.{os.getpid()}.partial": folder / name for name in contents}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in zip(partial, contents.values(), strict=True):
            write_to_disk(path, data)
        for path, final in partial.items():
            path.replace(final)
    except OSError as error:
        raise HeraldError(
            f"{folder}: cannot write the report ({error.strerror or error}); "
            "choose another folder with --out"
        ) from error
    finally:
        if folder.is_dir():
            for path in partial:
                path.unlink(missing_ok=True)
            if made_folder and not any(folder.iterdir()):
                folder.rmdir()
    return list(partial.values())


def write_to_disk(path: Path, data: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
