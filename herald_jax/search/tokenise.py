"""Search tokens of many texts at once, as one Arrow column.

Gives what `data.text.tokens` gives, byte by byte instead of text by text: of an ASCII text the
tokens are the maximal runs of letters and digits in lower case. Any other text is first written as
its tokens with spaces between them, and then no byte of it that is not ASCII separates tokens.
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from herald_jax.data.text import tokens

Texts: TypeAlias = Sequence[str] | pa.Array | pa.ChunkedArray


def _folded() -> npt.NDArray[np.uint8]:
    """For every byte, the one that stands for it in a token; 0 when it separates tokens."""
    table = np.arange(256, dtype=np.uint8)
    inside = string.ascii_letters + string.digits
    table[[byte for byte in range(128) if chr(byte) not in inside]] = 0
    for upper in string.ascii_uppercase:
        table[ord(upper)] = ord(upper.lower())
    return table


_FOLDED = _folded()


@dataclass(frozen=True, eq=False)
class TokenLists:
    """Tokens of n texts, one text after another.

    Attributes:
        tokens: large_binary [total], UTF-8.
        offsets: int64 [n + 1]; text i holds tokens[offsets[i]:offsets[i + 1]].
    """

    tokens: pa.LargeBinaryArray
    offsets: npt.NDArray[np.int64]


def as_column(texts: Texts) -> pa.LargeStringArray:
    """Texts as an Arrow column in which every text that is not ASCII is written as its tokens.

    A text and its column entry have the same tokens.

    Raises:
        ValueError: an Arrow column holds nulls.
    """
    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        # Before Arrow sees it: half of a surrogate pair is no UTF-8, and in no token.
        plain = [text if text.isascii() else " ".join(tokens(text)) for text in texts]
        return pa.array(plain, pa.large_string())
    if texts.null_count:
        raise ValueError(f"{texts.null_count} of {len(texts)} texts are null")
    column = texts.cast(pa.large_string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    # Texts are told apart before the others are rewritten: their copies are rewritten once.
    foreign = pc.invert(pc.string_is_ascii(column))
    others = pc.filter(column, foreign).dictionary_encode()
    if not len(others):
        return column
    plain = pa.array(
        [" ".join(tokens(text)) for text in others.dictionary.to_pylist()], pa.large_string()
    )
    return pc.replace_with_mask(column, foreign, plain.take(others.indices))


def split(column: pa.LargeStringArray) -> TokenLists:
    """Cuts the texts of `as_column` into tokens.

    Uses about six bytes for each byte of text; cut a large corpus into parts.
    """
    bounds, data = _buffers(column)
    folded = _FOLDED[data]
    inside = folded != 0
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    # A token ends where its text ends.
    first = bounds[:-1][bounds[:-1] < len(data)]
    begins[first] = inside[first]

    packed = folded[inside]
    cuts = np.append(np.flatnonzero(begins[inside]), len(packed)).astype(np.int64)
    found = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(packed)]
    )
    return TokenLists(found, np.searchsorted(np.flatnonzero(begins), bounds).astype(np.int64))


def _buffers(
    column: pa.LargeStringArray,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each text begins (n + 1 bounds from 0) and the bytes of all."""
    if not len(column):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    _, positions, content = column.buffers()
    bounds = np.frombuffer(positions, np.int64)[column.offset : column.offset + len(column) + 1]
    if bounds[0] == bounds[-1]:
        return bounds - bounds[0], np.zeros(0, np.uint8)
    return bounds - bounds[0], np.frombuffer(content, np.uint8)[bounds[0] : bounds[-1]]
