"""The processes of one audit and the bytes that they exchange, by JAX's collectives.

All processes run the same program and call these functions together, in the same order. Bytes
travel as arrays of one length, that of the longest part; how long each is goes ahead.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import jax
import numpy as np
import numpy.typing as npt
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from herald_jax.types import HeraldError

AUTO = "auto"
_ADDRESS = re.compile(r"(?P<address>\S+:(?P<port>\d{1,5}))/(?P<index>\d+)/(?P<count>\d+)")
_LONGEST = 2**31 - 1  # lengths travel as int32


class Peers(Protocol):
    """Processes 0 .. count - 1."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def index(self) -> int:
        """Which of them this is."""

    def exchange(self, parts: Sequence[bytes]) -> list[bytes]:
        """Send part i to process i; what every process sent to this one, by process."""

    def gather(self, part: bytes) -> list[bytes]:
        """What every process gave, by process, to all of them."""


class Alone:
    """One process."""

    count = 1
    index = 0

    def exchange(self, parts: Sequence[bytes]) -> list[bytes]:
        """The one part comes back."""
        return list(parts)

    def gather(self, part: bytes) -> list[bytes]:
        """The one part comes back."""
        return [part]


@dataclass(frozen=True)
class Distributed:
    """The processes that `jax.distributed` has connected."""

    @property
    def count(self) -> int:
        """How many there are."""
        return jax.process_count()

    @property
    def index(self) -> int:
        """Which of them this is."""
        return jax.process_index()

    def exchange(self, parts: Sequence[bytes]) -> list[bytes]:
        """Send part i to process i: a re-sharding from senders to receivers, an all-to-all."""
        lengths = _all(np.array([_length(part) for part in parts], np.int32))
        longest = int(lengths.max())
        mesh = self._mesh()
        sent = jax.make_array_from_process_local_data(
            NamedSharding(mesh, PartitionSpec("process")), _rows(parts, longest)[None]
        )
        swapped = jax.jit(
            lambda array: array, out_shardings=NamedSharding(mesh, PartitionSpec(None, "process"))
        )(sent)
        received = np.asarray(swapped.addressable_shards[0].data)[:, 0]
        mine = lengths[:, self.index].tolist()
        return [row[:size].tobytes() for row, size in zip(received, mine, strict=True)]

    def gather(self, part: bytes) -> list[bytes]:
        """What every process gave, to all of them."""
        lengths = _all(np.array([_length(part)], np.int32))[:, 0]
        everything = _all(_rows([part], int(lengths.max()))[0])
        pairs = zip(everything, lengths.tolist(), strict=True)
        return [row[:size].tobytes() for row, size in pairs]

    def _mesh(self) -> Mesh:
        """One device of each process, in their order."""
        first = {device.process_index: device for device in reversed(jax.devices())}
        return Mesh(np.array([first[index] for index in range(self.count)]), ("process",))


def connect(where: str) -> Distributed:
    """Join the other processes of this audit.

    Args:
        where: `auto` where JAX can tell by itself (Slurm, Open MPI, GKE, TPU pods), else
            `HOST:PORT/INDEX/COUNT`: address of process 0, number of this one, how many there are.

    Raises:
        HeraldError: the others cannot be found.
    """
    told = _ADDRESS.fullmatch(where)
    if where != AUTO and not (
        told and 0 < int(told["port"]) < 1 << 16 and int(told["index"]) < int(told["count"])
    ):
        raise HeraldError(
            f"--distributed {where}: expected auto, or HOST:PORT/INDEX/COUNT with INDEX from 0 to "
            "COUNT - 1, for example 10.0.0.1:1234/0/4"
        )
    try:
        if told:
            address, index, count = told["address"], int(told["index"]), int(told["count"])
            jax.distributed.initialize(address, count, index, cluster_detection_method="deactivate")
        else:
            jax.distributed.initialize()
    except (ValueError, RuntimeError) as error:
        reason = str(error).strip().rstrip(".")
        raise HeraldError(
            f"--distributed {where}: {reason}; on a machine that is no cluster JAX knows, "
            "use HOST:PORT/INDEX/COUNT, or scripts/launch.py"
        ) from error
    return Distributed()


def _all(local: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The arrays of all processes, which have one shape, along a new first axis."""
    found: npt.NDArray[np.generic] = np.asarray(
        multihost_utils.process_allgather(local[None], tiled=True)
    )
    return found


def _length(part: bytes) -> int:
    if len(part) > _LONGEST:
        raise HeraldError(f"{len(part):,} bytes are too many to exchange at once")
    return len(part)


def _rows(parts: Sequence[bytes], longest: int) -> npt.NDArray[np.uint8]:
    """uint8 [len(parts), longest], zeros behind each part."""
    out = np.zeros((len(parts), max(longest, 1)), np.uint8)
    for row, part in zip(out, parts, strict=True):
        row[: len(part)] = np.frombuffer(part, np.uint8)
    return out
