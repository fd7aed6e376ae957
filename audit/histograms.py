"""How severe attacks are: histograms of oracle-worst margins on the common set."""

import math

import numpy as np

from herald_jax.audit.staging import Mask
from herald_jax.audit.trials import Trial

# Margins are counted in cells this narrow while blocks go by, since the range of all is not known
# before the last; the report merges them into as many bins as the manifest asks for.
CELLS_PER_UNIT = 64


class Histograms:
    """Counts of margins by operator and contract."""

    def __init__(self, contracts: tuple[str, ...], bins: int) -> None:
        """Start at nothing, for some contracts."""
        self._contracts = contracts
        self._bins = bins
        self._counts: dict[tuple[str, str], dict[int, int]] = {}

    def add(self, operator: str, trial: Trial, rows: Mask) -> None:
        """Count some rows of a block."""
        for j, contract in enumerate(self._contracts):
            counted = trial.worst[j, rows & np.isfinite(trial.worst[j])]
            # A tie is a success and stands right of 0 whatever rounding made of it; successes are
            # counted with the tolerance in float32.
            tie = float(np.float32(trial.block.setup.tie_tolerance))
            shifted = counted.astype(np.float64) + tie
            cells, sizes = np.unique(
                np.floor(shifted * CELLS_PER_UNIT).astype(np.int64), return_counts=True
            )
            so_far = self._counts.setdefault((operator, contract), {})
            for cell, size in zip(cells.tolist(), sizes.tolist(), strict=True):
                so_far[cell] = so_far.get(cell, 0) + size

    def report(self) -> dict[str, dict[str, dict[str, list[float] | list[int]]]]:
        """`{operator: {contract: {"edges", "counts"}}}`; an edge always lies at 0."""
        found: dict[str, dict[str, dict[str, list[float] | list[int]]]] = {}
        for (operator, contract), cells in self._counts.items():
            if cells:
                found.setdefault(operator, {})[contract] = self._merged(cells)
        return found

    def _merged(self, cells: dict[int, int]) -> dict[str, list[float] | list[int]]:
        span = max(cells) - min(cells) + 1
        width = math.ceil(span / self._bins)
        # Bins are aligned to 0, the line between an attack that fails and one that succeeds.
        first, last = min(cells) // width, max(cells) // width
        counts = [0] * (last - first + 1)
        for cell, size in cells.items():
            counts[cell // width - first] += size
        edges = [(first + i) * width / CELLS_PER_UNIT for i in range(len(counts) + 1)]
        return {"edges": edges, "counts": counts}
