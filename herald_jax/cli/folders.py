"""Folders that the command line names."""

import os
from pathlib import Path

import typer


def check_folder(option: str, folder: Path) -> None:
    """Refuse a target folder that is a file, or that cannot be made."""
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"{option} {folder} is a file; name a folder")
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(nearest, os.W_OK):
        raise typer.BadParameter(f"{option} {folder}: {nearest} cannot be written; name another")


def folder_name(text: str) -> Path:
    """A folder of the command line; an empty name would be the current one."""
    if not text:
        raise typer.BadParameter("an empty name; name a folder, `.` for the current one")
    return Path(text)
