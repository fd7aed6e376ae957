"""An audit from a pool to a report: trace the boundary, try every operator, estimate.

Everything is summed per question while blocks go by; what is kept grows with questions and tables,
not with rows.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import herald_jax
from herald_jax.audit import candidates as proposals
from herald_jax.audit import fields, lattice
from herald_jax.audit.base import BaseReward
from herald_jax.audit.cancellation import Cancellation
from herald_jax.audit.contracts import ContractSet, build_contracts
from herald_jax.audit.examples import Examples
from herald_jax.audit.generators import GENERATORS
from herald_jax.audit.histograms import Histograms
from herald_jax.audit.incidence import Incidence, split_rows
from herald_jax.audit.operators import GENERATOR, OPERATORS
from herald_jax.audit.report import SCHEMA, Report
from herald_jax.audit.scales import Scales
from herald_jax.audit.selections import select
from herald_jax.audit.staging import Block, Codes, Mask, Setup, prepare, stage
from herald_jax.audit.statuses import Statuses
from herald_jax.audit.tables import (
    CERTIFICATE,
    CLOSED_CORPUS,
    ORACLE_WORST,
    SELECTORS,
    Tables,
)
from herald_jax.audit.trials import Trial, attempt
from herald_jax.audit.utility import Utility
from herald_jax.data.blocks import group_blocks
from herald_jax.data.pool import Pool
from herald_jax.kernels import programs
from herald_jax.kernels.exact import ExactSum
from herald_jax.manifest import Manifest, manifest_dict, manifest_digest
from herald_jax.search import CorpusIndex

Progress = Callable[[str, int, int], None]
LAUNDERING = OPERATORS["citation_laundering"]


def run(
    pool: Pool,
    manifest: Manifest | None = None,
    *,
    base: BaseReward | None = None,
    block_rows: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit a pool.

    Args:
        pool: trajectories, corpus and labels (`data.load_pool`).
        manifest: settings; the defaults of SPEC.md when None.
        base: a reward that takes R0's place; None for the linear one of the manifest.
        block_rows: trajectories that are on the device at once; None chooses by the size of the
            pool. It changes no figure.
        progress: called with a stage, how much of it is done, and how much there is.

    Returns:
        The `Report`.

    Raises:
        BoundaryError: a visible-only operator or generator can reach gold labels; nothing has run.
        InputError: a question has more rollouts than sums are exact for.
    """
    audit = Audit(pool, manifest or Manifest(), base, block_rows, progress or _silent)
    return audit.report()


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total


