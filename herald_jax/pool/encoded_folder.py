"""A folder that is there whole or not at all.

It is filled under another name beside its place, brought to disk, and takes its name in one step;
what an older one of the same name held is gone only then.
"""

import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from herald_jax.interrupts import at_interrupt, uninterrupted
from herald_jax.types import HeraldError

_ABANDONED = 24 * 3600.0  # seconds without a change: nobody fills that folder any more


@contextmanager
def whole_folder(folder: Path, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """An empty folder that becomes `folder` when the block ends without an error.

    Args:
        folder: its place; an empty folder there is replaced.
        replaceable: whether what lies there may be.

    Raises:
        HeraldError: something else lies there, or the folder cannot be written.
    """
    _require_free(folder, replaceable)
    place = Path(os.path.realpath(folder))  # not a link to it, which would be what is replaced
    draft = place.with_name(f".{place.name}.{uuid.uuid4().hex[:12]}.partial")

    def discard() -> None:
        shutil.rmtree(draft, ignore_errors=True)

    with at_interrupt(discard):
        try:
            _remove_abandoned(place)
            draft.mkdir(parents=True)
            yield draft
            _bring_to_disk(draft)
            _require_free(folder, replaceable)
            with uninterrupted():
                _replace(draft, place)
        except OSError as error:
            where, reason = error.filename or folder, error.strerror or error
            raise HeraldError(f"{where}: {reason}; {folder} was not written") from error
        finally:
            discard()


def _require_free(folder: Path, replaceable: Callable[[Path], bool]) -> None:
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise HeraldError(f"{folder}: is a file; name a new folder")
    if any(folder.iterdir()) and not replaceable(folder):
        raise HeraldError(f"{folder}: holds other files; name a new folder")


def _replace(draft: Path, folder: Path) -> None:
    if not folder.exists():
        draft.rename(folder)
        return
    old = draft.with_suffix(".old")
    folder.rename(old)
    draft.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _bring_to_disk(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def _remove_abandoned(folder: Path) -> None:
    """Remove what a killed process, which could not do it, left here."""
    for ending in ("partial", "old"):
        for path in folder.parent.glob(f".{folder.name}.*.{ending}"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(path)
