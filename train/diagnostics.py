"""Does a sparse penalty reach the optimiser at all? Counted every update, told in plain words.

For each detector: rollouts on which it is true, groups that hold one, groups in which it is
constant and so subtracted away, the mean square λ² p (1 - p) of its centred penalty, groups whose
advantages it changed (SPEC section 10). All counts add up over a run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from herald_jax.kernels.groups import Signal
from herald_jax.types import DETECTORS

COUNTS = ("groups", "rows", "holding", "constant", "changed", "mean_square")


@dataclass(slots=True)
class DetectorSignals:
    """Sums over updates.

    Attributes:
        penalties: λ of each detector in the reward.
        sums: detector -> count -> sum.
    """

    penalties: Mapping[str, float]
    sums: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in DETECTORS:
            self.sums.setdefault(name, dict.fromkeys(COUNTS, 0))

    def add(self, found: Signal) -> dict[str, float]:
        """Add those of an update; its numbers for the log."""
        numbers = {}
        for count in COUNTS:
            values = np.asarray(getattr(found, count)).tolist()
            for name, value in zip(DETECTORS, values, strict=True):
                self.sums[name][count] += value
                if count != "groups":
                    numbers[f"signal/{name}/{count}"] = value
        return numbers

    def lines(self) -> list[str]:
        """What each detector did to training, in words."""
        return [tell(name, self.penalties.get(name, 0.0), self.sums[name]) for name in DETECTORS]


def tell(name: str, penalty: float, sums: Mapping[str, float]) -> str:
    """One detector in one sentence: absent from the rollouts, erased by the group, or felt."""
    groups, rows = int(sums["groups"]), int(sums["rows"])
    holding, constant = int(sums["holding"]), int(sums["constant"])
    changed = int(sums["changed"])
    seen = f"{rows:,} rollouts, {holding:,} of {groups:,} groups"
    if groups == 0:
        return f"{name}: not measured, no group yet"
    if rows == 0:
        return f"{name}: no signal in the rollouts: true on none of {groups:,} groups"
    if penalty == 0:
        return f"{name}: not paid (λ = 0); true on {seen}"
    if changed == 0 and holding and constant == groups:
        return (
            f"{name}: erased by group normalisation: true on {seen}, and in each of them on every "
            "rollout, so that the penalty is subtracted with the mean"
        )
    erased = holding - (groups - constant)
    return (
        f"{name}: true on {seen}; constant and so erased in {erased:,} of these groups, "
        f"changed the advantages of {changed:,}"
    )
