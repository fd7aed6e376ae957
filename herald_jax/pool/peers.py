"""The processes of one audit, as far as they exchange bytes; `audit.processes` connects several."""

from typing import Protocol


class Peers(Protocol):
    """Processes 0 .. count - 1 that run the same program, step by step together."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def index(self) -> int:
        """Which of them this is."""

    def exchange(self, parts: list[bytes]) -> list[bytes]:
        """Send part i to process i; what every process sent to this one, by process."""

    def gather(self, part: bytes) -> list[bytes]:
        """What every process gave, by process, to all of them."""


class Alone:
    """One process."""

    count = 1
    index = 0

    def exchange(self, parts: list[bytes]) -> list[bytes]:
        """The one part comes back."""
        return parts

    def gather(self, part: bytes) -> list[bytes]:
        """The one part comes back."""
        return [part]
