"""Why one more penalty can make a reward weaker: what it re-admits, who pays (SPEC section 8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.audit.block_tables import BlockTables
from herald_jax.audit.counts import Counts, bump, leaf
from herald_jax.audit.keys import SELECTORS
from herald_jax.audit.operators import OPERATORS
from herald_jax.audit.staging import Mask
from herald_jax.audit.tables import Tables
from herald_jax.audit.trials import Trial
from herald_jax.kernels import cancellation as kernel
from herald_jax.manifest import Manifest
from herald_jax.manifest.contracts import ContractSet, subset_name, subsets
from herald_jax.types import DETECTORS


@dataclass(frozen=True)
class Step:
    """From a contract to one with more penalties."""

    start: str
    end: str
    added: tuple[str, ...]


def steps(manifest: Manifest) -> list[Step]:
    """Every edge of the lattice, and every subset to `R_full`."""
    return list(_steps(manifest))


def _steps(manifest: Manifest) -> Iterator[Step]:
    full = tuple(name for name in DETECTORS if getattr(manifest.penalties, name))
    lattice = manifest.lattice.detectors
    for chosen in subsets(lattice):
        for added in sorted(set(lattice) - set(chosen), key=DETECTORS.index):
            larger = tuple(name for name in DETECTORS if name in {*chosen, added})
            yield Step(subset_name(chosen), subset_name(larger), (added,))
        rest = tuple(name for name in full if name not in chosen)
        # A lattice may hold a detector whose λ is 0: then R_full is no superset of that subset.
        if set(chosen) <= set(full):
            yield Step(subset_name(chosen), "R_full", rest)


class Cancellation:
    """Counts of re-admitted pairs.

    Args:
        manifest: the lattice and its penalties.
        contracts: the contracts of the audit.
        counts: what was counted so far, added to in place.
    """

    def __init__(self, manifest: Manifest, contracts: ContractSet, counts: Counts) -> None:
        self._counts = counts
        self._steps = steps(manifest)
        self._operators = manifest.operators.primary
        self._watched = sorted(
            {name for step in self._steps for name in step.added}, key=DETECTORS.index
        )
        lam = [getattr(manifest.penalties, name) for name in DETECTORS]
        self._device_steps = kernel.Steps(
            start=_int32([contracts.index(step.start) for step in self._steps]),
            end=_int32([contracts.index(step.end) for step in self._steps]),
            added=jnp.asarray(
                np.array(
                    [
                        [
                            weight if name in step.added else 0.0
                            for name, weight in zip(DETECTORS, lam, strict=True)
                        ]
                        for step in self._steps
                    ],
                    np.float32,
                )
            ),
        )

    def add(self, trials: dict[str, Trial], common: Mask, tables: BlockTables) -> None:
        """Count the common rows of a block, and their strata."""
        for operator in self._operators:
            trial = trials[operator]
            found = trial.readmitted(common, self._device_steps)
            parts = (np.asarray(part) for part in (found.pairs, found.readmitted, found.paid))
            for step, pairs, readmitted, paid in zip(self._steps, *parts, strict=True):
                at = (operator, f"{step.start} > {step.end}")
                bump(self._counts, *at, "pairs", by=pairs)
                bump(self._counts, *at, "readmitted", by=readmitted)
                for detector, count in zip(DETECTORS, paid, strict=True):
                    bump(self._counts, *at, "paid", detector, by=count)
            for name in self._watched:
                if name == OPERATORS[operator].target:
                    continue
                active = trial.block.flags[DETECTORS.index(name)]
                tables.add(("stratum", operator, name, "active"), trial, common & active)
                tables.add(("stratum", operator, name, "inactive"), trial, common & ~active)

    def report(self, tables: Tables) -> list[dict[str, Any]]:
        """One entry for each step and primary operator."""
        return [
            {
                "from": step.start,
                "to": step.end,
                "operator": operator,
                "pairs": self._count(operator, step, "pairs"),
                "readmitted": self._count(operator, step, "readmitted"),
                "paid_by": {
                    name: count
                    for name in DETECTORS
                    if (count := self._count(operator, step, "paid", name))
                },
                "strata": {
                    name: {
                        part: {
                            selector: tables.cell(
                                ("stratum", operator, name, part), selector, step.end
                            )
                            for selector in SELECTORS
                        }
                        for part in ("active", "inactive")
                    }
                    for name in step.added
                    if name != OPERATORS[operator].target
                },
            }
            for step in self._steps
            for operator in self._operators
        ]

    def _count(self, operator: str, step: Step, *kind: str) -> int:
        return leaf(self._counts, operator, f"{step.start} > {step.end}", *kind)


def _int32(numbers: list[int]) -> jax.Array:
    return jnp.asarray(np.array(numbers, np.int32))
