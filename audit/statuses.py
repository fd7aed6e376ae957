"""Denominators of every operator: what was left out, and why (SPEC section 5)."""

from typing import Any

import numpy as np

from herald_jax.audit.staging import Mask
from herald_jax.audit.trials import Trial
from herald_jax.types import DETECTORS

STATUSES = ("no_edit", "ineligible", "not_isolated", "isolated")
EDITS = ("edits", "eligible_edits", "isolated_edits")


class Statuses:
    """Counts by operator over the blocks of an audit."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}
        self._broke: dict[str, np.ndarray] = {}

    def add(self, operator: str, trial: Trial, rows: Mask) -> None:
        """Count some rows of a block."""
        found = trial.verdicts
        of_row = (found.edits, found.eligible_edits, found.isolated_edits)
        made, eligible, isolated = (np.asarray(part)[rows] for part in of_row)
        counts = self._counts.setdefault(operator, dict.fromkeys((*STATUSES, *EDITS, "rows"), 0))
        counts["rows"] += int(rows.sum())
        counts["no_edit"] += int((made == 0).sum())
        counts["ineligible"] += int(((made > 0) & (eligible == 0)).sum())
        counts["not_isolated"] += int(((eligible > 0) & (isolated == 0)).sum())
        counts["isolated"] += int((isolated > 0).sum())
        for name, part in zip(EDITS, (made, eligible, isolated), strict=True):
            counts[name] += int(part.sum())
        broke = np.asarray(found.broke)[:, rows].sum(axis=1)
        self._broke[operator] = self._broke.get(operator, np.zeros(len(DETECTORS), int)) + broke

    def report(self, operator: str) -> dict[str, Any]:
        """`status` of rows, `denominators` of rows and edits, and which flags broke isolation."""
        counts = self._counts.get(operator, dict.fromkeys((*STATUSES, *EDITS, "rows"), 0))
        broke = self._broke.get(operator, np.zeros(len(DETECTORS), int))
        return {
            "status": {name: counts[name] for name in STATUSES},
            "denominators": {name: counts[name] for name in ("rows", *EDITS)},
            "not_isolated_because": {
                name: int(count) for name, count in zip(DETECTORS, broke, strict=True) if count
            },
        }
