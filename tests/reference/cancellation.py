"""Cancellation: what a larger set of penalties pays back to an edit that a smaller one refuses."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from reference.cells import success, table
from reference.lattice import subset_name, subsets
from reference.operators import PRIMARY, Operator
from reference.pairs import Outcome
from reference.rewards import Contract
from reference.settings import DETECTORS, Settings


def steps(settings: Settings) -> Iterator[tuple[str, str, list[str]]]:
    """(from, to, detectors added): every edge of the lattice, and every subset to R_full."""
    ordered = [name for name in DETECTORS if name in settings.lattice]
    for subset in subsets(ordered):
        for added in ordered:
            if added not in subset:
                larger = [name for name in ordered if name in subset or name == added]
                yield subset_name(subset), subset_name(larger), [added]
        rest = [n for n in DETECTORS if n in settings.penalties and n not in subset]
        yield subset_name(subset), "R_full", rest


def cancellation(
    outcomes: dict[str, list[Outcome]],
    operators: dict[str, Operator],
    contracts: dict[str, Contract],
    settings: Settings,
) -> list[dict]:
    """One entry for each step and primary operator; `outcomes` hold the common set alone."""
    return [
        entry(source, target, added, outcomes[name], operators[name], contracts, settings)
        for source, target, added in steps(settings)
        for name in PRIMARY
    ]


def entry(
    source: str,
    target: str,
    added: Sequence[str],
    outcomes: Sequence[Outcome],
    operator: Operator,
    contracts: dict[str, Contract],
    settings: Settings,
) -> dict:
    pairs = readmitted = 0
    paid_by: Counter[str] = Counter()
    for outcome in outcomes:
        before = outcome.margins(contracts[source])
        after = outcome.margins(contracts[target])
        for edited, m_source, m_target in zip(outcome.pairs, before, after, strict=True):
            if not (math.isfinite(m_source) and math.isfinite(m_target)):
                continue
            pairs += 1
            if success(m_source, settings) or not success(m_target, settings):
                continue
            readmitted += 1
            for name in added:
                removed = outcome.original.flags[name] - edited.flags[name]
                if settings.penalties[name] * removed > 0:
                    paid_by[name] += 1
    return {
        "from": source,
        "to": target,
        "operator": operator.name,
        "pairs": pairs,
        "readmitted": readmitted,
        "paid_by": dict(paid_by),
        "strata": {
            name: strata(name, target, outcomes, contracts, settings)
            for name in added
            if name != operator.target
        },
    }


def strata(
    detector: str,
    target: str,
    outcomes: Iterable[Outcome],
    contracts: dict[str, Contract],
    settings: Settings,
) -> dict[str, dict[str, dict]]:
    """Cells under the larger contract, apart for originals on which the detector is true."""
    found: dict[str, dict[str, dict]] = {}
    for side, wanted in (("active", True), ("inactive", False)):
        rows = [o for o in outcomes if o.original.flags[detector] == wanted]
        cells = table(rows, {target: contracts[target]}, settings)
        found[side] = {selector: cells[selector][target] for selector in cells}
    return found
