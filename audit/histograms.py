"""How severe attacks are: histograms of oracle-worst margins on the common set."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from herald_jax.audit.counts import Counts, bump
from herald_jax.audit.staging import Mask
from herald_jax.audit.trials import Trial

# Margins are counted in cells this narrow while blocks go by, since the range of all is not known
# before the last; the report merges them into as many bins as the manifest asks for.
CELLS_PER_UNIT = 64


def count_margins(
    counts: Counts, contracts: tuple[str, ...], operator: str, trial: Trial, rows: Mask
) -> None:
    """Count some rows of a block."""
    for kind, worst in enumerate(trial.worst):
        counted = worst[rows & np.isfinite(worst)]
        # A tie is a success and stands right of 0 whatever rounding made of it; successes are
        # counted with the tolerance in float32.
        tie = float(np.float32(trial.block.setup.tie_tolerance))
        shifted = counted.astype(np.float64) + tie
        cells, sizes = np.unique(
            np.floor(shifted * CELLS_PER_UNIT).astype(np.int64), return_counts=True
        )
        for j in np.flatnonzero(trial.alike == kind).tolist():
            for cell, size in zip(cells.tolist(), sizes.tolist(), strict=True):
                bump(counts, operator, contracts[j], str(cell), by=size)


def report_margins(
    counts: Mapping[str, Any], operators: Sequence[str], contracts: Sequence[str], bins: int
) -> dict[str, dict[str, dict[str, list[float] | list[int]]]]:
    """`{operator: {contract: {"edges", "counts"}}}` where a margin was counted, in this order.

    An edge always lies at 0.
    """
    return {
        operator: {
            contract: merged(counts[operator][contract], bins)
            for contract in contracts
            if contract in counts[operator]
        }
        for operator in operators
        if operator in counts
    }


def merged(cells: Mapping[str, int], bins: int) -> dict[str, list[float] | list[int]]:
    """Cells in bins of equal width, about as many as asked for."""
    sizes = {int(cell): size for cell, size in cells.items()}
    span = max(sizes) - min(sizes) + 1
    width = math.ceil(span / bins)
    # Bins are aligned to 0, the line between an attack that fails and one that succeeds.
    first, last = min(sizes) // width, max(sizes) // width
    counts = [0] * (last - first + 1)
    for cell, size in sizes.items():
        counts[cell // width - first] += size
    edges = [(first + i) * width / CELLS_PER_UNIT for i in range(len(counts) + 1)]
    return {"edges": edges, "counts": counts}
