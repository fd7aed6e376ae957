"""Pools of invented names, one for each type of entity.

A pool is every combination of its parts, so that a name never has to be looked up to be new. A
small world uses only the first entries of each part: few words, many names that share one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from herald_jax.types import HeraldError
from herald_jax.world import words
from herald_jax.world.streams import Stream

# A world draws from at least this many times the names that it needs.
SPARE = 2


class WorldError(HeraldError):
    """A world that was asked for cannot be built, or one that was built is not sound."""


@dataclass(frozen=True, slots=True)
class NamePool:
    """Names of one type: every way of filling `form` with one entry of each part."""

    form: str
    parts: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return prod(len(part) for part in self.parts)

    def name(self, index: int, sizes: Sequence[int]) -> str:
        """The name of mixed-radix `index` among the first `sizes` entries of each part."""
        chosen = []
        for part, size in zip(self.parts, sizes, strict=True):
            index, digit = divmod(index, size)
            chosen.append(part[digit])
        return self.form.format(*chosen)

    def draw(self, count: int, stream: Stream) -> list[str]:
        """`count` distinct names in random order.

        Raises:
            WorldError: the pool holds fewer names.
        """
        if count > len(self):
            raise WorldError(f"{count} names are needed, the pool {self.form!r} has {len(self)}")
        want = min(len(self), SPARE * count)
        for percent in range(1, 101):
            sizes = [-(-len(part) * percent // 100) for part in self.parts]
            if prod(sizes) >= want:
                break
        return [self.name(i, sizes) for i in stream.sample(range(prod(sizes)), count)]


POOLS: Final = {
    "town": NamePool("{}{}{}", (words.TOWN_STEMS, words.TOWN_LINKS, words.TOWN_ENDINGS)),
    "river": NamePool("{}{}", (words.RIVER_STARTS, words.RIVER_ENDS)),
    "hill": NamePool("{}{} {}", (words.HILL_STARTS, words.HILL_MIDDLES, words.HILL_HEADS)),
    "person": NamePool("{} {}{}", (words.GIVEN_NAMES, words.SURNAME_STARTS, words.SURNAME_ENDS)),
    "guild": NamePool("{} {}", (words.ADJECTIVES, words.TOOLS)),
    "ship": NamePool("{} {}", (words.ADJECTIVES, words.SHIP_NOUNS)),
    "fair": NamePool("{} {}", (words.ADJECTIVES, words.PLANTS)),
    "book": NamePool("{} of {}", (words.BOOK_KINDS, words.BOOK_THINGS)),
    "bridge": NamePool("{}{}{}", (words.BRIDGE_STARTS, words.BRIDGE_MIDDLES, words.BRIDGE_ENDS)),
}
