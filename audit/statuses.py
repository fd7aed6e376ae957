"""Denominators of every operator: what was left out, and why (SPEC section 5)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from herald_jax.audit.counts import Counts, bump, leaf
from herald_jax.audit.staging import Mask
from herald_jax.audit.trials import Trial
from herald_jax.types import DETECTORS

STATUSES = ("no_edit", "ineligible", "not_isolated", "isolated")
EDITS = ("edits", "eligible_edits", "isolated_edits")


def count_statuses(counts: Counts, operator: str, trial: Trial, rows: Mask) -> None:
    """Count some rows of a block."""
    found = trial.verdicts
    of_row = (found.edits, found.eligible_edits, found.isolated_edits)
    made, eligible, isolated = (np.asarray(part)[rows] for part in of_row)
    numbers = {
        "rows": rows.sum(),
        "no_edit": (made == 0).sum(),
        "ineligible": ((made > 0) & (eligible == 0)).sum(),
        "not_isolated": ((eligible > 0) & (isolated == 0)).sum(),
        "isolated": (isolated > 0).sum(),
        "edits": made.sum(),
        "eligible_edits": eligible.sum(),
        "isolated_edits": isolated.sum(),
    }
    for name, number in numbers.items():
        bump(counts, operator, name, by=number)
    broke = np.asarray(found.broke)[:, rows].sum(axis=1)
    for name, number in zip(DETECTORS, broke, strict=True):
        bump(counts, operator, "broke", name, by=number)


def report_statuses(counts: Mapping[str, Any], operator: str) -> dict[str, Any]:
    """`status` of rows, `denominators` of rows and edits, and which flags broke isolation."""
    broke = {name: leaf(counts, operator, "broke", name) for name in DETECTORS}
    return {
        "status": {name: leaf(counts, operator, name) for name in STATUSES},
        "denominators": {name: leaf(counts, operator, name) for name in ("rows", *EDITS)},
        "not_isolated_because": {name: count for name, count in broke.items() if count},
    }