class Audit:
    """One run."""

    def __init__(
        self,
        pool: Pool,
        manifest: Manifest,
        base: BaseReward | None,
        block_rows: int | None,
        progress: Progress,
    ) -> None:
        self._pool = pool
        self._manifest = manifest
        self._progress = progress
        self._contracts: ContractSet = build_contracts(manifest)
        generators = manifest.generators
        self._corpus = CorpusIndex(
            [(passage.title, passage.text) for passage in pool.passages],
            k1=generators.bm25_k1,
            b=generators.bm25_b,
            epsilon=generators.bm25_epsilon,
            variant=generators.bm25_variant,
        )
        self._setup: Setup = prepare(pool, manifest, self._contracts, base, block_rows)
        self._trace(base)
        self._tables = Tables(self._setup)
        self._statuses = Statuses()
        self._incidence = Incidence(manifest)
        self._cancellation = Cancellation(manifest, self._contracts)
        self._scales = Scales(manifest, self._contracts)
        self._utility = Utility(self._contracts.names)
        self._examples = Examples(self._setup)
        self._histograms = Histograms(self._contracts.names, manifest.sections.histogram_bins)
        self._rewards = [ExactSum() for _ in self._contracts.names]
        self._rows = 0
        self._questions = 0
        self._common: Counter[str] = Counter()
        self._nonfinite: Counter[str] = Counter()

    def _trace(self, base: BaseReward | None) -> None:
        """Read every part's fields off its jaxpr, before anything runs."""
        generators = self._manifest.generators
        most = max(generators.primary_k, *generators.budgets)
        used = {self._manifest.generators.primary, *self._budget_generators()}
        self._operator_fields = {
            name: fields.operator_fields(OPERATORS[name], self._setup.widths)
            for name in self._manifest.operators.names
        }
        self._generator_fields = {
            name: fields.generator_fields(GENERATORS[name], self._corpus, most, self._setup.widths)
            for name in GENERATORS
            if name in used
        }
        self._contract_fields = fields.contract_fields(
            self._contracts, None if base is None else base.reads
        )

    def _budget_generators(self) -> tuple[str, ...]:
        if not self._manifest.sections.budgets or LAUNDERING.name not in self._names():
            return ()
        names = self._manifest.generators.budget_generators
        if self._setup.base is not None:
            # Two candidates stand for all under a linear contract only (SPEC section 6).
            return tuple(name for name in names if not GENERATORS[name].oracle)
        return names

    def _names(self) -> tuple[str, ...]:
        return self._manifest.operators.names

    def report(self) -> Report:
        """Run, and put the report together."""
        self._propose()
        blocks = len(group_blocks(self._pool.rows.question, self._setup.block_rows))
        # A block's operators are steps of their own: with a small pool there is one block alone,
        # and the first call of each compiles.
        self._steps = blocks * (len(self._names()) + 2)
        self._step = 0
        for block in stage(self._setup):
            self._add(block)
        self._progress("auditing", self._steps, self._steps)
        keys = self._tables.keys()
        for done, key in enumerate(keys):
            self._progress("estimating", done, len(keys))
            self._tables.columns(key)
        found = self._assemble()
        self._progress("estimating", len(keys), len(keys))
        return Report(found)

    def _advance(self) -> None:
        self._progress("auditing", self._step, self._steps)
        self._step += 1

    def _propose(self) -> None:
        """Candidates of every visible generator in use, as many as its largest budget."""
        generators = self._manifest.generators
        wanted: dict[str, int] = {}
        if any(OPERATORS[name].offers == GENERATOR for name in self._names()):
            wanted[generators.primary] = generators.primary_k
        for name in self._budget_generators():
            if not GENERATORS[name].oracle:
                wanted[name] = max(wanted.get(name, 0), *generators.budgets)
        self._candidates: dict[str, Codes] = {}
        for name, k in wanted.items():

            def advance(done: int, of: int, name: str = name) -> None:
                self._progress(f"candidates ({name})", done, of)

            self._candidates[name] = proposals.propose(
                GENERATORS[name], self._pool, self._corpus, k, advance
            )

    def _candidates_of(self, block: Block) -> Codes | None:
        """Candidates of the primary generator for a block."""
        generators = self._manifest.generators
        if generators.primary not in self._candidates:
            return None
        found = self._candidates[generators.primary][:, : generators.primary_k]
        return proposals.of_block(found, block)

    def _add(self, block: Block) -> None:
        """Count one block in every table."""
        manifest, tables = self._manifest, self._tables
        rows = select(block, manifest.data.selection)
        self._count(block, rows)
        trials = {}
        for name in self._names():
            self._advance()
            trial = trials[name] = attempt(block, OPERATORS[name], self._candidates_of(block))
            self._statuses.add(name, trial, rows)
            tables.add(("operators", name), trial, rows)
            self._nonfinite.update(_nonfinite(trial, rows, self._contracts.names))
        self._advance()
        common = rows.copy()
        for name in manifest.operators.primary:
            common &= trials[name].isolated
        self._add_common(block, common, trials)
        self._advance()
        if LAUNDERING.name in trials:
            self._add_laundering(block, rows, common, trials[LAUNDERING.name])

    def _count(self, block: Block, rows: Mask) -> None:
        self._rows += int(rows.sum())
        self._questions += int(rows.reshape(block.grouped).any(axis=1).sum())
        self._incidence.add(block, rows)
        for total, rewards in zip(self._rewards, block.rewards, strict=True):
            counted = rewards[rows].astype(np.float64)
            total.add(counted[np.isfinite(counted)])
        if self._manifest.sections.utility:
            self._utility.add(block, rows)

    def _add_common(self, block: Block, common: Mask, trials: dict[str, Trial]) -> None:
        """Tables over the rows on which every primary operator has an isolated pair."""
        manifest, tables = self._manifest, self._tables
        self._common["rows"] += int(common.sum())
        self._common["questions"] += int(common.reshape(block.grouped).any(axis=1).sum())
        for name in manifest.operators.primary:
            tables.add(("primary", name), trials[name], common)
            self._histograms.add(name, trials[name], common)
            self._examples.add(name, trials[name], common)
        for name in lattice.certified_by(manifest).values():
            tables.add((CERTIFICATE, name), trials[name], common)
        if manifest.sections.cancellation:
            self._cancellation.add(trials, common, tables)
        if manifest.sections.scales:
            self._scales.add(trials, common, tables)

    def _add_laundering(self, block: Block, rows: Mask, common: Mask, trial: Trial) -> None:
        """Tables over other rows, or with other candidates, of laundering alone."""
        sections, tables = self._manifest.sections, self._tables
        for selection in sections.pools:
            tables.add(("pools", selection), trial, select(block, selection))
        splits = (("model", sections.split_by_model), ("pool", sections.split_by_pool))
        for split, wanted in splits:
            if wanted:
                for value, part in split_rows(block, rows, split):
                    tables.add((split, value), trial, part)
        for name in self._budget_generators():
            if GENERATORS[name].oracle:
                closed = attempt(block, proposals.closed_corpus(LAUNDERING, GENERATORS[name]))
                tables.add(("budget", name, "all"), closed, rows)
                tables.add((CLOSED_CORPUS, LAUNDERING.name), closed, common)
                continue
            for k in self._manifest.generators.budgets:
                offered = proposals.of_block(self._candidates[name], block)
                offered[k:] = -1
                tables.add(("budget", name, str(k)), attempt(block, LAUNDERING, offered), rows)

    def _assemble(self) -> dict[str, Any]:
        manifest, tables, pool = self._manifest, self._tables, self._pool
        found: dict[str, Any] = {
            "schema": SCHEMA,
            "herald_jax": herald_jax.__version__,
            "manifest": manifest_dict(manifest),
            "manifest_digest": manifest_digest(manifest),
            "inputs": pool.inputs,
            "corpus": {"passages": len(pool.passages)},
            "rows": self._rows,
            "questions": self._questions,
            "set_aside": pool.set_aside,
            "skipped": [
                {"file": f.file, "line": f.line, "field": f.field, "code": f.code}
                for f in pool.skipped
            ],
            "natural": self._incidence.natural(),
            "natural_by": self._incidence.natural_by(),
            "signal": self._incidence.signal(),
            "mean_reward": {
                name: total.mean()
                for name, total in zip(self._contracts.names, self._rewards, strict=True)
                if total.count
            },
            "contracts": self._described_contracts(),
            "generators": self._described_generators(),
            "operators": {name: self._operator(name) for name in self._names()},
            "common": {key: self._common[key] for key in ("rows", "questions")},
            "primary": {
                name: tables.table(("primary", name)) for name in manifest.operators.primary
            },
            "lattice": lattice.walk(tables, manifest),
            "certificate": lattice.certificate(tables, manifest),
            "cancellation": [],
            "scales": {},
            "nonfinite": dict(sorted(self._nonfinite.items())),
        }
        if self._budget_generators():
            found["budgets"] = self._budgets()
        if self._rows:
            found |= self._tables_over_rows()
        return found

    def _tables_over_rows(self) -> dict[str, Any]:
        """Tables that are absent when no row is left."""
        sections, tables = self._manifest.sections, self._tables
        found: dict[str, Any] = {
            "histograms": self._histograms.report(),
            "worst": self._examples.report(self._candidates_of),
        }
        if sections.cancellation:
            found["cancellation"] = self._cancellation.report(tables)
        if sections.scales:
            found["scales"] = self._scales.report(tables)
        if sections.utility:
            found["utility"] = self._utility.report()
        if LAUNDERING.name in self._names():
            found["pools"] = {name: tables.table(("pools", name)) for name in sections.pools}
            if sections.split_by_model:
                whole = {"*": tables.table(("operators", LAUNDERING.name))}
                found["models"] = self._split("model") | whole
            if sections.split_by_pool:
                found["by_pool"] = self._split("pool")
        return found

    def _split(self, field: str) -> dict[str, Any]:
        values = self._tables.values_of(field)
        return {value: self._tables.table((field, value)) for value in values}

    def _operator(self, name: str) -> dict[str, Any]:
        operator = OPERATORS[name]
        return {
            "target": operator.target,
            "entails": list(operator.entails),
            "oracle": operator.oracle,
            "primary": name in self._manifest.operators.primary,
            **self._operator_fields[name],
            **self._statuses.report(name),
            **self._tables.table(("operators", name)),
        }

    def _budgets(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self._budget_generators():
            if GENERATORS[name].oracle:
                key = ("budget", name, "all")
                found[name] = {"all": self._tables.table(key, (ORACLE_WORST,))}
            else:
                found[name] = {
                    str(k): self._tables.table(("budget", name, str(k)), SELECTORS)
                    for k in self._manifest.generators.budgets
                }
        return found

    def _described_generators(self) -> dict[str, Any]:
        settings = self._manifest.generators
        found = {}
        for name, reads in self._generator_fields.items():
            budget = name in self._budget_generators()
            found[name] = {
                "role": "primary" if name == settings.primary else "budget",
                "k": settings.primary_k if name == settings.primary else None,
                "budgets": (["all"] if GENERATORS[name].oracle else list(settings.budgets))
                if budget
                else [],
                "oracle": GENERATORS[name].oracle,
                "reads": reads,
            }
        return found

    def _described_contracts(self) -> dict[str, Any]:
        return {
            name: {
                **self._contracts.describe(row, self._setup.base is not None),
                "reads": reads,
                "oracle": any(field in fields.ORACLE_FIELDS for field in reads),
            }
            for row, (name, reads) in enumerate(
                zip(self._contracts.names, self._contract_fields, strict=True)
            )
        }


def _nonfinite(trial: Trial, rows: Mask, names: tuple[str, ...]) -> dict[str, int]:
    """Isolated pairs of some rows whose margin is not finite, by contract."""
    if trial.base_margin is None:
        return {}  # a linear contract always has a number
    found = np.asarray(programs.count_nonfinite(trial.margins, trial.verdicts.isolated))
    counts = found[:, rows].sum(axis=1)
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}
