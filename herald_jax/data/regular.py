"""Input files are regular files: they are read more than once, and a pipe may never end."""

import stat
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class IrregularFileError(OSError):
    """A path names a pipe, a socket or a device; the message says which."""


def require_regular(path: Path | str) -> None:
    """Refuse what opens like a file and is none, before opening it waits for a writer.

    Raises:
        IrregularFileError: a pipe, a socket or a device.
        OSError: there is nothing, or it cannot be looked at.
    """
    kind = _KINDS.get(stat.S_IFMT(Path(path).stat().st_mode))
    if kind:
        raise IrregularFileError(f"{kind}, not a regular file")
