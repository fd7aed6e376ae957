"""Where trajectories come from: files, or records at hand."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as pq

from herald_jax.data.flat import Flat, FlatBatch
from herald_jax.data.flat_files import read_flat
from herald_jax.data.places import read_places
from herald_jax.data.records import Trajectory
from herald_jax.data.sources import Identity, identity, open_input
from herald_jax.data.tables import digest_of, is_parquet

_SAMPLE = 1 << 18  # bytes of a JSON Lines file by which its rows are estimated


class Records(Protocol):
    """Trajectories as they were logged, for those who ask for a few."""

    @property
    def name(self) -> str:
        """What faults call their file."""

    def read(self, lines: Sequence[int]) -> dict[int, Trajectory]:
        """The records of some lines."""


class Log(Records, Protocol):
    """Trajectories in an order of their own."""

    def identity(self) -> Identity:
        """What tells that it has not changed, without reading it."""

    def digest(self) -> str | None:
        """SHA-256 of its bytes; None where there are none."""

    def batches(self) -> Iterator[FlatBatch]:
        """Its rows, a stretch at a time."""

    def estimated_rows(self) -> int:
        """About how many rows there are, for progress."""


class FileLog:
    """A JSON Lines or Parquet file, local or remote."""

    def __init__(self, path: Path | str) -> None:
        self.name = str(path)

    def identity(self) -> Identity:
        """Path, size and last change."""
        return identity(self.name)

    def digest(self) -> str | None:
        """SHA-256 of the file."""
        return digest_of(self.name)

    def batches(self) -> Iterator[FlatBatch]:
        """Its rows, in the order of the file."""
        return read_flat(self.name)

    def read(self, lines: Sequence[int]) -> dict[int, Trajectory]:
        """The records of some lines."""
        return read_places(self.name, lines)

    def estimated_rows(self) -> int:
        """Exact for Parquet; for JSON Lines by the length of the first lines."""
        with open_input(self.name) as file:
            if is_parquet(self.name):
                with pq.ParquetFile(file) as table:
                    return int(table.metadata.num_rows)
            sample = file.read(_SAMPLE)
        lines = max(sample.count(b"\n"), 1)
        return max(int(self.identity().size / max(len(sample), 1) * lines), lines)


class RecordLog:
    """Records at hand; faults count them from 1."""

    def __init__(self, records: Sequence[Trajectory], name: str = "trajectories") -> None:
        self.name = name
        self._records = list(records)

    def identity(self) -> Identity:
        """Nothing outlives the process that would have to be recognised."""
        return Identity(self.name, len(self._records), "")

    def digest(self) -> str | None:
        """There are no bytes."""
        return None

    def batches(self) -> Iterator[FlatBatch]:
        """All at once."""
        count = len(self._records)
        yield FlatBatch(Flat.of_records(self._records, range(1, count + 1)), [], count)

    def read(self, lines: Sequence[int]) -> dict[int, Trajectory]:
        """The records themselves."""
        return {line: self._records[line - 1] for line in lines}

    def estimated_rows(self) -> int:
        """Their number."""
        return len(self._records)
