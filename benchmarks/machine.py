"""What a benchmark ran on, as it stands in its JSON: processor, load, versions, memory."""

import os
import platform
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

# Far more than the caches of any processor of today hold for one core.
BANDWIDTH_BYTES = 1 << 28


def machine() -> dict[str, Any]:
    """Call it before measuring, so that the load is not one's own."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "backend": jax.default_backend(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


class ReadBandwidth:
    """Bytes a second at which all cores together read an array that no cache holds."""

    def __init__(self) -> None:
        self._values = np.ones(BANDWIDTH_BYTES // 4, np.int32)
        self._threads = os.cpu_count() or 1

    def once(self) -> float:
        """One reading: the maximum of each thread's share, which NumPy takes without copying."""
        parts = np.array_split(self._values, self._threads)
        with ThreadPoolExecutor(self._threads) as pool:
            start = time.perf_counter()
            list(pool.map(np.max, parts))
            return self._values.nbytes / (time.perf_counter() - start)


def compared(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Two ways that took turns: seconds of each round in, how many times as fast ours was out."""
    return {
        "ratio": statistics.median(theirs) / statistics.median(ours),
        "lowest_ratio_of_a_round": min(b / a for a, b in zip(ours, theirs, strict=True)),
    }
