"""BM25 of queries whose scores may leave the range of int32.

A model that loops can answer with one rare word ten thousand times. Its score is well defined, and
too large for the device's integers: such a query is summed on the host, in int64.
"""

import numpy as np
import numpy.typing as npt

from herald_jax.data.ragged import Ragged
from herald_jax.kernels.bm25 import Bm25Index
from herald_jax.kernels.topk import MAX_SCORE, NO_SCORE
from herald_jax.types import PAD


def is_wide(peak: npt.NDArray[np.int32], queries: Ragged) -> npt.NDArray[np.bool_]:
    """Whether the score of each query may leave the range that the kernel sums in.

    Args:
        peak: int32 [T], of the index.
        queries: n lists of term ids, no PAD among them.

    Returns:
        bool [n].
    """
    total = np.zeros(len(queries.values) + 1, np.int64)
    np.cumsum(peak[queries.values], out=total[1:])
    return np.diff(total[queries.offsets]) > MAX_SCORE


def bm25_topk_wide(
    index: Bm25Index, terms: npt.NDArray[np.int32], exclude: npt.NDArray[np.int32], k: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Ranks as `kernels.bm25.bm25_topk` does, for one query, summing in int64.

    Args:
        index: the index, its leaves NumPy arrays.
        terms: int32 [l] term ids, repeats kept, no PAD among them.
        exclude: int32 [x] codes of passages.
        k: number of passages to return.

    Returns:
        Codes int32 [k], PAD where candidates run out, and scores int64 [k], NO_SCORE there.
    """
    postings = index.postings
    n_passages = int(postings.n_passages)
    total = np.zeros(n_passages, np.int64)
    for term, count in zip(*np.unique(terms, return_counts=True), strict=True):
        row = postings.row[term]
        if row != PAD:
            total += count * postings.dense[row, :n_passages].astype(np.int64)
        else:
            span = slice(postings.start[term], postings.start[term + 1])
            total[postings.passage[span]] += count * postings.value[span].astype(np.int64)
    ranked = np.argsort(-total, kind="stable")
    ranked = ranked[~np.isin(ranked, exclude)][:k]
    codes = np.full(k, PAD, np.int32)
    scores = np.full(k, NO_SCORE, np.int64)
    codes[: len(ranked)] = ranked
    scores[: len(ranked)] = total[ranked]
    return codes, scores
