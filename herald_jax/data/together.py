"""Writes files that belong together: all of them or none, and never half of one.

All are written under temporary names in the target folder and brought to disk before the first
takes its final name. An interruption before that leaves what was there as it was; one that comes
while the names change waits until all have.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from herald_jax.interrupts import at_interrupt, uninterrupted
from herald_jax.types import HeraldError

_ABANDONED = 3600.0  # seconds without a change: nobody writes to that temporary file any more


def write_together(
    folder: Path, files: Mapping[str, Callable[[Path], object]], *, remedy: str
) -> list[Path]:
    """Write every file into `folder`, or none of them.

    Args:
        folder: made when absent; files of the same names are replaced.
        files: name -> what writes the file to the path that it is given.
        remedy: what the user can do when the folder cannot be written.

    Returns:
        The paths written, in the order of `files`.

    Raises:
        HeraldError: the folder or a file cannot be written; what was there is as it was.
    """
    made = not folder.exists()
    drafts = {folder / f".{name}.{os.getpid()}.partial": folder / name for name in files}

    def discard() -> None:
        with suppress(OSError):
            for draft in drafts:
                draft.unlink(missing_ok=True)
            if made:
                folder.rmdir()  # fails, as it should, when it holds anything

    with at_interrupt(discard):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(folder, files)
            for (draft, final), write in zip(drafts.items(), files.values(), strict=True):
                if final.is_dir():
                    raise IsADirectoryError(f"{final.name} is a folder")
                write(draft)
                _bring_to_disk(draft)
            with uninterrupted():
                for draft, final in drafts.items():
                    draft.replace(final)
        except OSError as error:
            reason = error.strerror or error
            raise HeraldError(f"{folder}: cannot be written ({reason}); {remedy}") from error
        finally:
            discard()
    return list(drafts.values())


def _bring_to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _remove_abandoned(folder: Path, names: Mapping[str, object]) -> None:
    """Remove temporary files that a killed process, which could not do it, left here."""
    for name in names:
        for path in folder.glob(f".{name}.*.partial"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()
