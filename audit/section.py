"""One section of an audit: every operator tried on its blocks, everything counted.

What it gives depends on nothing but the rows of the section, and results of sections are added up
in any order: integers, small lists of the worst attacks, and sums per question.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from herald_jax.audit import candidates as proposals
from herald_jax.audit import lattice
from herald_jax.audit.block_tables import BlockTables
from herald_jax.audit.cancellation import Cancellation
from herald_jax.audit.candidates import Candidates
from herald_jax.audit.counts import Counts, add_exactly, bump
from herald_jax.audit.examples import Worst
from herald_jax.audit.generators import GENERATORS
from herald_jax.audit.histograms import count_margins
from herald_jax.audit.incidence import Incidence, split_rows
from herald_jax.audit.keys import CERTIFICATE, CLOSED_CORPUS
from herald_jax.audit.operators import GENERATOR, OPERATORS
from herald_jax.audit.scales import Scales
from herald_jax.audit.selections import select
from herald_jax.audit.staging import Block, Mask, Setup, stage
from herald_jax.audit.statuses import count_statuses
from herald_jax.audit.trials import Trial, attempt
from herald_jax.audit.utility import count_utility
from herald_jax.kernels import programs
from herald_jax.manifest import Manifest
from herald_jax.pool.sections import Section

LAUNDERING = OPERATORS["citation_laundering"]
Arrays = dict[str, npt.NDArray[Any]]


def budget_generators(manifest: Manifest, *, external_base: bool) -> tuple[str, ...]:
    """Generators of the budget table that this audit can run."""
    if not manifest.sections.budgets or LAUNDERING.name not in manifest.operators.names:
        return ()
    names = manifest.generators.budget_generators
    if external_base:
        # Two candidates stand for all under a linear contract only (SPEC section 6).
        return tuple(name for name in names if not GENERATORS[name].oracle)
    return names


def wanted_candidates(manifest: Manifest, *, external_base: bool) -> dict[str, int]:
    """Visible generators in use, and the most candidates that each is asked for."""
    generators = manifest.generators
    wanted: dict[str, int] = {}
    if any(OPERATORS[name].offers == GENERATOR for name in manifest.operators.names):
        wanted[generators.primary] = generators.primary_k
    for name in budget_generators(manifest, external_base=external_base):
        if not GENERATORS[name].oracle:
            wanted[name] = max(wanted.get(name, 0), *generators.budgets)
    return wanted


class SectionAudit:
    """The audit of one section.

    Args:
        setup: what all sections share.
        section: the rows.
        progress: called with a generator's name, searches done and to do.
    """

    def __init__(
        self,
        setup: Setup,
        section: Section,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._setup = setup
        self._section = section
        self._manifest = setup.manifest
        self._external = setup.base is not None
        self._counts: Counts = {}
        self._tables = BlockTables(setup)
        self._worst = Worst(setup, section)
        self._incidence = Incidence(setup.manifest, self._tree("incidence"))
        self._cancellation = Cancellation(
            setup.manifest, setup.contracts, self._tree("cancellation")
        )
        self._scales = Scales(setup.manifest, setup.contracts)
        self._candidates = Candidates(
            section.rows,
            wanted_candidates(setup.manifest, external_base=self._external),
            setup.corpus,
            setup.pool.longest.candidates,
            progress,
        )

    def _tree(self, name: str) -> Counts:
        return self._counts.setdefault(name, {})

    def run(self, advance: Callable[[int], None] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """Arrays and a few words, from which the report is put together (`audit.assemble`).

        Args:
            advance: called with the rows that were worked off since.
        """
        for block in stage(self._setup, self._section):
            self._add(block)
            if advance is not None:
                advance(int(block.real.sum()))
        arrays, largest = self._tables.finish()
        examples, rows = self._worst.finish()
        return arrays | rows, {"counts": self._counts, "largest": largest, "examples": examples}

    def _add(self, block: Block) -> None:
        """Count one block in every table."""
        manifest, tables = self._manifest, self._tables
        rows = select(block, manifest.data.selection)
        self._count(block, rows)
        trials = {}
        for name in manifest.operators.names:
            trial = trials[name] = attempt(block, OPERATORS[name], self._candidates_of(name, block))
            count_statuses(self._tree("statuses"), name, trial, rows)
            tables.add(("operators", name), trial, rows)
            for contract, count in _nonfinite(trial, rows, self._setup.contracts.names).items():
                bump(self._counts, "nonfinite", contract, by=count)
        common = rows.copy()
        for name in manifest.operators.primary:
            common &= trials[name].isolated
        self._add_common(block, common, trials)
        if LAUNDERING.name in trials:
            self._add_laundering(block, rows, common, trials[LAUNDERING.name])

    def _candidates_of(self, operator: str, block: Block) -> npt.NDArray[np.int32] | None:
        if OPERATORS[operator].offers != GENERATOR:
            return None
        generators = self._manifest.generators
        return self._candidates.of_block(generators.primary, block, generators.primary_k)

    def _count(self, block: Block, rows: Mask) -> None:
        """Count what the log shows by itself."""
        bump(self._counts, "rows", by=rows.sum())
        bump(self._counts, "questions", by=rows.reshape(block.grouped).any(axis=1).sum())
        self._incidence.add(block, rows)
        names = self._setup.contracts.names
        for name, rewards in zip(names, block.rewards, strict=True):
            counted = rewards[rows].astype(np.float64)
            add_exactly(self._counts, "rewards", name, values=counted[np.isfinite(counted)])
        if self._manifest.sections.utility:
            count_utility(self._tree("utility"), names, block, rows)

    def _add_common(self, block: Block, common: Mask, trials: dict[str, Trial]) -> None:
        """Tables over the rows on which every primary operator has an isolated pair."""
        manifest, tables = self._manifest, self._tables
        bump(self._counts, "common", "rows", by=common.sum())
        questions = common.reshape(block.grouped).any(axis=1).sum()
        bump(self._counts, "common", "questions", by=questions)
        for name in manifest.operators.primary:
            tables.add(("primary", name), trials[name], common)
            count_margins(
                self._tree("margins"), self._setup.contracts.names, name, trials[name], common
            )
            self._worst.add(name, trials[name], common)
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
        for name in budget_generators(self._manifest, external_base=self._external):
            if GENERATORS[name].oracle:
                closed = attempt(block, proposals.closed_corpus(LAUNDERING, GENERATORS[name]))
                tables.add(("budget", name, "all"), closed, rows)
                tables.add((CLOSED_CORPUS, LAUNDERING.name), closed, common)
                continue
            most = max(self._manifest.generators.budgets)
            found = self._candidates.of_block(name, block, most)
            for k in self._manifest.generators.budgets:
                offered = found.copy()
                offered[k:] = -1
                tables.add(("budget", name, str(k)), attempt(block, LAUNDERING, offered), rows)


def _nonfinite(trial: Trial, rows: Mask, names: tuple[str, ...]) -> dict[str, int]:
    """Isolated pairs of some rows whose margin is not finite, by contract."""
    if trial.base_margin is None:
        return {}  # a linear contract always has a number
    found = np.asarray(programs.count_nonfinite(trial.margins, trial.verdicts.isolated))
    counts = found[:, rows].sum(axis=1)
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}
