"""Sensitivity to the size of the penalties: all λ of the lattice scaled (SPEC section 8)."""

from typing import Any

from herald_jax.audit.block_tables import BlockTables
from herald_jax.audit.staging import Mask
from herald_jax.audit.tables import Tables
from herald_jax.audit.trials import Trial
from herald_jax.manifest import Manifest
from herald_jax.manifest.contracts import ContractSet, stack, subset_name, subsets


class Scales:
    """Oracle-worst margins of the lattice's contracts on the common set, at every scale."""

    def __init__(self, manifest: Manifest, contracts: ContractSet) -> None:
        self._factors = manifest.lattice.scales
        self._operators = manifest.operators.primary
        self._names = [subset_name(chosen) for chosen in subsets(manifest.lattice.detectors)]
        lattice = contracts.take([contracts.index(name) for name in self._names])
        self._contracts = stack([lattice.scaled(factor) for factor in self._factors])

    def add(self, trials: dict[str, Trial], common: Mask, tables: BlockTables) -> None:
        """Count the common rows of a block."""
        for operator in self._operators:
            trial = trials[operator]
            selected, alike = trial.selected_under(self._contracts)
            key = ("scales", operator)
            tables.add_values(key, trial.block, selected.oracle_worst, alike, common)

    def report(self, tables: Tables) -> dict[str, Any]:
        """`{scale: {operator: {subset: {"asr", "mean_margin"}}}}`; no question, no entry."""
        found: dict[str, Any] = {f"{factor:g}": {} for factor in self._factors}
        for operator in self._operators:
            cells = iter(tables.columns(("scales", operator)))
            for factor in self._factors:
                figures = {name: next(cells, {"questions": 0}) for name in self._names}
                found[f"{factor:g}"][operator] = {
                    name: {"asr": cell["asr"], "mean_margin": cell["mean_margin"]}
                    for name, cell in figures.items()
                    if cell["questions"]
                }
        return found
