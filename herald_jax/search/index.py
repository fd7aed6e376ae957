"""A corpus that can be searched: text in, passage codes out.

Ties the tokens of `data.text` to the retrieval kernels. The audit's candidate generators, the
scripted agents of the built-in world and the trainer's search environment all search through this
class, so that a BM25 rank is the same thing to each of them.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import jax
import numpy as np
import numpy.typing as npt

from herald_jax.data.arrays_file import DamagedFileError
from herald_jax.data.ragged import Ragged
from herald_jax.kernels.bm25 import Bm25Index, bm25_topk
from herald_jax.kernels.lexical import lexical_topk
from herald_jax.search.batches import Progress, Ranking, run_batches, width_buckets
from herald_jax.search.passages import Passages, index_key
from herald_jax.search.saved import (
    IndexParts,
    IndexRefusedError,
    build_parts,
    load_parts,
    save_parts,
)
from herald_jax.search.searches import distinct_searches
from herald_jax.search.tokenise import Texts
from herald_jax.search.wide import bm25_topk_wide, is_wide

Codes = npt.NDArray[np.int32]
Scores = npt.NDArray[np.int64]


IndexName = Literal["bm25_index", "lexical_index"]


class CorpusIndex:
    """Inverted index of a closed corpus, for BM25 and for the lexical score (SPEC section 6).

    A passage is searched by its title, a space and its text.

    Attributes:
        n_passages: N, the number of passages.
        vocabulary: term id of each token of the corpus, in order of first occurrence.
        bm25_index: arrays of the BM25 kernel.
        lexical_index: arrays of the lexical kernel.
        key: digest of the passages and the settings (`passages.index_key`).
    """

    def __init__(
        self,
        passages: Passages,
        *,
        k1: float = 1.5,
        b: float = 0.75,
        epsilon: float = 0.25,
        variant: str = "okapi",
    ) -> None:
        """Indexes `passages`, each (title, text), in the order of their codes.

        Raises:
            ValueError: a BM25 parameter is out of range (see `kernels.bm25.build_bm25`).
        """
        self._adopt(build_parts(passages, k1=k1, b=b, epsilon=epsilon, variant=variant))

    @classmethod
    def load(cls, path: Path, key: str) -> "CorpusIndex":
        """Opens an index that was saved; its arrays are mapped, not read.

        Args:
            path: the file.
            key: what it must have been made from (`passages.index_key`).

        Raises:
            OSError: it cannot be opened.
            DamagedFileError: it is not whole.
            IndexRefusedError: it is something else, or of another key.
        """
        index = cls.__new__(cls)
        index._adopt(load_parts(path, key))
        return index

    def save(self, path: Path) -> None:
        """Writes the index and its key, whole or not at all; the folder exists.

        Raises:
            OSError: it cannot be written.
        """
        save_parts(path, self._parts)

    def _adopt(self, parts: IndexParts) -> None:
        self._parts = parts
        self.key = parts.key
        self.n_passages = parts.n_passages
        self.vocabulary = parts.vocabulary
        self.bm25_index = parts.bm25
        self.lexical_index = parts.lexical
        self._peak = np.asarray(parts.bm25.peak)

    def encode(self, texts: Texts) -> Codes:
        """Turns texts into term ids.

        Args:
            texts: n texts.

        Returns:
            int32 [n, L]: the ids of each text's tokens in order, repeats kept, tokens that no
            passage holds left out, PAD at the end. L is one of few widths.
        """
        lists = self.vocabulary.encode(texts)
        longest = lists.lengths.max(initial=0, keepdims=True)
        rows = np.arange(len(lists))
        return np.ascontiguousarray(lists.to_padded(rows, int(width_buckets(longest)[0])).T)

    def bm25(
        self,
        texts: Texts,
        exclude: Ragged | None,
        k: int,
        *,
        progress: Progress | None = None,
    ) -> tuple[Codes, Scores]:
        """Ranks the corpus by BM25: score descending, then code ascending.

        A smaller k gives a prefix of what a larger one gives.

        Args:
            texts: n query texts; an Arrow column has no nulls.
            exclude: codes that may not be returned, one list for each text; PAD and codes of no
                passage are ignored. None excludes nothing.
            k: number of passages to return, at least 1.
            progress: called with the number of distinct searches done and to do.

        Returns:
            Codes int32 [n, k], PAD where candidates run out, and scores int64 [n, k] in units of
            1 / `kernels.bm25.SCALE`, `kernels.topk.NO_SCORE` there.

        Raises:
            ValueError: k < 1, or texts and exclude differ in length.
        """
        return self.rank(bm25_topk, "bm25_index", texts, exclude, k, progress=progress)

    def lexical(
        self,
        texts: Texts,
        exclude: Ragged | None,
        k: int,
        *,
        progress: Progress | None = None,
    ) -> tuple[Codes, Scores]:
        """Ranks by the number of distinct tokens shared with the text; none is no candidate.

        Arguments, order and errors are those of `bm25`; scores are whole numbers of tokens.
        """
        return self.rank(lexical_topk, "lexical_index", texts, exclude, k, progress=progress)

    def rank(
        self,
        ranking: Ranking,
        index: IndexName,
        queries: Texts | Ragged,
        exclude: Ragged | None,
        k: int,
        *,
        progress: Progress | None = None,
    ) -> tuple[Codes, Scores]:
        """Ranks the corpus by any kernel over one of its indexes.

        Args:
            ranking: the kernel, which sees the index, the terms of the queries and exclude.
            index: which of the indexes it is over.
            queries: n query texts, or the lists of their term ids (`Vocabulary.encode`).
            exclude: as `bm25`.
            k: as `bm25`.
            progress: as `bm25`.

        Returns:
            Codes int32 [n, k] and scores int64 [n, k], as the kernel gives them.

        Raises:
            ValueError: k < 1, or queries and exclude differ in length.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        terms = queries if isinstance(queries, Ragged) else self.vocabulary.encode(queries)
        searches, which = distinct_searches(terms, exclude, self.n_passages)
        codes = np.empty((len(searches), k), np.int32)
        scores = np.empty((len(searches), k), np.int64)
        wide = np.zeros(len(searches), bool)
        if ranking is bm25_topk:
            wide = is_wide(self._peak, searches.terms)[searches.query]
        narrow = np.flatnonzero(~wide)
        codes[narrow], scores[narrow] = run_batches(
            ranking, getattr(self, index), searches.take(narrow), k, progress
        )
        for i in np.flatnonzero(wide).tolist():
            codes[i], scores[i] = bm25_topk_wide(self._host_bm25, *searches[i], k)
        return codes[which], scores[which]

    @functools.cached_property
    def _host_bm25(self) -> Bm25Index:
        """The BM25 index as NumPy arrays."""
        host: Bm25Index = jax.device_get(self.bm25_index)
        return host


def open_index(
    path: Path | None,
    passages: Passages,
    *,
    k1: float = 1.5,
    b: float = 0.75,
    epsilon: float = 0.25,
    variant: str = "okapi",
    refused: Callable[[str], None] | None = None,
) -> CorpusIndex:
    """The index of `passages`: from a file that holds it, else made and saved there.

    Args:
        path: where the index is kept; None keeps it nowhere. The folder exists.
        passages: as `CorpusIndex`.
        k1, b, epsilon, variant: as `CorpusIndex`.
        refused: told why a file that was there was not used and is replaced.

    Raises:
        ValueError: a BM25 parameter is out of range.
        OSError: the file cannot be read or written.
    """
    if path is not None:
        key = index_key(passages, k1=k1, b=b, epsilon=epsilon, variant=variant)
        try:
            return CorpusIndex.load(path, key)
        except FileNotFoundError:
            pass
        except (DamagedFileError, IndexRefusedError) as error:
            if refused is not None:
                refused(str(error))
    index = CorpusIndex(passages, k1=k1, b=b, epsilon=epsilon, variant=variant)
    if path is not None:
        index.save(path)
    return index
