"""An audit from a pool to a report: trace the boundary, work section by section, estimate.

A section's results go to the pool's store as soon as they are there, under the digest of all that
they depend on: what an interrupted audit had finished is found again. Nothing that is kept in
memory grows with rows.
"""

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import herald_jax
from herald_jax.audit import fields
from herald_jax.audit.assemble import Assembly
from herald_jax.audit.base import BaseReward
from herald_jax.audit.examples import report_worst
from herald_jax.audit.generators import GENERATORS
from herald_jax.audit.operators import OPERATORS
from herald_jax.audit.partial import (
    Beginning,
    section_key,
    section_name,
    write_beginning,
)
from herald_jax.audit.report import SCHEMA, Report
from herald_jax.audit.section import SectionAudit, budget_generators, wanted_candidates
from herald_jax.audit.staging import Setup, prepare
from herald_jax.data.ahead import ahead
from herald_jax.manifest import Manifest, manifest_dict, manifest_digest
from herald_jax.manifest.contracts import build_contracts
from herald_jax.pool.pool import Pool
from herald_jax.pool.sections import Section, cut
from herald_jax.pool.store import Arrays, Entry
from herald_jax.pool.wire import entry_from_bytes, entry_to_bytes

Progress = Callable[[str, int, int], None]
# Tables of a section times its questions are kept below this, whatever the report holds.
SECTION_ROWS = 1 << 17
# Raised when results of sections come to mean something else.
VERSION = 1


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
        pool: trajectories, corpus and labels (`pool.load.load_pool`).
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
        HeraldError: the pool's store cannot be written.
    """
    return Audit(pool, manifest or Manifest(), base, block_rows, progress or _silent).report()


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
        self._setup: Setup = prepare(pool, manifest, build_contracts(manifest), base, block_rows)
        self._base = base
        self._trace()
        rows = max(SECTION_ROWS // self._setup.block_rows, 1) * self._setup.block_rows
        self._sections = pool.sections(cut(pool.counts, rows))
        self._key = self._digest()
        write_beginning(pool.store, self._beginning())

    def _trace(self) -> None:
        """Read every part's fields off its jaxpr, before anything runs."""
        setup, manifest = self._setup, self._manifest
        generators = manifest.generators
        most = max(generators.primary_k, *generators.budgets)
        external = self._base is not None
        budget = budget_generators(manifest, external_base=external)
        used = {*wanted_candidates(manifest, external_base=external), *budget}
        self._operator_fields = {
            name: fields.operator_fields(OPERATORS[name], setup.widths)
            for name in manifest.operators.names
        }
        self._generators = {
            name: {
                "role": "primary" if name == generators.primary else "budget",
                "k": generators.primary_k if name == generators.primary else None,
                "budgets": (["all"] if GENERATORS[name].oracle else list(generators.budgets))
                if name in budget
                else [],
                "oracle": GENERATORS[name].oracle,
                **({"longest": self._pool.longest.candidates} if name == "stored" else {}),
                "reads": fields.generator_fields(
                    GENERATORS[name], setup.corpus, most, setup.widths
                ),
            }
            for name in GENERATORS
            if name in used
        }
        contract_fields = fields.contract_fields(
            setup.contracts, None if self._base is None else self._base.reads
        )
        self._contracts = {
            name: {
                **setup.contracts.describe(row, external),
                "reads": reads,
                "oracle": any(field in fields.ORACLE_FIELDS for field in reads),
            }
            for row, (name, reads) in enumerate(
                zip(setup.contracts.names, contract_fields, strict=True)
            )
        }

    def _digest(self) -> str:
        """What the results of a section depend on."""
        settings: dict[str, Any] = manifest_dict(self._manifest)
        for later in ("statistics.replicates", "statistics.seed", "statistics.level"):
            section, name = later.split(".")
            settings[section].pop(name)  # these only matter once all sections are done
        parts = [
            VERSION,
            herald_jax.__version__,
            settings,
            self._pool.key,
            self._pool.inputs,
            self._sections.bounds.tolist(),
            self._setup.scale,
        ]
        if self._base is not None:
            parts.append(uuid.uuid4().hex)  # code has no digest: its results are its own
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _beginning(self) -> Beginning:
        """What another process needs to report on the sections that are done."""
        return Beginning(
            manifest=manifest_dict(self._manifest),
            described=self._described(),
            scale=self._setup.scale,
            external_base=self._base is not None,
            operator_fields=self._operator_fields,
            key=self._key,
            rows=[self._sections.rows(number) for number in range(len(self._sections))],
        )

    def report(self) -> Report:
        """Work what is left of the sections, and put the report together."""
        self._work()
        results = [self._result(number) for number in range(len(self._sections))]
        whole = [result for result in results if result is not None]
        assert len(whole) == len(results)
        assembly = Assembly(
            whole,
            self._manifest,
            self._setup.contracts,
            self._setup.scale,
            external_base=self._base is not None,
            operator_fields=self._operator_fields,
        )
        keys = sorted(assembly.tables.keys())
        peers = self._pool.peers
        mine = keys[peers.index :: peers.count]
        for done, key in enumerate(mine):
            self._progress("estimating", done * peers.count, len(keys))
            assembly.tables.columns(key)
        assembly.tables.share(peers)
        contents = assembly.contents(report_worst(whole, self._setup, None))
        self._progress("estimating", len(keys), len(keys))
        return Report(self._described() | contents)

    def _work(self) -> None:
        """Work every section that no process has finished."""
        total, peers = self._pool.n_rows, self._pool.peers
        numbers = range(len(self._sections))
        have = np.array([self._result(at, check=True) is not None for at in numbers], bool)
        everyone = np.stack([np.frombuffer(p, bool) for p in peers.gather(have.tobytes())])
        left = np.flatnonzero(~everyone.any(axis=0)).tolist()
        done = total - sum(map(self._sections.rows, left))
        self._progress("auditing", done, total)

        def advance(rows: int) -> None:
            nonlocal done
            done += rows * peers.count  # the others work as fast
            self._progress("auditing", min(done, total), total)

        for number, section in self._load(left):
            arrays, meta = SectionAudit(self._setup, section, self._search_progress).run(advance)
            self._put(number, arrays, meta)
        self._progress("auditing", total, total)
        self._share_results()

    def _load(self, left: list[int]) -> Iterator[tuple[int, Section]]:
        """The sections that fall to this process, each loaded while the one before is worked."""
        peers = self._pool.peers
        if peers.count == 1:
            yield from zip(left, ahead(map(self._sections.load, left)), strict=True)
            return
        # A collective may not wait for another one in a second thread: no section ahead here.
        for first in range(0, len(left), peers.count):
            turn = left[first : first + peers.count]
            section = self._sections.share([*turn, *[None] * (peers.count - len(turn))])
            if section is not None:
                yield turn[peers.index], section

    def _share_results(self) -> None:
        """Give every process the results of all."""
        peers = self._pool.peers
        if peers.count == 1:
            return
        numbers = range(len(self._sections))
        have = np.array([self._result(at) is not None for at in numbers], bool)
        everyone = np.stack([np.frombuffer(p, bool) for p in peers.gather(have.tobytes())])
        for number in np.flatnonzero(~everyone.all(axis=0)).tolist():
            holder = int(everyone[:, number].argmax())
            mine = self._result(number) if peers.index == holder else None
            parts = peers.gather(b"" if mine is None else entry_to_bytes(mine))
            if self._result(number) is None:
                arrays, meta = entry_from_bytes(parts[holder])
                self._put(number, arrays, meta)

    def _put(self, number: int, arrays: Arrays, meta: dict[str, Any]) -> None:
        key = section_key(self._key, number)
        self._pool.store.put(section_name(number), key, arrays, meta)

    def _search_progress(self, name: str, done: int, of: int) -> None:
        """Searches of one section; shown where it is the only one, since then they are the wait."""
        if len(self._sections) == 1:
            self._progress(f"candidates ({name})", done, of)

    def _result(self, number: int, *, check: bool = False) -> Entry | None:
        key = section_key(self._key, number)
        return self._pool.store.get(section_name(number), key, check=check)

    def _described(self) -> dict[str, Any]:
        """What the report says of its settings and inputs."""
        pool = self._pool
        return {
            "schema": SCHEMA,
            "herald_jax": herald_jax.__version__,
            "manifest": manifest_dict(self._manifest),
            "manifest_digest": manifest_digest(self._manifest),
            "inputs": pool.inputs,
            "corpus": {"passages": len(pool.passages)},
            "set_aside": pool.set_aside,
            "skipped": [
                {"file": f.file, "line": f.line, "field": f.field, "code": f.code}
                for f in pool.skipped
            ],
            "contracts": self._contracts,
            "generators": self._generators,
        }
