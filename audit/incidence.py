"""What a log shows by itself, whole and split by model and by pool (SPEC section 10).

How often each detector fires, and whether a penalty on it would reach an optimiser that normalises
rewards within groups.
"""

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from herald_jax.audit.staging import Block, Mask
from herald_jax.kernels import groups
from herald_jax.manifest import Manifest
from herald_jax.types import DETECTORS

Weights = npt.NDArray[np.float64]
ALL = ("all", "")


@jax.jit
def _signals(
    rewards: jax.Array, flags: jax.Array, members: jax.Array, weights: jax.Array
) -> tuple[groups.Signal, jax.Array]:
    """Signals of all detectors, summed over the groups of a block; and groups without spread.

    Args:
        rewards: float32 [G, M] base rewards.
        flags: bool [D, G, M].
        members: bool [G, M].
        weights: float32 [D].
    """

    def one_detector(bits: jax.Array, weight: jax.Array) -> groups.Signal:
        each = jax.vmap(partial(groups.signal, weight=weight))(rewards, bits, members)
        return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), each)

    advantages = jax.vmap(groups.group_advantages)(rewards, members)
    flat = jnp.all(advantages == 0, axis=1) & jnp.any(members, axis=1)
    return jax.vmap(one_detector)(flags, weights), jnp.sum(flat, dtype=jnp.int32)


COUNTS = ("groups", "rows", "holding", "constant", "changed")


class Incidence:
    """Counts of detectors and of group signal over the blocks of an audit."""

    def __init__(self, manifest: Manifest) -> None:
        """Start at nothing, with the splits that the manifest asks for."""
        sections = manifest.sections
        wanted = {"model": sections.split_by_model, "pool": sections.split_by_pool}
        self._splits = [name for name, on in wanted.items() if on]
        self._group_signal = sections.group_signal
        self._weights = np.array([getattr(manifest.penalties, name) for name in DETECTORS])
        self._parts: dict[tuple[str, str], _Part] = {}

    def add(self, block: Block, rows: Mask) -> None:
        """Count some rows of a block."""
        self._part(ALL).add(block, rows, self._weights, self._group_signal)
        for split in self._splits:
            for value, part in split_rows(block, rows, split):
                self._part((split, value)).add(block, part, self._weights, self._group_signal)

    def _part(self, key: tuple[str, str]) -> "_Part":
        return self._parts.setdefault(key, _Part())

    def natural(self) -> dict[str, int]:
        """Rows on which each detector is true."""
        return self._part(ALL).natural()

    def natural_by(self) -> dict[str, dict[str, dict[str, int]]]:
        """The same by model and by pool, with the rows of each."""
        return {
            split: {
                value: {"rows": part.rows, **part.natural()}
                for (kind, value), part in sorted(self._parts.items())
                if kind == split
            }
            for split in self._splits
        }

    def signal(self) -> dict[str, Any]:
        """Group-signal diagnostics of every detector: over all rows, by model and by pool."""
        if not self._group_signal or not self._part(ALL).rows:
            return {}
        found: dict[str, Any] = {"all": self._part(ALL).signal(self._weights)}
        for split in self._splits:
            found[split] = {
                value: part.signal(self._weights)
                for (kind, value), part in sorted(self._parts.items())
                if kind == split
            }
        return found


class _Part:
    """Counts over one part of the rows."""

    def __init__(self) -> None:
        self.rows = 0
        self._flags = np.zeros(len(DETECTORS), np.int64)
        self._counts = {name: np.zeros(len(DETECTORS), np.int64) for name in COUNTS}
        self._without_spread = 0
        # How many groups have so many members with the detector, among so many: what the mean
        # square is computed from, so that it does not depend on the order of groups.
        self._shares: list[Counter[tuple[int, int]]] = [Counter() for _ in DETECTORS]

    def add(self, block: Block, part: Mask, weights: Weights, group_signal: bool) -> None:
        self.rows += int(part.sum())
        self._flags += (block.flags & part).sum(axis=1)
        if not group_signal:
            return
        shape = block.grouped
        base = block.rewards[block.setup.contracts.index("R0")]
        members = part & np.isfinite(base)
        found, flat = _signals(
            base.reshape(shape),
            block.flags.reshape(-1, *shape),
            members.reshape(shape),
            weights.astype(np.float32),
        )
        for name in COUNTS:
            self._counts[name] += np.asarray(getattr(found, name))
        self._without_spread += int(flat)
        sizes = members.reshape(shape).sum(axis=1)
        ones = (block.flags & members).reshape(-1, *shape).sum(axis=2)
        for share, counts in zip(self._shares, ones, strict=True):
            share.update(zip(counts[sizes > 0].tolist(), sizes[sizes > 0].tolist(), strict=True))

    def natural(self) -> dict[str, int]:
        return {name: int(count) for name, count in zip(DETECTORS, self._flags, strict=True)}

    def signal(self, weights: Weights) -> dict[str, Any]:
        groups_of_part = int(self._counts["groups"][0])
        return {
            "rows": self.rows,
            "groups": groups_of_part,
            "no_signal": self._without_spread,
            "detectors": {
                name: {
                    "lambda": float(weights[d]),
                    "rows": int(self._counts["rows"][d]),
                    "groups": int(self._counts["holding"][d]),
                    "constant": int(self._counts["constant"][d]),
                    "changed": int(self._counts["changed"][d]),
                    "unchanged": groups_of_part - int(self._counts["changed"][d]),
                    "mean_square": _mean_square(self._shares[d], float(weights[d])),
                }
                for d, name in enumerate(DETECTORS)
            },
        }


def _mean_square(shares: Counter[tuple[int, int]], weight: float) -> float | None:
    """Mean over groups of λ² p (1 − p); None without a group."""
    groups_of_part = sum(shares.values())
    if not groups_of_part:
        return None
    spread = math.fsum(
        count * ones * (size - ones) / size**2 for (ones, size), count in sorted(shares.items())
    )
    return weight**2 * spread / groups_of_part


def split_rows(block: Block, rows: Mask, field: str) -> Iterator[tuple[str, Mask]]:
    """Parts of some rows by a string field of the record, in the order of its values."""
    records = block.setup.pool.rows.records
    values = np.array(
        [getattr(records[row], field) if row >= 0 else "" for row in block.place.rows], object
    )
    for value in sorted(set(values[rows])):
        yield value, rows & (values == value)
