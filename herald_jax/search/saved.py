"""The arrays of an index, made from passages or read from a file.

A file carries the key of what it was made from (`passages.index_key`) and is used for nothing else.
Its arrays are mapped: where the device is the processor they are read as they lie on the disk, and
pages that no search touches stay there.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from herald_jax.data.arrays_file import ArraysFile, write_arrays
from herald_jax.kernels.bm25 import Bm25Index, build_bm25
from herald_jax.kernels.lexical import LexicalIndex, build_lexical
from herald_jax.kernels.postings import Postings, term_frequency
from herald_jax.search.passages import Passages, index_key, read_tokens
from herald_jax.search.vocabulary import Vocabulary
from herald_jax.types import HeraldError

_KIND = "search index"
_BM25, _LEXICAL = "bm25", "lexical"
_FIELDS = ("row", "start", "passage", "value", "dense")


class IndexRefusedError(HeraldError):
    """A file that is no index, or the index of something else; the message names it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IndexParts:
    """All that an index consists of.

    Attributes:
        key: what it was made from.
        n_passages: N.
        vocabulary: its tokens.
        bm25: arrays of the BM25 kernel.
        lexical: arrays of the lexical kernel.
    """

    key: str
    n_passages: int
    vocabulary: Vocabulary
    bm25: Bm25Index
    lexical: LexicalIndex


def build_parts(
    passages: Passages, *, k1: float, b: float, epsilon: float, variant: str
) -> IndexParts:
    """Makes an index of passages.

    Raises:
        ValueError: a BM25 parameter is out of range (see `kernels.bm25.build_bm25`).
    """
    vocabulary, ids, offsets = read_tokens(passages)
    frequency = term_frequency(ids, offsets, len(vocabulary))
    del ids
    return IndexParts(
        key=index_key(passages, k1=k1, b=b, epsilon=epsilon, variant=variant),
        n_passages=len(passages),
        vocabulary=vocabulary,
        bm25=build_bm25(frequency, k1=k1, b=b, epsilon=epsilon, variant=variant),
        lexical=build_lexical(frequency),
    )


def save_parts(path: Path, parts: IndexParts) -> None:
    """Writes an index, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    content, bounds = parts.vocabulary.to_arrays()
    arrays: dict[str, Any] = {"tokens": content, "token_bounds": bounds, "peak": parts.bm25.peak}
    for name, postings in ((_BM25, parts.bm25.postings), (_LEXICAL, parts.lexical.postings)):
        for field in _FIELDS:
            arrays[f"{name}.{field}"] = getattr(postings, field)
    meta = {"kind": _KIND, "key": parts.key, "n_passages": parts.n_passages}
    write_arrays(path, {name: np.asarray(array) for name, array in arrays.items()}, meta)


def load_parts(path: Path, key: str) -> IndexParts:
    """Maps the index that `save_parts` wrote, and checks it.

    Args:
        path: the file.
        key: what the index must have been made from.

    Raises:
        OSError: it cannot be opened.
        DamagedFileError: it is not whole.
        IndexRefusedError: it is something else, or of another key.
    """
    file = ArraysFile(path)
    if file.meta.get("kind") != _KIND:
        raise IndexRefusedError(f"{path}: not a search index")
    if file.meta["key"] != key:
        raise IndexRefusedError(
            f"{path}: index of other passages, of other settings of BM25 or of another version "
            f"(key {file.meta['key'][:12]}, not {key[:12]})"
        )
    file.check()
    n_passages = file.meta["n_passages"]
    return IndexParts(
        key=key,
        n_passages=n_passages,
        vocabulary=Vocabulary.of_arrays(file.map("tokens"), file.map("token_bounds")),
        bm25=Bm25Index(
            postings=_postings(file, _BM25, n_passages), peak=jax.device_put(file.map("peak"))
        ),
        lexical=LexicalIndex(postings=_postings(file, _LEXICAL, n_passages)),
    )


def _postings(file: ArraysFile, name: str, n_passages: int) -> Postings:
    # jnp.asarray would copy; device_put takes what a processor can read where it lies.
    arrays = {field: jax.device_put(file.map(f"{name}.{field}")) for field in _FIELDS}
    return Postings(n_passages=jax.device_put(np.int32(n_passages)), **arrays)
