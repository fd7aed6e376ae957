"""Which subsets of penalties were observed to suffice, and what certifies it (SPEC section 8).

Every subset is looked at: nothing is assumed monotone, since a further penalty can pay for an
attack.
"""

from typing import Any

from herald_jax.audit.keys import CERTIFICATE, CLOSED_CORPUS, ORACLE_WORST
from herald_jax.audit.operators import OPERATORS
from herald_jax.audit.tables import Tables
from herald_jax.manifest import Manifest
from herald_jax.manifest.contracts import subset_name, subsets
from herald_jax.types import DETECTORS


def walk(tables: Tables, manifest: Manifest) -> dict[str, list[str]]:
    """Sufficient and inclusion-minimal subsets.

    A subset is observed sufficient when all primary oracle-worst success rates are zero on a common
    set that is not empty, and minimal when besides no proper subset is sufficient.
    """
    sufficient = []
    for chosen in subsets(manifest.lattice.detectors):
        cells = [
            tables.cell(("primary", operator), ORACLE_WORST, subset_name(chosen))
            for operator in manifest.operators.primary
        ]
        if cells and all(cell["questions"] and cell["any_success"] == 0 for cell in cells):
            sufficient.append(chosen)
    minimal = [
        chosen for chosen in sufficient if not any(set(other) < set(chosen) for other in sufficient)
    ]
    return {
        "detectors": sorted(manifest.lattice.detectors, key=DETECTORS.index),
        "sufficient": [subset_name(chosen) for chosen in sufficient],
        "minimal": [subset_name(chosen) for chosen in minimal],
    }


def certified_by(manifest: Manifest) -> dict[str, str]:
    """For each detector of the lattice the first operator that switches it on, if one is tried."""
    found = {}
    for detector in sorted(manifest.lattice.detectors, key=DETECTORS.index):
        for name in OPERATORS:
            if name in manifest.operators.names and OPERATORS[name].target == detector:
                found[detector] = name
                break
    return found


def certificate(tables: Tables, manifest: Manifest) -> dict[str, dict[str, Any]]:
    """Largest base gain over the audited pairs that switch a detector on, against its λ.

    `candidates` says over what it holds: the pairs that the generator proposed, and under
    `closed_corpus` (where `exhaustive` was run) every replacement of the slot within the corpus.
    """
    found: dict[str, dict[str, Any]] = {}
    for detector, operator in certified_by(manifest).items():
        weight = float(getattr(manifest.penalties, detector))
        gain = tables.largest((CERTIFICATE, operator), ORACLE_WORST, "R0")
        if gain is None:
            continue
        entry = {
            "operator": operator,
            "candidates": "generator",
            "lambda": weight,
            **_verdict(gain, weight, manifest.statistics.tie_tolerance),
        }
        closed = tables.largest((CLOSED_CORPUS, operator), ORACLE_WORST, "R0")
        if closed is not None:
            entry["closed_corpus"] = _verdict(closed, weight, manifest.statistics.tie_tolerance)
        found[detector] = entry
    return found


def _verdict(gain: float, weight: float, tie_tolerance: float) -> dict[str, Any]:
    slack = weight - gain
    return {"max_base_gain": gain, "slack": slack, "holds": slack > tie_tolerance}
