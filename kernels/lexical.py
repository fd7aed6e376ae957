"""Lexical retrieval: passages by the number of distinct tokens that they share with the query.

SPEC section 6:

    score(q, p) = | set(tokens of q) intersect set(tokens of p) |

The primary generator of laundering candidates: no weight to tune, and its scores are whole numbers.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from herald_jax.kernels.postings import Postings, build_postings, sum_postings
from herald_jax.kernels.topk import NO_SCORE, exclude_codes, topk
from herald_jax.types import PAD, pytree


@pytree
class LexicalIndex:
    """Which term is in which passage."""

    postings: Postings  # int8 values, 1 for each term in a passage


def build_lexical(frequency: scipy.sparse.csc_array) -> LexicalIndex:
    """Builds the index on the host.

    Args:
        frequency: sparse [N, T] of occurrences, from `term_frequency`.

    Returns:
        The index, on the default device.

    Raises:
        ValueError: there are more postings than int32 can count.
    """
    return LexicalIndex(postings=build_postings(frequency, np.ones(frequency.nnz, np.int8)))


@functools.partial(jax.jit, static_argnames=("k", "least"))
def lexical_topk(
    index: LexicalIndex, queries: jax.Array, exclude: jax.Array, *, k: int, least: int = 1
) -> tuple[jax.Array, jax.Array]:
    """Ranks the passages that share tokens with each query.

    Order: score descending, then code ascending.

    Args:
        index: from `build_lexical`.
        queries: int32 [n, L] term ids, of which repeats count once; PAD and ids of no term add
            nothing.
        exclude: int32 [n, X] codes that may not be returned; PAD and codes of no passage are
            ignored.
        k: number of passages to return.
        least: lowest score of a candidate; 0 ranks the passages that share nothing too.

    Returns:
        Codes int32 [n, k], PAD where there are fewer candidates, and scores int32 [n, k], NO_SCORE
        there.
    """
    chex.assert_rank([queries, exclude], 2)
    chex.assert_type([queries, exclude], jnp.int32)
    chex.assert_equal_shape_prefix([queries, exclude], 1)
    scores = sum_postings(index.postings, _distinct(queries))
    scores = jnp.where(scores < least, NO_SCORE, scores)
    return topk(exclude_codes(scores, exclude), k=k)


def _distinct(queries: jax.Array) -> jax.Array:
    """Each row's ids once, sorted, PAD in place of repeats."""
    ordered = jnp.sort(queries, axis=1)
    repeats = jnp.pad(ordered[:, 1:] == ordered[:, :-1], ((0, 0), (1, 0)))
    return jnp.where(repeats, PAD, ordered)
