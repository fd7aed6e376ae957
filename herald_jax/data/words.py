"""Words of many strings at once: what `normalise` and `str.split` say of each, by whole columns.

All of ASCII but control characters is done on the bytes of a column as they lie in memory. Any
other string goes through `normalise` first; its normal form holds no punctuation and no upper case
any more, so that the same passes find its words.
"""

import string
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from herald_jax.data.ragged import Int32
from herald_jax.data.strings import found_in, utf8
from herald_jax.data.text import normalise

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

ARTICLES = ("a", "an", "the")

_SPACE = 32
_DELETED = 0x1F  # stands for what is deleted; as white space it is mapped to a space itself
_SPACES = bytes(code for code in range(128) if chr(code).isspace())
_KEPT = bytes.maketrans(_SPACES, b" " * len(_SPACES))
_FOLDED = bytes.maketrans(
    string.punctuation.encode() + string.ascii_uppercase.encode() + _SPACES,
    bytes([_DELETED]) * len(string.punctuation)
    + string.ascii_lowercase.encode()
    + b" " * len(_SPACES),
)


@dataclass(frozen=True, eq=False)
class Words:
    """Words of n strings.

    Attributes:
        words: Arrow strings [total], those of all strings in order.
        offsets: int64 [n + 1] where the words of each string begin.
    """

    words: pa.Array
    offsets: Int64


def normal_words(strings: pa.Array, rules: str) -> Words:
    """Words of the normal form of each string, articles among them.

    Args:
        strings: n plain strings without null.
        rules: see `normalise`. What the rules say of articles remains to be done.
    """
    plain = is_plain(strings)
    if not plain.all():
        odd = pa.array(~plain)
        forms = [normalise(text, rules) for text in strings.filter(odd).to_pylist()]
        strings = pc.replace_with_mask(strings, odd, pa.array(forms, pa.string()))
    offsets, data = utf8(strings)
    folded = np.frombuffer(data.tobytes().translate(_FOLDED), np.uint8)
    deleted = np.flatnonzero(folded == _DELETED)
    if len(deleted):
        folded = np.delete(folded, deleted)
        offsets = offsets - np.searchsorted(deleted, offsets)
    inside = folded != _SPACE
    firsts = np.flatnonzero(_begins(inside, offsets))
    lasts = np.flatnonzero(_ends(inside, offsets))
    ends = np.zeros(len(firsts) + 1, np.int32)
    np.cumsum(lasts + 1 - firsts, out=ends[1:])
    words = pa.StringArray.from_buffers(
        len(firsts), pa.py_buffer(ends), pa.py_buffer(folded[inside])
    )
    return Words(words, np.searchsorted(firsts, offsets))


def word_counts(strings: pa.Array) -> Int32:
    """int32 [n]: how many words `str.split` finds in each string.

    Args:
        strings: n plain strings without null.
    """
    offsets, data = utf8(strings)
    inside = np.frombuffer(data.tobytes().translate(_KEPT), np.uint8) != _SPACE
    firsts = np.flatnonzero(_begins(inside, offsets))
    counts = np.diff(np.searchsorted(firsts, offsets)).astype(np.int32)
    foreign = ~is_ascii(strings)
    if foreign.any():
        texts = strings.filter(pa.array(foreign)).to_pylist()
        counts[foreign] = [len(text.split()) for text in texts]
    return counts


def is_ascii(strings: pa.Array) -> Bool:
    """bool [n]: whether a string holds nothing but ASCII; false for null."""
    flags = pc.fill_null(pc.string_is_ascii(strings), False)
    return np.asarray(flags.to_numpy(zero_copy_only=False), bool)


def is_plain(strings: pa.Array) -> Bool:
    """bool [n]: whether a string holds nothing but ASCII, and no control character."""
    offsets, data = utf8(strings)
    odd = np.flatnonzero((data < _SPACE) | (data > 0x7E))
    return np.asarray(np.diff(np.searchsorted(odd, offsets)) == 0)


def codes_in(words: Words, vocabulary: pa.Array) -> Int32:
    """Index of each word in a vocabulary of distinct words, -1 for one that is not in it."""
    return found_in(words.words, vocabulary)


def without_articles(codes: Int32, offsets: Int64, *, unless_all: bool) -> tuple[Int32, Int64]:
    """Lists of words without the articles, which have the codes 0 to 2.

    Args:
        codes: int32 [total].
        offsets: int64 [n + 1].
        unless_all: keep those of a list that has nothing else.

    Returns:
        The shorter lists: int32, int64 [n + 1].
    """
    kept = (codes < 0) | (codes >= len(ARTICLES))
    if kept.all():
        return codes, offsets
    left = _counted(kept)
    if unless_all:
        lengths = np.diff(offsets)
        nothing_else = (np.diff(left[offsets]) == 0) & (lengths > 0)
        if nothing_else.any():
            kept |= np.repeat(nothing_else, lengths)
            left = _counted(kept)
    return codes[kept], left[offsets]


def _begins(inside: Bool, offsets: Int64) -> Bool:
    """bool [bytes]: whether a word begins at a byte; words end at spaces and between strings."""
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    firsts = offsets[:-1][np.diff(offsets) > 0]
    begins[firsts] = inside[firsts]
    return begins


def _ends(inside: Bool, offsets: Int64) -> Bool:
    """bool [bytes]: whether a byte is the last of a word."""
    ends = inside.copy()
    ends[:-1] &= ~inside[1:]
    lasts = offsets[1:][np.diff(offsets) > 0] - 1
    ends[lasts] = inside[lasts]
    return ends


def _counted(flags: Bool) -> Int64:
    """int64 [n + 1]: how many flags are set before each place."""
    out = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=out[1:])
    return out
