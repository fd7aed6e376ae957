"""Plug-ins by name: operators, generators. A second plug-in of one name is an error."""

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """As in manifests and reports."""


Plugin = TypeVar("Plugin", bound=Named)


class Registry(Mapping[str, Plugin]):
    """A read-only mapping from names to plug-ins, grown by `register` alone."""

    def __init__(self, kind: str) -> None:
        """Start empty; `kind` names the plug-ins in errors."""
        self._kind = kind
        self._plugins: dict[str, Plugin] = {}

    def register(self, plugin: Plugin) -> None:
        """Add a plug-in.

        Raises:
            ValueError: if one of that name is there.
        """
        if plugin.name in self._plugins:
            raise ValueError(f"{self._kind} {plugin.name!r} is registered already")
        self._plugins[plugin.name] = plugin

    def __getitem__(self, name: str) -> Plugin:
        return self._plugins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)
