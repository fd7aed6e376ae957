"""From the results of sections to the contents of `report.json` (SPEC section 12)."""

from collections.abc import Mapping, Sequence
from typing import Any

from herald_jax.audit import lattice
from herald_jax.audit.cancellation import Cancellation
from herald_jax.audit.counts import Counts, branch, exact_sum, leaf, merge
from herald_jax.audit.estimates import Estimator
from herald_jax.audit.generators import GENERATORS
from herald_jax.audit.histograms import report_margins
from herald_jax.audit.incidence import Incidence
from herald_jax.audit.keys import ORACLE_WORST, SELECTORS
from herald_jax.audit.operators import OPERATORS
from herald_jax.audit.scales import Scales
from herald_jax.audit.section import LAUNDERING, budget_generators
from herald_jax.audit.statuses import report_statuses
from herald_jax.audit.tables import Tables
from herald_jax.audit.utility import report_utility
from herald_jax.manifest import Manifest
from herald_jax.manifest.contracts import ContractSet
from herald_jax.pool.store import Entry


class Assembly:
    """A report on the sections that are done.

    Args:
        results: of these sections, in the order of their questions.
        manifest: settings.
        contracts: the contracts of the audit.
        scale: fixed point of the margins.
        external_base: whether the base reward is given as numbers.
        operator_fields: what each operator reads and writes.
    """

    def __init__(
        self,
        results: Sequence[Entry],
        manifest: Manifest,
        contracts: ContractSet,
        scale: float,
        *,
        external_base: bool,
        operator_fields: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._manifest = manifest
        self._contracts = contracts
        self._external = external_base
        self._operator_fields = operator_fields
        self._counts: Counts = {}
        for result in results:
            merge(self._counts, result.meta["counts"])
        self.tables = Tables(results, contracts.names, Estimator(manifest.statistics, scale))

    def contents(self, worst: list[dict[str, Any]]) -> dict[str, Any]:
        """Everything that is estimated or counted; `worst` are the worst attacks, written down."""
        manifest, tables, counts = self._manifest, self.tables, self._counts
        incidence = Incidence(manifest, branch(counts, "incidence"))
        rewards = {name: exact_sum(counts, "rewards", name) for name in self._contracts.names}
        found: dict[str, Any] = {
            "rows": leaf(counts, "rows"),
            "questions": leaf(counts, "questions"),
            "natural": incidence.natural(),
            "natural_by": incidence.natural_by(),
            "signal": incidence.signal(),
            "mean_reward": {name: total.mean() for name, total in rewards.items() if total.count},
            "operators": {name: self._operator(name) for name in manifest.operators.names},
            "common": {key: leaf(counts, "common", key) for key in ("rows", "questions")},
            "primary": {
                name: tables.table(("primary", name)) for name in manifest.operators.primary
            },
            "lattice": lattice.walk(tables, manifest),
            "certificate": lattice.certificate(tables, manifest),
            "cancellation": [],
            "scales": {},
            "nonfinite": dict(sorted(branch(counts, "nonfinite").items())),
        }
        if budget_generators(manifest, external_base=self._external):
            found["budgets"] = self._budgets()
        if found["rows"]:
            found |= self._over_rows(worst)
        return found

    def _over_rows(self, worst: list[dict[str, Any]]) -> dict[str, Any]:
        """Tables that are absent when no row is left."""
        sections, tables, counts = self._manifest.sections, self.tables, self._counts
        found: dict[str, Any] = {
            "histograms": report_margins(
                branch(counts, "margins"),
                self._manifest.operators.primary,
                self._contracts.names,
                sections.histogram_bins,
            ),
            "worst": worst,
        }
        if sections.cancellation:
            cancellation = Cancellation(
                self._manifest, self._contracts, branch(counts, "cancellation")
            )
            found["cancellation"] = cancellation.report(tables)
        if sections.scales:
            found["scales"] = Scales(self._manifest, self._contracts).report(tables)
        if sections.utility:
            found["utility"] = report_utility(branch(counts, "utility"), self._contracts.names)
        if LAUNDERING.name in self._manifest.operators.names:
            found["pools"] = {name: tables.table(("pools", name)) for name in sections.pools}
            if sections.split_by_model:
                whole = {"*": tables.table(("operators", LAUNDERING.name))}
                found["models"] = self._split("model") | whole
            if sections.split_by_pool:
                found["by_pool"] = self._split("pool")
        return found

    def _split(self, field: str) -> dict[str, Any]:
        values = self.tables.values_of(field)
        return {value: self.tables.table((field, value)) for value in values}

    def _operator(self, name: str) -> dict[str, Any]:
        operator = OPERATORS[name]
        return {
            "target": operator.target,
            "entails": list(operator.entails),
            "oracle": operator.oracle,
            "primary": name in self._manifest.operators.primary,
            **self._operator_fields[name],
            **report_statuses(branch(self._counts, "statuses"), name),
            **self.tables.table(("operators", name)),
        }

    def _budgets(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in budget_generators(self._manifest, external_base=self._external):
            if GENERATORS[name].oracle:
                key = ("budget", name, "all")
                found[name] = {"all": self.tables.table(key, (ORACLE_WORST,))}
            else:
                found[name] = {
                    str(k): self.tables.table(("budget", name, str(k)), SELECTORS)
                    for k in self._manifest.generators.budgets
                }
        return found
