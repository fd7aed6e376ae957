"""Random streams that give the same draws on every platform and Python version.

`random.Random` keeps only its `random()` method from version to version and NumPy only its bit
generators, so that a world drawn with their other methods could change under an upgrade. Here a
stream is SplitMix64 (Steele, Lea and Flood 2014) started from the SHA-256 of its labels as JSON,
and every draw is integer arithmetic written out below.

A stream is named by labels, such as `Stream(seed, "county", 17)`: what one part of the world draws
never moves another part. `docs/world.md` lists the labels in use.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1


class Stream:
    """A deterministic source of draws, named by integer and string labels."""

    def __init__(self, *labels: int | str):
        digest = hashlib.sha256(json.dumps(labels).encode()).digest()
        self._state = int.from_bytes(digest[:8], "big")

    def bits(self) -> int:
        """Next 64 bits as an unsigned integer."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """Uniform integer in [0, n), without modulo bias."""
        if n < 1:
            raise ValueError(f"below() needs a positive bound, got {n}")
        limit = (1 << 64) - (1 << 64) % n
        while (draw := self.bits()) >= limit:
            pass
        return draw % n

    def chance(self, percent: int) -> bool:
        """True in `percent` of a hundred draws."""
        return self.below(100) < percent

    def pick(self, items: Sequence[T]) -> T:
        """One of `items`, each with the same probability."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """`k` distinct positions of `items` in random order (sparse Fisher-Yates)."""
        if k > len(items):
            raise ValueError(f"cannot sample {k} of {len(items)} items")
        moved: dict[int, int] = {}
        chosen = []
        for i in range(k):
            j = i + self.below(len(items) - i)
            chosen.append(items[moved.get(j, j)])
            moved[j] = moved.get(i, i)
        return chosen

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All of `items` in random order."""
        return self.sample(items, len(items))

    def weighted(self, weights: Mapping[str, int]) -> str:
        """A key of `weights`, with probability in proportion to its integer weight."""
        draw = self.below(sum(weights.values()))
        for key, weight in weights.items():
            if draw < weight:
                return key
            draw -= weight
        raise AssertionError("the weights sum to more than was drawn")
