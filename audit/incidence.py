"""What a log shows by itself, whole and split by model and by pool (SPEC section 10).

How often each detector fires, and whether a penalty on it would reach an optimiser that normalises
rewards within groups.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.audit.counts import Counts, branch, bump, leaf
from herald_jax.audit.staging import Block, Mask
from herald_jax.kernels import groups
from herald_jax.manifest import Manifest
from herald_jax.types import DETECTORS, PAD

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


# Fields of a signal and the names under which they are counted.
COUNTS = {
    "groups": "groups",
    "rows": "holding rows",
    "holding": "holding",
    "constant": "constant",
    "changed": "changed",
}


class Incidence:
    """Counts of detectors and of group signal.

    Args:
        manifest: says which splits there are and how much each penalty weighs.
        counts: what was counted so far, added to in place.
    """

    def __init__(self, manifest: Manifest, counts: Counts) -> None:
        sections = manifest.sections
        wanted = {"model": sections.split_by_model, "pool": sections.split_by_pool}
        self._splits = [name for name, on in wanted.items() if on]
        self._group_signal = sections.group_signal
        self._weights = np.array([getattr(manifest.penalties, name) for name in DETECTORS])
        self._counts = counts

    def add(self, block: Block, rows: Mask) -> None:
        """Count some rows of a block."""
        self._add(ALL, block, rows)
        for split in self._splits:
            for value, part in split_rows(block, rows, split):
                self._add((split, value), block, part)

    def _add(self, of: tuple[str, str], block: Block, part: Mask) -> None:
        counts = self._counts
        bump(counts, *of, "rows", by=part.sum())
        for name, number in zip(DETECTORS, (block.flags & part).sum(axis=1), strict=True):
            bump(counts, *of, "natural", name, by=number)
        if not self._group_signal:
            return
        shape = block.grouped
        base = block.rewards[block.setup.contracts.index("R0")]
        members = part & np.isfinite(base)
        found, flat = _signals(
            base.reshape(shape),
            block.flags.reshape(-1, *shape),
            members.reshape(shape),
            self._weights.astype(np.float32),
        )
        bump(counts, *of, "without_spread", by=int(flat))
        for kind, leaf_name in COUNTS.items():
            for name, number in zip(DETECTORS, np.asarray(getattr(found, kind)), strict=True):
                bump(counts, *of, leaf_name, name, by=number)
        # How many groups have so many members with the detector, among so many: what the mean
        # square is computed from, so that it does not depend on the order of groups.
        sizes = members.reshape(shape).sum(axis=1)
        ones = (block.flags & members).reshape(-1, *shape).sum(axis=2)
        for name, shares in zip(DETECTORS, ones, strict=True):
            pairs = np.stack([shares, sizes])[:, sizes > 0]
            kinds, numbers = np.unique(pairs, axis=1, return_counts=True)
            for (some, size), number in zip(kinds.T.tolist(), numbers.tolist(), strict=True):
                bump(counts, *of, "shares", name, f"{some}/{size}", by=number)

    def natural(self) -> dict[str, int]:
        """Rows on which each detector is true."""
        return self._natural(ALL)

    def natural_by(self) -> dict[str, dict[str, dict[str, int]]]:
        """The same by model and by pool, with the rows of each."""
        return {
            split: {
                value: {
                    "rows": leaf(self._counts, split, value, "rows"),
                    **self._natural((split, value)),
                }
                for value in sorted(branch(self._counts, split))
            }
            for split in self._splits
        }

    def _natural(self, of: tuple[str, str]) -> dict[str, int]:
        return {name: leaf(self._counts, *of, "natural", name) for name in DETECTORS}

    def signal(self) -> dict[str, Any]:
        """Group-signal diagnostics of every detector: over all rows, by model and by pool."""
        if not self._group_signal or not leaf(self._counts, *ALL, "rows"):
            return {}
        found: dict[str, Any] = {"all": self._signal(ALL)}
        for split in self._splits:
            found[split] = {
                value: self._signal((split, value)) for value in sorted(branch(self._counts, split))
            }
        return found

    def _signal(self, of: tuple[str, str]) -> dict[str, Any]:
        groups_of_part = leaf(self._counts, *of, "groups", DETECTORS[0])

        def count(kind: str, name: str) -> int:
            return leaf(self._counts, *of, kind, name)

        return {
            "rows": leaf(self._counts, *of, "rows"),
            "groups": groups_of_part,
            "no_signal": leaf(self._counts, *of, "without_spread"),
            "detectors": {
                name: {
                    "lambda": float(self._weights[d]),
                    "rows": count("holding rows", name),
                    "groups": count("holding", name),
                    "constant": count("constant", name),
                    "changed": count("changed", name),
                    "unchanged": groups_of_part - count("changed", name),
                    "mean_square": _mean_square(
                        branch(self._counts, *of, "shares", name), float(self._weights[d])
                    ),
                }
                for d, name in enumerate(DETECTORS)
            },
        }


def _mean_square(shares: Mapping[str, int], weight: float) -> float | None:
    """Mean over groups of λ² p (1 − p), p = ones/size by name; None without a group."""
    groups_of_part = sum(shares.values())
    if not groups_of_part:
        return None
    pairs = [(*map(int, name.split("/")), count) for name, count in shares.items()]
    spread = math.fsum(
        count * ones * (size - ones) / size**2 for ones, size, count in sorted(pairs)
    )
    return weight**2 * spread / groups_of_part


def split_rows(block: Block, rows: Mask, field: str) -> Iterator[tuple[str, Mask]]:
    """Parts of some rows by model or by pool, in the order of the names."""
    names = (block.setup.pool.models if field == "model" else block.setup.pool.pools).all
    numbers = block.gather(field, PAD)
    for number in np.unique(numbers[rows]).tolist():
        yield names[number], rows & (numbers == number)
