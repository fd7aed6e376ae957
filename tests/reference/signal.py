"""Group-normalised advantages, and how often a penalty reaches them."""

import math
from collections.abc import Iterable, Sequence

from reference.cells import mean
from reference.pools import by_question
from reference.rewards import Judged
from reference.settings import DETECTORS, Settings

EPSILON = 1e-6  # added to the standard deviation
NO_SPREAD = 1e-6  # rewards that span no more carry no signal
DIFFERENT = 1e-6  # advantages further apart than this differ


def advantages(rewards: Sequence[float | None]) -> list[float]:
    """(r − mean) / (sd + ε), sd with n − 1, within one group.

    A reward that is None or not finite is left out of mean and sd and gets 0. A group with fewer
    than two others, or whose rewards span at most NO_SPREAD, gives exactly 0 to all.
    """
    known = [r for r in rewards if r is not None and math.isfinite(r)]
    if len(known) < 2 or max(known) - min(known) <= NO_SPREAD:
        return [0.0] * len(rewards)
    centre = mean(known)
    sd = math.sqrt(math.fsum((r - centre) ** 2 for r in known) / (len(known) - 1))
    return [
        (r - centre) / (sd + EPSILON) if r is not None and math.isfinite(r) else 0.0
        for r in rewards
    ]


def mean_square_contribution(flags: Sequence[bool], penalty: float) -> float:
    """Mean of (λ (ℓ − mean ℓ))² in a group, which is λ² ℓ̄ (1 − ℓ̄)."""
    centre = sum(flags) / len(flags)
    return penalty**2 * centre * (1 - centre)


def signal(
    groups: Iterable[tuple[Sequence[float], Sequence[bool]]], penalty: float
) -> dict[str, int]:
    """Counts over groups of (rewards without the penalty, detector)."""
    counts = dict.fromkeys(
        ("rows", "rows_on", "groups", "groups_on", "constant", "changed", "unchanged"), 0
    )
    for rewards, flags in groups:
        without = advantages(rewards)
        penalised = [r - penalty * flag for r, flag in zip(rewards, flags, strict=True)]
        pairs = zip(advantages(penalised), without, strict=True)
        changed = any(abs(a - b) > DIFFERENT for a, b in pairs)
        counts["rows"] += len(rewards)
        counts["rows_on"] += sum(flags)
        counts["groups"] += 1
        counts["groups_on"] += any(flags)
        counts["constant"] += all(flags) or not any(flags)
        counts["changed"] += changed
        counts["unchanged"] += not changed
    return counts


def signal_of_rows(rows: Iterable[Judged], settings: Settings) -> dict[str, dict[str, int]]:
    """Of each detector that has a penalty, beside R0, a question's rollouts being its group."""
    grouped = by_question(rows)
    found = {}
    for detector in DETECTORS:
        if detector in settings.penalties:
            groups = [
                ([row.base["R0"] for row in group], [row.flags[detector] for row in group])
                for group in grouped
            ]
            found[detector] = signal(groups, settings.penalties[detector])
    return found
