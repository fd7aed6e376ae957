"""Writes files of records that belong together: all of them or none."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from herald_jax.data.jsonl import write_jsonl
from herald_jax.types import HeraldError


def write_together(out: Path, files: Mapping[str, Iterable[msgspec.Struct]]) -> None:
    """Write JSON Lines so that each file appears whole, and none before all are on disk.

    Args:
        out: folder, made when absent; files of the same names are replaced.
        files: name -> records, taken one at a time.

    Raises:
        HeraldError: the folder or a file cannot be written; what was there is as it was.
    """
    made = not out.exists()
    drafts = {out / f".{name}.{os.getpid()}.partial": out / name for name in files}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for draft, records in zip(drafts, files.values(), strict=True):
            write_jsonl(draft, records)
            with draft.open("rb") as written:
                os.fsync(written.fileno())
        for draft, final in drafts.items():
            draft.replace(final)
    except OSError as error:
        raise HeraldError(
            f"{out}: cannot write the import ({error.strerror or error}); name another folder"
        ) from error
    finally:
        if out.is_dir():
            for draft in drafts:
                draft.unlink(missing_ok=True)
            if made and not any(out.iterdir()):
                out.rmdir()
