"""The tables of a report: which rows each is over, and their cells (SPEC sections 9 and 12).

Sums per question lie with the results of the sections; a table is put together when its cells are
wanted, and dropped again, so that memory holds one table at a time.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from herald_jax.audit.block_tables import PARTS
from herald_jax.audit.estimates import EMPTY, Cell, Estimator, Tally
from herald_jax.audit.keys import LARGEST_ONLY, SELECTORS, Key, key_name, key_of
from herald_jax.pool.peers import Peers
from herald_jax.pool.store import Entry


class Tables:
    """Tables over the results of some sections.

    Args:
        results: one for each section, in the order of their questions.
        contracts: names of the columns of a table.
        estimator: makes cells of sums.
    """

    def __init__(
        self, results: Sequence[Entry], contracts: tuple[str, ...], estimator: Estimator
    ) -> None:
        self._results = results
        self._contracts = contracts
        self._estimator = estimator
        self._cells: dict[Key, list[Cell]] = {}
        self._largest: dict[str, list[float]] = {}
        for result in results:
            for name, margins in result.meta["largest"].items():
                found = [-np.inf if margin is None else margin for margin in margins]
                so_far = self._largest.get(name, found)
                self._largest[name] = list(map(max, found, so_far))

    def keys(self) -> list[Key]:
        """Every table whose cells a report shows, and its selector."""
        return [key for key in map(key_of, self._largest) if key[0] not in LARGEST_ONLY]

    def values_of(self, kind: str) -> list[str]:
        """The second parts of the keys of one kind of table, sorted."""
        return sorted({key[1] for key in map(key_of, self._largest) if key[0] == kind})

    def tally(self, key: Key) -> Tally | None:
        """The sums of a table: the kind, what tells it apart, the selector; None without rows."""
        name = key_name(key)
        found = [
            [result.read(f"{name}.{part}") for part in PARTS]
            for result in self._results
            if f"{name}.questions" in result
        ]
        if not found:
            return None
        wide = max(len(rows) for _, rows, _, _ in found)
        parts = [
            (np.broadcast_to(rows, (wide, rows.shape[1])), successes, totals)
            for _, rows, successes, totals in found
        ]
        rows, successes, totals = (
            np.concatenate(part, axis=1) for part in zip(*parts, strict=True)
        )
        return Tally(rows, successes, totals, np.array(self._largest[name], np.float64))

    def largest(self, key: Key, selector: str, contract: str) -> float | None:
        """The largest margin of a table, without the estimates of a cell; None without rows."""
        margins = self._largest.get(key_name((*key, selector)))
        if margins is None:
            return None
        margin = margins[self._contracts.index(contract)]
        return margin if np.isfinite(margin) else None

    def columns(self, key: Key) -> list[Cell]:
        """Cells of a table, one a column; computed once."""
        if key not in self._cells:
            tally = self.tally(key)
            columns = len(self._largest.get(key_name(key), []))
            self._cells[key] = [EMPTY] * columns if tally is None else self._estimator.cells(tally)
        return self._cells[key]

    def share(self, peers: Peers) -> None:
        """Take over the cells that other processes have computed."""
        mine = [(list(key), cells) for key, cells in self._cells.items()]
        for part in peers.gather(msgspec.json.encode(mine)):
            self._cells |= {tuple(key): cells for key, cells in msgspec.json.decode(part)}

    def table(self, key: Key, selectors: tuple[str, ...] = SELECTORS) -> dict[str, dict[str, Cell]]:
        """`{selector: {contract: CELL}}` of a table."""
        found = {}
        for selector in selectors:
            cells = self.columns((*key, selector)) or [EMPTY] * len(self._contracts)
            found[selector] = dict(zip(self._contracts, cells, strict=True))
        return found

    def cell(self, key: Key, selector: str, contract: str) -> dict[str, Any]:
        """One cell."""
        return self.table(key, (selector,))[selector][contract]
