"""The tokens of a corpus and their term ids."""

import functools
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from herald_jax.data.ragged import Ragged
from herald_jax.search.tokenise import Texts, as_column, split
from herald_jax.types import PAD


class Vocabulary(Mapping[str, int]):
    """Distinct tokens; a token's term id is its position, in order of first occurrence.

    Looked up in a dictionary that is built when it is first asked: a query needs a few of many.
    """

    def __init__(self, tokens: pa.LargeBinaryArray) -> None:
        """Takes distinct tokens in UTF-8."""
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def __iter__(self) -> Iterator[str]:
        return (token.decode() for token in self._ids)

    def __getitem__(self, token: str) -> int:
        """The id of a token.

        Raises:
            KeyError: no passage holds it.
        """
        return self._ids[token.encode("utf-8", "surrogatepass")]

    def encode(self, texts: Texts) -> Ragged:
        """Term ids of the tokens of n texts, in order, repeats kept, unknown tokens left out.

        Raises:
            ValueError: an Arrow column holds nulls.
        """
        # Many rows repeat a text, and texts repeat tokens: each is looked at once.
        column = as_column(texts).dictionary_encode()
        lists = split(column.dictionary)
        tokens = lists.tokens.dictionary_encode()
        found = [self._ids.get(token, PAD) for token in tokens.dictionary.to_pylist()]
        ids = np.array(found, np.int32)[tokens.indices.to_numpy()]
        known = ids != PAD
        before = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(known, out=before[1:])
        distinct = Ragged(ids[known], before[lists.offsets])
        return distinct.take(column.indices.to_numpy())

    def to_arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """All tokens in one: uint8 bytes, and int64 [T + 1] where each begins."""
        if not len(self):
            return np.zeros(0, np.uint8), np.zeros(1, np.int64)
        _, positions, content = self._tokens.buffers()
        bounds = np.frombuffer(positions, np.int64)[: len(self) + 1]
        return np.frombuffer(content, np.uint8)[: bounds[-1]], bounds

    @classmethod
    def of_arrays(
        cls, content: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64]
    ) -> "Vocabulary":
        """The vocabulary that `to_arrays` took apart; the arrays are used as they lie."""
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(content)]
        return cls(pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(bounds) - 1, buffers))

    @functools.cached_property
    def _ids(self) -> dict[bytes, int]:
        return dict(zip(self._tokens.to_pylist(), range(len(self)), strict=True))
