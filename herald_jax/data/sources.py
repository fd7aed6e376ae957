"""Input files: where they lie, and which ones a pattern, a folder or a remote address means.

A path with a scheme (`s3://`, `gs://`, `https://`, `memory://`) is opened by fsspec; any other is a
file of this machine.
"""

import io
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from herald_jax.data.regular import require_regular
from herald_jax.types import Fault, HeraldError, InputError

ENDINGS = (".jsonl", ".parquet")


class Identity(msgspec.Struct, frozen=True):
    """What tells that a file is the one that was read before, without reading it."""

    path: str
    size: int
    changed: str  # time or tag of its last change


def is_remote(path: Path | str) -> bool:
    """Whether a path names a file of another machine."""
    return "://" in str(path)


def open_input(path: Path | str) -> IO[bytes]:
    """Open a file to read bytes from, at its start; it can be sought in.

    Raises:
        OSError: it cannot be opened, or is a pipe, a socket or a device.
    """
    if not is_remote(path):
        require_regular(path)
        return Path(path).open("rb")
    system, name = _remote(path)
    return cast(IO[bytes], io.BufferedReader(system.open(name, "rb")))


def identity(path: Path | str) -> Identity:
    """Name, size and last change of a file.

    Raises:
        OSError: there is no such file.
    """
    if not is_remote(path):
        found = Path(path).stat()
        return Identity(str(path), found.st_size, str(found.st_mtime_ns))
    system, name = _remote(path)
    info = system.info(name)
    tag = next((info[key] for key in ("ETag", "etag", "mtime", "created") if key in info), "")
    return Identity(str(path), int(info.get("size") or 0), str(tag))


def expand(paths: Sequence[Path | str]) -> list[str]:
    """The files that paths, patterns and folders mean, each once, in the order given.

    Args:
        paths: files; patterns such as `logs/*.parquet`; folders, which stand for all the JSON Lines
            and Parquet files directly in them. Those of one pattern or folder are sorted by name.

    Raises:
        InputError: a pattern matches nothing, or a folder holds no such file.
    """
    found: list[str] = []
    faults: list[Fault] = []
    for path in map(str, paths):
        try:
            matches = _matches(path)
        except OSError as error:
            faults.append(_not_listed(path, error))
            continue
        if not matches:
            faults.append(
                Fault(
                    file=path,
                    line=0,
                    field="",
                    code="no_match",
                    expected=f"files that end in {' or '.join(ENDINGS)}",
                    got="none",
                    remedy="check the pattern or the folder",
                )
            )
        found += matches
    if faults:
        raise InputError(faults)
    return list(dict.fromkeys(found))


def _not_listed(path: str, error: OSError) -> Fault:
    return Fault(
        file=path,
        line=0,
        field="",
        code="unreadable",
        expected="a file, or a folder or pattern that can be listed",
        got=str(error),
        remedy="check the address, and that what fsspec needs for it is installed",
    )


def folder_files(folder: Path | str) -> list[str] | None:
    """Everything that lies directly in a folder, sorted by name; None where there is no folder."""
    if is_remote(folder):
        system, name = _remote(folder)
        if not system.isdir(name):
            return None
        return sorted(system.unstrip_protocol(one) for one in system.ls(name, detail=False))
    if not Path(folder).is_dir():
        return None
    return sorted(str(one) for one in Path(folder).iterdir())


def _matches(path: str) -> list[str]:
    if is_remote(path):
        system, name = _remote(path)
        if has_magic(name):
            return sorted(system.unstrip_protocol(one) for one in system.glob(name))
    files = folder_files(path)
    if files is not None:
        return [one for one in files if one.endswith(ENDINGS)]
    if is_remote(path):
        return [path]
    if has_magic(path) and not Path(path).exists():
        return sorted(one for one in glob(path, recursive=True) if not Path(one).is_dir())
    return [path]


def _remote(path: Path | str) -> tuple[Any, str]:
    """The file system of an address, and the name in it."""
    import fsspec

    try:
        system, name = fsspec.core.url_to_fs(str(path))
    except (ImportError, ValueError) as error:
        raise HeraldError(
            f"{path}: {error}; check the address, or install with pip what fsspec names for it"
        ) from error
    return system, name
