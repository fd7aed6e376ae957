"""Why one more penalty can make a reward weaker: what it re-admits, who pays (SPEC section 8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.audit.contracts import ContractSet, subset_name, subsets
from herald_jax.audit.operators import OPERATORS
from herald_jax.audit.staging import Mask
from herald_jax.audit.tables import SELECTORS, Tables
from herald_jax.audit.trials import Trial
from herald_jax.kernels import cancellation as kernel
from herald_jax.manifest import Manifest
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
    """Counts over the blocks of an audit."""

    def __init__(self, manifest: Manifest, contracts: ContractSet) -> None:
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
        shape = (len(self._operators), len(self._steps))
        self._pairs = np.zeros(shape, np.int64)
        self._readmitted = np.zeros(shape, np.int64)
        self._paid = np.zeros((*shape, len(DETECTORS)), np.int64)

    def add(self, trials: dict[str, Trial], common: Mask, tables: Tables) -> None:
        """Count the common rows of a block, and their strata."""
        for i, operator in enumerate(self._operators):
            trial = trials[operator]
            found = trial.readmitted(common, self._device_steps)
            self._pairs[i] += np.asarray(found.pairs)
            self._readmitted[i] += np.asarray(found.readmitted)
            self._paid[i] += np.asarray(found.paid)
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
                "pairs": int(self._pairs[i, j]),
                "readmitted": int(self._readmitted[i, j]),
                "paid_by": {
                    name: int(count)
                    for name, count in zip(DETECTORS, self._paid[i, j], strict=True)
                    if count
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
            for j, step in enumerate(self._steps)
            for i, operator in enumerate(self._operators)
        ]


def _int32(numbers: list[int]) -> jax.Array:
    return jnp.asarray(np.array(numbers, np.int32))
