"""Where encoded rows and partial results are kept: in memory, or in a work folder that outlives us.

An entry is a set of named arrays with a few words about it (`meta`). In a folder each is a file
of its own that is there whole or not at all, so that a process killed at any moment leaves what it
had finished. An entry has the digest of all that it depends on as its `key`: one that was made from
other input or settings, or that was damaged, is told by name and made again.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from herald_jax.data.arrays_file import ArraysFile, DamagedFileError, write_arrays
from herald_jax.types import HeraldError

# Entries of other files or settings that are told by name.
SHOWN_FOREIGN = 5

# What a user can do when a folder that outlives the process cannot be written.
KEPT = (
    "what was finished is kept: make room and run the same command again, "
    "or name another work folder"
)

Arrays = Mapping[str, NDArray[Any]]


class Entry(Protocol):
    """Named arrays of a store."""

    @property
    def meta(self) -> dict[str, Any]:
        """What was put beside them."""

    def __contains__(self, name: str) -> bool: ...

    def length(self, name: str) -> int:
        """Size of the first axis of an array."""

    def read(self, name: str) -> NDArray[Any]:
        """A whole array."""

    def part(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Items first .. last - 1."""

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""


class Store(Protocol):
    """Entries by name."""

    def put(self, name: str, key: str, arrays: Arrays, meta: Mapping[str, Any]) -> None:
        """Keep an entry; one of the same name is replaced."""

    def get(self, name: str, key: str, *, check: bool = False) -> Entry | None:
        """An entry made under this key, or None.

        Args:
            name: of the entry.
            key: digest of all that it must have been made from.
            check: read it whole, to find damage, before it is trusted.
        """


class Memory:
    """A store that ends with the process."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[str, _Kept]] = {}

    def put(self, name: str, key: str, arrays: Arrays, meta: Mapping[str, Any]) -> None:
        """Keep an entry."""
        self._entries[name] = (key, _Kept(dict(arrays), dict(meta)))

    def get(self, name: str, key: str, *, check: bool = False) -> Entry | None:
        """An entry made under this key."""
        del check  # nothing here can be damaged
        found = self._entries.get(name)
        return found[1] if found and found[0] == key else None


class _Kept:
    def __init__(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        self._arrays = arrays
        self.meta = meta

    @property
    def names(self) -> list[str]:
        return list(self._arrays)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def length(self, name: str) -> int:
        return len(self._arrays[name])

    def read(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def part(self, name: str, first: int, last: int) -> NDArray[Any]:
        return self._arrays[name][first:last]


class Folder:
    """A store in a folder; what cannot be used is refused by name through `say`."""

    def __init__(self, folder: Path, say: Callable[[str], None], *, remedy: str = KEPT) -> None:
        self.folder = folder
        self._say = say
        self._remedy = remedy
        self._usable: dict[str, ArraysFile] = {}
        self._foreign = 0

    def put(self, name: str, key: str, arrays: Arrays, meta: Mapping[str, Any]) -> None:
        """Keep an entry.

        Raises:
            HeraldError: it cannot be written; what was finished before is kept.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_arrays(self._path(name), arrays, {**meta, "key": key})
        except OSError as error:
            raise HeraldError(
                f"{self._path(name)}: cannot be written ({error.strerror or error}); {self._remedy}"
            ) from error
        self._usable[name] = ArraysFile(self._path(name))

    def get(self, name: str, key: str, *, check: bool = False) -> Entry | None:
        """An entry made under this key."""
        if name not in self._usable:
            path = self._path(name)
            if not path.exists():
                return None
            try:
                found = ArraysFile(path)
                if check:
                    found.check()
            except (DamagedFileError, OSError) as error:
                reason = f"{path}: {error.strerror}" if isinstance(error, OSError) else error
                self._say(f"{reason}; not used, and done again")
                return None
            self._usable[name] = found
        found = self._usable[name]
        if found.meta.get("key") != key:
            del self._usable[name]
            self._refuse(found.path)
            return None
        return found

    def _refuse(self, path: Path) -> None:
        """Tell of entries of something else: after other settings that is all results."""
        self._foreign += 1
        if self._foreign <= SHOWN_FOREIGN:
            self._say(f"{path}: made from other files or settings; not used, and done again")
        elif self._foreign == SHOWN_FOREIGN + 1:
            self._say(f"{self.folder}: holds more of the same; not used, and done again")

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.arrays"
