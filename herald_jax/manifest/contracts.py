"""The reward contracts of an audit, by name, as one matrix (SPEC section 4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from herald_jax.kernels.rewards import Contracts, told_apart
from herald_jax.manifest import Manifest
from herald_jax.types import DETECTORS, FEATURES, SYMBOLS

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ContractSet:
    """J contracts: R = features · φ − penalties · d, plus the base reward where `base`.

    Attributes:
        names: J names.
        features: float64 [J, F], without the weights of the base reward.
        penalties: float64 [J, D], λ of each detector.
        base: bool [J].
        base_features: float64 [F], the base reward R0 when it is linear.
    """

    names: tuple[str, ...]
    features: Array
    penalties: Array
    base: npt.NDArray[np.bool_]
    base_features: Array

    def index(self, name: str) -> int:
        """Row of a contract."""
        return self.names.index(name)

    def take(self, rows: list[int]) -> "ContractSet":
        """Some of the contracts."""
        return ContractSet(
            tuple(self.names[row] for row in rows),
            self.features[rows],
            self.penalties[rows],
            self.base[rows],
            self.base_features,
        )

    def told_apart(
        self, columns: tuple[str, ...], external_base: bool
    ) -> tuple["ContractSet", npt.NDArray[np.intp]]:
        """The contracts that differ where edits can change something at all.

        Args:
            columns: features and detectors that change (`rewards.COLUMNS`).
            external_base: a base reward is given as numbers, which change as well.

        Returns:
            The first of each kind, and which of them stands for each contract, int [J].
        """
        rows, alike = told_apart(self.weights(external_base), self.base & external_base, columns)
        return self.take(rows), alike

    def scaled(self, factor: float) -> "ContractSet":
        """The same contracts with every λ multiplied."""
        return ContractSet(
            self.names, self.features, self.penalties * factor, self.base, self.base_features
        )

    def weights(self, external_base: bool) -> Array:
        """The matrix W: float64 [J, X]; a linear base is folded in, an external one is not."""
        own = self.features
        if not external_base:
            own = own + self.base[:, None] * self.base_features
        return np.concatenate([own, -self.penalties], axis=1)

    def device(self, external_base: bool) -> Contracts:
        """The contracts as the kernels take them."""
        share = self.base if external_base else np.zeros(len(self.names))
        return Contracts(
            weights=jnp.asarray(self.weights(external_base).astype(np.float32)),
            base=jnp.asarray(share.astype(np.float32)),
        )

    def describe(self, row: int, external_base: bool) -> Mapping[str, Any]:
        """What a contract pays for, for the report; `base` where a reward given as numbers does."""
        linear = self.weights(external_base)[row, : len(FEATURES)]
        found: dict[str, Any] = {
            "weights": {k: float(w) for k, w in zip(FEATURES, linear, strict=True) if w},
            "penalties": {
                k: float(w) for k, w in zip(DETECTORS, self.penalties[row], strict=True) if w
            },
        }
        if external_base and self.base[row]:
            found["base"] = 1.0
        return found


def stack(sets: list[ContractSet]) -> ContractSet:
    """Several sets, one after the other."""
    return ContractSet(
        tuple(name for part in sets for name in part.names),
        np.concatenate([part.features for part in sets]),
        np.concatenate([part.penalties for part in sets]),
        np.concatenate([part.base for part in sets]),
        sets[0].base_features,
    )


def subset_name(detectors: tuple[str, ...]) -> str:
    """`R0`, `R[U]`, `R[U+L]`, ..."""
    letters = "+".join(SYMBOLS.get(name, name) for name in detectors)
    return f"R[{letters}]" if letters else "R0"


def subsets(detectors: tuple[str, ...]) -> list[tuple[str, ...]]:
    """All subsets of the lattice's detectors, smaller before larger, names in `DETECTORS` order."""
    ordered = sorted(detectors, key=DETECTORS.index)
    return [chosen for size in range(len(ordered) + 1) for chosen in combinations(ordered, size)]


def build_contracts(manifest: Manifest) -> ContractSet:
    """Every contract that an audit reports: the built-in ones, the lattice, the user's own."""
    reward = manifest.reward
    base = np.array([getattr(reward, name) for name in FEATURES])
    lam = {name: getattr(manifest.penalties, name) for name in DETECTORS}
    rows: dict[str, tuple[dict[str, float], dict[str, float], bool]] = {
        "outcome_only": ({"answer": reward.answer}, {}, False),
        "outcome_cost": ({"answer": reward.answer, "tool_calls": reward.tool_calls}, {}, False),
    }
    for chosen in subsets(manifest.lattice.detectors):
        rows[subset_name(chosen)] = ({}, {name: lam[name] for name in chosen}, True)
    rows["R_full"] = ({}, lam, True)
    for name, own in manifest.contracts.items():
        rows[name] = (dict(own.weights), dict(own.penalties), own.base)
    return ContractSet(
        names=tuple(rows),
        features=np.array([[w.get(k, 0.0) for k in FEATURES] for w, _, _ in rows.values()]),
        penalties=np.array([[p.get(k, 0.0) for k in DETECTORS] for _, p, _ in rows.values()]),
        base=np.array([b for _, _, b in rows.values()]),
        base_features=base,
    )
