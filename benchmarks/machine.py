"""What a benchmark ran on, and how fast its memory can be read at best.

As a script it measures the memory and nothing else:

  python benchmarks/machine.py
  python benchmarks/machine.py --quick --out memory.json

It imports JAX and NumPy alone, as all does that is to run on a bare machine with an accelerator.
"""

import os
import platform
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

# Far more than the caches of any processor of today hold for one core, or those of an accelerator.
HOST_BYTES = 1 << 28
DEVICE_BYTES = 1 << 31


def machine() -> dict[str, Any]:
    """Call it before measuring, so that the load is not one's own."""
    devices = jax.local_devices()
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "memory_bytes": _memory(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "backend": jax.default_backend(),
        "devices": f"{len(devices)} x {devices[0].device_kind}",
        "system": f"{platform.system()} {platform.machine()}",
        "jax": jax.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class ReadBandwidth:
    """Bytes a second at which all cores together read an array that no cache holds."""

    def __init__(self) -> None:
        self._values = np.ones(HOST_BYTES // 4, np.int32)
        self._threads = usable_cores()

    def once(self) -> float:
        """One reading: the maximum of each thread's share, which NumPy takes without copying."""
        parts = np.array_split(self._values, self._threads)
        with ThreadPoolExecutor(self._threads) as pool:
            start = time.perf_counter()
            list(pool.map(np.max, parts))
            return self._values.nbytes / (time.perf_counter() - start)


class DeviceReadBandwidth:
    """The same of an accelerator's own memory: bytes a second of one maximum over an array."""

    def __init__(self) -> None:
        self._values = jnp.ones(DEVICE_BYTES // 4, jnp.int32)
        self._largest = jax.jit(jnp.max)
        self.once()  # compiles

    def once(self) -> float:
        """One reading."""
        start = time.perf_counter()
        jax.block_until_ready(self._largest(self._values))
        return self._values.nbytes / (time.perf_counter() - start)


def read_bandwidth() -> ReadBandwidth | DeviceReadBandwidth:
    """Of the memory that kernels read on this machine."""
    return ReadBandwidth() if jax.default_backend() == "cpu" else DeviceReadBandwidth()


def main() -> None:
    from measured import Row, arguments, finish

    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    before, bandwidth = machine(), read_bandwidth()
    rounds = 5 if options.quick else options.rounds
    readings = [bandwidth.once() for _ in range(rounds)]
    median = statistics.median(readings)
    size = DEVICE_BYTES if isinstance(bandwidth, DeviceReadBandwidth) else HOST_BYTES
    row = Row(
        name="memory read",
        seconds=size / median,
        measured=median / 1e9,
        unit="GB/s",
        detail=f"{before['usable_cores']} threads, the maximum of {size >> 20} MiB of int32; "
        f"lowest of {rounds} readings {min(readings) / 1e9:.1f} GB/s",
    )
    finish(options, "how fast memory can be read at best", before, [row])


if __name__ == "__main__":
    main()
