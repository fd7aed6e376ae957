"""BM25 retrieval with the same ranking on every device.

SPEC section 6. For a query q with tokens t (a repeated token counts again) and a passage p of |p|
tokens,

    score(q, p) = sum_t round(2^16 idf(t) tf (k1 + 1) / (tf + k1 (1 - b + b |p| / avgdl)))

with tf the occurrences of t in p. Every term's contribution is computed in float64 on the host and
rounded (to nearest, ties to even) to a multiple of 2^-16; sums of integers do not depend on their
order, so neither does the ranking.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009);
"okapi" has the idf of `rank_bm25` 0.2.2 with its floor for negative values, "lucene" the idf of
Lucene, and "lucene8" drops also the factor k1 + 1, as Lucene does since version 8 (which changes
scores, not their order).
"""

import functools
import math
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import scipy.sparse

from herald_jax.kernels.postings import Postings, build_postings, sum_postings
from herald_jax.kernels.topk import MAX_SCORE, exclude_codes, topk
from herald_jax.types import pytree

VARIANTS = ("okapi", "lucene", "lucene8")

# Integer scores are multiples of 1 / SCALE.
SCALE = 65_536

# Entries whose contributions are computed at a time.
_STRETCH = 1 << 20


@pytree
class Bm25Index:
    """Contributions of every (term, passage) and what bounds a query's score."""

    postings: Postings  # int32 values, in units of 1 / SCALE
    peak: jax.Array  # int32 [T] largest magnitude of a term's contribution, 0 for unused terms


def build_bm25(
    frequency: scipy.sparse.csc_array,
    *,
    k1: float = 1.5,
    b: float = 0.75,
    epsilon: float = 0.25,
    variant: str = "okapi",
) -> Bm25Index:
    """Builds the index on the host, in float64.

    Args:
        frequency: sparse [N, T] of occurrences, from `term_frequency`.
        k1: saturation of the term frequency, at least 0.
        b: weight of the passage length, 0 to 1.
        epsilon: "okapi" replaces a negative idf by epsilon times the average idf, at least 0.
        variant: one of VARIANTS.

    Returns:
        The index, on the default device.

    Raises:
        ValueError: a parameter is out of range, or a contribution leaves the range of integer
            scores.
    """
    values = _rounded(contributions(frequency, k1=k1, b=b, epsilon=epsilon, variant=variant))
    peak = np.zeros(max(1, frequency.shape[1]), np.int32)
    used = np.flatnonzero(np.diff(frequency.indptr))
    if used.size:
        peak[used] = np.maximum.reduceat(np.abs(values), frequency.indptr[used])
    return Bm25Index(postings=build_postings(frequency, values), peak=jnp.asarray(peak))


def contributions(
    frequency: scipy.sparse.csc_array,
    *,
    k1: float = 1.5,
    b: float = 0.75,
    epsilon: float = 0.25,
    variant: str = "okapi",
) -> npt.NDArray[np.float64]:
    """Computes each term's contribution to each passage that holds it, before any rounding.

    Args:
        frequency: sparse [N, T] of occurrences, from `term_frequency`.
        k1, b, epsilon, variant: as in `build_bm25`.

    Returns:
        float64 [stored entries], in the order of `frequency.indices`.

    Raises:
        ValueError: a parameter is out of range.
    """
    if not (math.isfinite(k1) and k1 >= 0):
        raise ValueError(f"k1 must be a finite number of at least 0, got {k1}")
    if not 0 <= b <= 1:
        raise ValueError(f"b must be in 0 .. 1, got {b}")
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon must be a finite number of at least 0, got {epsilon}")
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {', '.join(VARIANTS)}, got {variant!r}")
    if frequency.nnz == 0:
        return np.zeros(0)
    n_passages = frequency.shape[0]
    df = np.diff(frequency.indptr)
    if variant == "okapi":
        idf = _okapi_idf(df, n_passages, epsilon)
    else:
        idf = _of_each(df, lambda d: math.log(1 + (n_passages - d + 0.5) / (d + 0.5)))
    length = frequency.sum(axis=1)
    average = length.sum() / n_passages
    norm = k1 * (1 - b + b * length / average)
    factor = 1.0 if variant == "lucene8" else k1 + 1
    exact = np.repeat(idf, df)
    for first in range(0, frequency.nnz, _STRETCH):  # what is computed on the way is not small
        part = slice(first, first + _STRETCH)
        tf = frequency.data[part].astype(np.float64)
        exact[part] *= tf * factor / (tf + norm[frequency.indices[part]])
    return exact


@functools.partial(jax.jit, static_argnames="k")
def bm25_topk(
    index: Bm25Index, queries: jax.Array, exclude: jax.Array, *, k: int
) -> tuple[jax.Array, jax.Array]:
    """Ranks the passages of the corpus for each query.

    Order: score descending, then code ascending. A passage that shares no token with the query has
    score 0 and is a candidate like any other.

    Args:
        index: from `build_bm25`.
        queries: int32 [n, L] term ids, repeats kept; PAD and ids of no term add nothing. The sum of
            `index.peak` over a query must be at most MAX_SCORE.
        exclude: int32 [n, X] codes that may not be returned; PAD and codes of no passage are
            ignored.
        k: number of passages to return.

    Returns:
        Codes int32 [n, k], PAD where the corpus has fewer candidates, and scores int32 [n, k] in
        units of 1 / SCALE, NO_SCORE there.
    """
    chex.assert_rank([queries, exclude], 2)
    chex.assert_type([queries, exclude], jnp.int32)
    chex.assert_equal_shape_prefix([queries, exclude], 1)
    scores = sum_postings(index.postings, queries)
    return topk(exclude_codes(scores, exclude), k=k)


def _rounded(exact: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Contributions in units of 1 / SCALE; `exact` is overwritten."""
    exact *= SCALE
    np.rint(exact, out=exact)
    if exact.size and max(exact.max(), -exact.min()) > MAX_SCORE:
        raise ValueError(f"a contribution exceeds {MAX_SCORE / SCALE:.0f}; are k1 and b as meant?")
    return exact.astype(np.int32)


def _okapi_idf(
    df: npt.NDArray[np.integer], n_passages: int, epsilon: float
) -> npt.NDArray[np.float64]:
    """ln(N - df + 0.5) - ln(df + 0.5), negative values replaced by epsilon times the average.

    The average is over the terms that occur, negative values included; its sum is exactly rounded,
    so that the order of terms has no influence.
    """
    idf = _of_each(df, lambda d: math.log(n_passages - d + 0.5) - math.log(d + 0.5))
    used = idf[df > 0]
    floor = epsilon * (math.fsum(used) / len(used))
    return np.where(idf < 0, floor, idf)


def _of_each(
    df: npt.NDArray[np.integer], function: Callable[[int], float]
) -> npt.NDArray[np.float64]:
    """`function` of every document frequency, by the C library's logarithm, not a vectorised one.

    NumPy's logarithm is chosen by the processor and may differ in the last bit.
    """
    distinct, position = np.unique(df, return_inverse=True)
    return np.array([function(int(d)) for d in distinct], np.float64)[position]
