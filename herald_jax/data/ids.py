"""Ids as integer codes.

A passage of the corpus has the rank of its id in code-point order, so that "equal scores by passage
id" is "lowest code first" whatever the order of the file. Every other id that is met gets the next
code, at least the number of passages: a code says by itself whether its id is in the corpus, and
no id is ever encoded as `PAD` or as another passage.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class _Codes(dict[str, int]):
    """Gives an unknown id the next code on first sight."""

    def __missing__(self, name: str) -> int:
        code = self[name] = len(self)
        return code


class IdTable:
    """Codes of ids: 0 .. N-1 the corpus by rank, from N on all others by first sight.

    Args:
        corpus: distinct passage ids in any order.

    Raises:
        ValueError: a passage id occurs twice.
    """

    def __init__(self, corpus: Iterable[str]):
        ranked = sorted(corpus)
        self._codes = _Codes((name, code) for code, name in enumerate(ranked))
        if len(self._codes) < len(ranked):
            raise ValueError("passage ids are not distinct")
        self.corpus_size = len(ranked)
        self._names = ranked

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Codes of ids, int32 [len(names)]; ids not seen before enter the table."""
        return np.fromiter(map(self._codes.__getitem__, names), np.int32, len(names))

    @property
    def names(self) -> list[str]:
        """All ids in the order of their codes."""
        return list(self._codes)

    def decode(self, code: int) -> str:
        """The id of a code.

        Raises:
            IndexError: no id has this code; so for `PAD`.
        """
        if not 0 <= code < len(self._codes):
            raise IndexError(f"no id has the code {code}")
        if code >= len(self._names):
            self._names.extend(list(self._codes)[len(self._names) :])
        return self._names[code]

    def __contains__(self, name: str) -> bool:
        return name in self._codes
