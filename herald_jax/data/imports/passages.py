"""The distinct passages of a benchmark, and readable ids for them.

A paragraph that stands in the contexts of many questions is one passage; paragraphs with one title
and different texts are different passages. A passage is called by its title. Where several share
it, the first in code-point order of the text has the title itself, the second `TITLE#2`, and so on:
the ids depend on what the files hold together, and on no order.
"""

import itertools
from collections.abc import Iterator, Mapping, Set

from herald_jax.data.records import Passage


class Passages:
    """Gives every distinct pair of title and text a number.

    Texts are kept as UTF-8, which is what most of the memory of an import is.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, bytes], int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, title: str, text: str) -> int:
        """The number of this passage, the next free one if it was not met before."""
        return self._numbers.setdefault((title, text.encode()), len(self._numbers))

    def by_title(self) -> dict[str, list[int]]:
        """Numbers of the passages of each title, in code-point order of their texts."""
        found: dict[str, list[int]] = {}
        for key in sorted(self._numbers):  # UTF-8 sorts as code points do
            found.setdefault(key[0], []).append(self._numbers[key])
        return found

    def records(self, ids: list[str]) -> Iterator[Passage]:
        """The passages as records of a corpus, in code-point order of their ids."""
        keys = list(self._numbers)
        for number in sorted(range(len(ids)), key=ids.__getitem__):
            title, text = keys[number]
            yield Passage(passage_id=ids[number], title=title, text=text.decode())


def passage_ids(by_title: Mapping[str, list[int]], reserved: Set[str] = frozenset()) -> list[str]:
    """The id of each number of `Passages.by_title`.

    A blank title makes no id by itself: its passages are `#1`, `#2`, ….

    Args:
        by_title: numbers of the passages of each title.
        reserved: ids that are none of these passages; no title is among them.

    Returns:
        Distinct ids outside `reserved`, by number.
    """
    ids = [""] * sum(map(len, by_title.values()))
    taken = by_title.keys() | reserved
    for title, numbers in by_title.items():
        numbered = (f"{title}#{count}" for count in itertools.count(2 if title.strip() else 1))
        free = (name for name in numbered if name not in taken)
        names = itertools.chain([title], free) if title.strip() else free
        for number, name in zip(numbers, names, strict=False):
            ids[number] = name
    return ids
