"""Writes reports so that a reader never sees half of one, nor pages of two audits."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from herald_jax.data.together import write_together


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
    writers = {name: partial(Path.write_bytes, data=data) for name, data in contents.items()}
    return write_together(folder, writers, remedy="choose another folder with --out")
