"""A corpus that can be searched: text in, passage codes out.

Ties the tokens of `data.text` to the retrieval kernels. The audit's candidate generators, the
scripted agents of the built-in world and the trainer's search environment all search through this
class, so that a BM25 rank is the same thing to each of them.
"""

import functools
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import jax
import numpy as np
import numpy.typing as npt

from herald_jax.data.text import tokens
from herald_jax.kernels.bm25 import Bm25Index, bm25_topk, build_bm25
from herald_jax.kernels.lexical import build_lexical, lexical_topk
from herald_jax.search.batches import Progress, Query, pad_rows, run_batches, width_bucket
from herald_jax.search.wide import bm25_topk_wide, is_wide

Codes = npt.NDArray[np.int32]
Scores = npt.NDArray[np.int64]


IndexName = Literal["bm25_index", "lexical_index"]


class Ranking(Protocol):
    """A kernel that ranks the corpus for n queries."""

    def __call__(
        self, index: Any, query: jax.Array, taken: jax.Array, /, *, k: int
    ) -> tuple[jax.Array, jax.Array]:
        """Rank.

        Args:
            index: arrays of the corpus.
            query: int32 [n, L] term ids, PAD behind.
            taken: int32 [n, X] codes that are no candidates.
            k: how many.

        Returns:
            Codes int32 [n, k], PAD where fewer, and their scores.
        """


class CorpusIndex:
    """Inverted index of a closed corpus, for BM25 and for the lexical score (SPEC section 6).

    A passage is searched by its title, a space and its text.

    Attributes:
        n_passages: N, the number of passages.
        vocabulary: term id of each token of the corpus, in order of first occurrence.
        bm25_index: arrays of the BM25 kernel.
        lexical_index: arrays of the lexical kernel.
    """

    def __init__(
        self,
        passages: Sequence[tuple[str, str]],
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
        self.n_passages = len(passages)
        self.vocabulary: dict[str, int] = {}
        terms: list[int] = []
        offsets = np.zeros(len(passages) + 1, np.int64)
        for i, (title, text) in enumerate(passages):
            terms.extend(
                self.vocabulary.setdefault(token, len(self.vocabulary))
                for token in tokens(f"{title} {text}")
            )
            offsets[i + 1] = len(terms)
        flat, n_terms = np.array(terms, np.int32), len(self.vocabulary)
        self.bm25_index = build_bm25(
            flat, offsets, n_terms, k1=k1, b=b, epsilon=epsilon, variant=variant
        )
        self.lexical_index = build_lexical(flat, offsets, n_terms)
        self._peak = np.asarray(self.bm25_index.peak)

    def encode(self, texts: Sequence[str]) -> Codes:
        """Turns texts into term ids.

        Args:
            texts: n texts.

        Returns:
            int32 [n, L]: the ids of each text's tokens in order, repeats kept, tokens that no
            passage holds left out, PAD at the end. L is one of few widths.
        """
        rows = [self._terms(text) for text in texts]
        return pad_rows(rows, width_bucket(max(map(len, rows), default=0)))

    def bm25(
        self,
        texts: Sequence[str],
        exclude: Sequence[npt.NDArray[np.integer]] | None,
        k: int,
        *,
        progress: Progress | None = None,
    ) -> tuple[Codes, Scores]:
        """Ranks the corpus by BM25: score descending, then code ascending.

        A smaller k gives a prefix of what a larger one gives.

        Args:
            texts: n query texts.
            exclude: codes that may not be returned, one array for each text; PAD and codes of no
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
        texts: Sequence[str],
        exclude: Sequence[npt.NDArray[np.integer]] | None,
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
        texts: Sequence[str],
        exclude: Sequence[npt.NDArray[np.integer]] | None,
        k: int,
        *,
        progress: Progress | None = None,
    ) -> tuple[Codes, Scores]:
        """Ranks the corpus by any kernel over one of its indexes.

        Args:
            ranking: the kernel, which sees the index, the terms of the texts and what is excluded.
            index: which of the indexes it is over.
            texts: n query texts.
            exclude: as `bm25`.
            k: as `bm25`.
            progress: as `bm25`.

        Returns:
            Codes int32 [n, k] and scores int64 [n, k], as the kernel gives them.

        Raises:
            ValueError: k < 1, or texts and exclude differ in length.
        """
        queries, which = self._distinct(texts, exclude, k)
        codes = np.empty((len(queries), k), np.int32)
        scores = np.empty((len(queries), k), np.int64)
        wide = np.zeros(len(queries), bool)
        if ranking is bm25_topk:
            wide[:] = [is_wide(self._peak, query.terms) for query in queries]
        narrow = np.flatnonzero(~wide)
        codes[narrow], scores[narrow] = run_batches(
            functools.partial(ranking, getattr(self, index), k=k),
            [queries[i] for i in narrow],
            k,
            progress,
        )
        for i in np.flatnonzero(wide):
            codes[i], scores[i] = bm25_topk_wide(
                self._host_bm25, queries[i].terms, queries[i].exclude, k
            )
        return codes[which], scores[which]

    @functools.cached_property
    def _host_bm25(self) -> Bm25Index:
        """The BM25 index as NumPy arrays."""
        host: Bm25Index = jax.device_get(self.bm25_index)
        return host

    def _terms(self, text: str) -> Codes:
        """Ids of the known tokens of a text, in order."""
        ids = (self.vocabulary.get(token) for token in tokens(text))
        return np.array([i for i in ids if i is not None], np.int32)

    def _distinct(
        self, texts: Sequence[str], exclude: Sequence[npt.NDArray[np.integer]] | None, k: int
    ) -> tuple[list[Query], npt.NDArray[np.intp]]:
        """Checks the arguments; the distinct (text, exclude), and which of them each row is."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if exclude is not None and len(exclude) != len(texts):
            raise ValueError(f"{len(texts)} texts but {len(exclude)} sets of codes to exclude")
        nothing = np.zeros(0, np.int32)
        terms: dict[str, Codes] = {}
        position: dict[tuple[str, bytes], int] = {}
        queries: list[Query] = []
        which = np.empty(len(texts), np.intp)
        for row, text in enumerate(texts):
            codes = nothing if exclude is None else self._known(exclude[row])
            key = (text, codes.tobytes())
            if key not in position:
                position[key] = len(queries)
                if text not in terms:
                    terms[text] = self._terms(text)
                queries.append(Query(terms=terms[text], exclude=codes))
            which[row] = position[key]
        return queries, which

    def _known(self, codes: npt.NDArray[np.integer]) -> Codes:
        """The distinct codes of passages among `codes`, ascending."""
        codes = np.unique(codes)
        return codes[(codes >= 0) & (codes < self.n_passages)].astype(np.int32)
