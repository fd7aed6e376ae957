"""An inverted index with an integer for every (term, passage), and sums of it over query tokens.

BM25 (`bm25.py`) and the lexical score (`lexical.py`) differ only in that integer. Two layouts share
the work, because both extremes of Zipf's law are common in a query:

- *dense*: a term in more than 1/32 of the passages has a row with an entry for every passage, and
  adding it is one pass over consecutive memory;
- *tail*: every other term lists its passages and their values (compressed columns), read in chunks
  and scattered.

Which term lies where changes the speed alone, never a sum: the integers are the same.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import scipy.sparse
from jax import lax

from herald_jax.kernels.topk import BLOCK, NO_SCORE
from herald_jax.types import PAD, pytree

# A term in more than one passage of this many has a dense row, while the rows fit the budget.
DENSE_SHARE = 32
DENSE_BYTES = 256 * 2**20

# Dense rows of one query added in one step: a query's scores are read and written once for all.
ROWS = 8

# The tail is read in chunks of this many postings, this many chunks a step.
CHUNK = 64
CHUNKS = 32


@pytree
class Postings:
    """Integer values of (term, passage) pairs.

    Axes: N passages, W = N rounded up to a multiple of `BLOCK`, T terms, D dense rows, the last of
    them zeros and of no term, P postings of the tail, the last of them a zero and of no term. W and
    T are at least one: an empty corpus needs no case of its own.
    """

    n_passages: jax.Array  # int32 [] N
    row: jax.Array  # int32 [T] dense row of a term, PAD when it is in the tail
    start: jax.Array  # int32 [T + 1] first posting of a term in the tail
    passage: jax.Array  # int32 [P] passages of a term ascending
    value: jax.Array  # int8 or int32 [P]
    dense: jax.Array  # int8 or int32 [D, W]


def term_frequency(
    tokens: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], n_terms: int
) -> scipy.sparse.csc_array:
    """Counts every term in every passage.

    Args:
        tokens: int32 [total] term ids of all passages, one passage after another.
        offsets: int64 [N + 1]; passage i holds tokens[offsets[i]:offsets[i + 1]].
        n_terms: T, the number of terms.

    Returns:
        Sparse int32 [N, T] in compressed columns, passages of a column ascending.

    Raises:
        ValueError: the offsets do not partition the tokens, or a token is not in 0 .. T-1.
    """
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(tokens):
        raise ValueError(f"offsets must run from 0 to the number of tokens, {len(tokens)}")
    if np.any(np.diff(offsets) < 0):
        raise ValueError("offsets must not decrease")
    if len(tokens) and not (tokens.min() >= 0 and tokens.max() < n_terms):
        raise ValueError(f"tokens must be term ids in 0 .. {n_terms - 1}")
    # scipy keeps positions in the type of the offsets: half the memory where int32 will do.
    fits = len(tokens) <= np.iinfo(np.int32).max
    counts = scipy.sparse.csr_array(
        (np.ones(len(tokens), np.int32), tokens, offsets.astype(np.int32) if fits else offsets),
        shape=(len(offsets) - 1, n_terms),
    ).tocsc()
    counts.sum_duplicates()
    return counts


def build_postings(frequency: scipy.sparse.csc_array, values: npt.NDArray[np.integer]) -> Postings:
    """Lays out one integer for each stored entry of `frequency`.

    Args:
        frequency: sparse [N, T] from `term_frequency`; only its structure is read.
        values: int8 or int32 [stored entries], in the order of `frequency.indices`.

    Returns:
        The postings, on the default device.

    Raises:
        ValueError: there are more postings than int32 can count.
    """
    n_passages, n_terms = frequency.shape
    if frequency.nnz > np.iinfo(np.int32).max - 1:
        raise ValueError(f"{frequency.nnz} postings do not fit int32 positions; split the corpus")
    width = BLOCK * max(1, -(-n_passages // BLOCK))
    df = np.diff(frequency.indptr).astype(np.int64)
    common = np.flatnonzero(df * DENSE_SHARE > n_passages)
    budget = DENSE_BYTES // (width * values.itemsize)
    by_df = common[np.argsort(-df[common], kind="stable")]
    dense_terms = np.sort(by_df[:budget])

    row = np.full(max(1, n_terms), PAD, np.int32)
    row[dense_terms] = np.arange(len(dense_terms), dtype=np.int32)
    dense = np.zeros((len(dense_terms) + 1, width), values.dtype)
    for target, term in zip(dense, dense_terms.tolist(), strict=False):
        span = slice(frequency.indptr[term], frequency.indptr[term + 1])
        target[frequency.indices[span]] = values[span]

    listed = row[:n_terms] == PAD
    in_tail = np.repeat(listed, df)
    start = np.zeros(len(row) + 1, np.int32)
    np.cumsum(np.where(listed, df, 0), out=start[1 : n_terms + 1])
    return Postings(
        n_passages=jnp.asarray(n_passages, jnp.int32),
        row=jnp.asarray(row),
        start=jnp.asarray(start),
        passage=jnp.asarray(np.pad(frequency.indices[in_tail].astype(np.int32), (0, 1))),
        value=jnp.asarray(np.pad(values[in_tail], (0, 1))),
        dense=jnp.asarray(dense),
    )


def sum_postings(postings: Postings, queries: jax.Array) -> jax.Array:
    """Sums, for every passage, the values of a query's tokens: score[n, p] = sum_l v[q[n, l], p].

    Args:
        postings: values v of terms in passages.
        queries: int32 [n, L] term ids, each repeat counting; PAD and ids of no term add nothing.

    Returns:
        int32 [n, W]; NO_SCORE at the positions from N on, which are no passages.
    """
    chex.assert_rank(queries, 2)
    chex.assert_type(queries, jnp.int32)
    chex.assert_rank([postings.row, postings.start, postings.passage, postings.value], 1)
    chex.assert_rank(postings.dense, 2)
    width = postings.dense.shape[1]
    known = (queries >= 0) & (queries < postings.row.shape[0])
    term = jnp.where(known, queries, 0)
    row = jnp.where(known, postings.row[term], PAD)

    # Positions past the last passage start at NO_SCORE and stay: dense rows hold zeros there.
    is_passage = jnp.arange(width, dtype=jnp.int32) < postings.n_passages
    start = jnp.where(is_passage, jnp.int32(0), jnp.int32(NO_SCORE))
    scores = jnp.broadcast_to(start[None, :], (queries.shape[0], width))
    scores = _add_dense(scores, postings, row)
    return _add_tail(scores, postings, term, known & (row == PAD))


def _add_dense(scores: jax.Array, postings: Postings, row: jax.Array) -> jax.Array:
    """Adds the dense rows `row` [n, L], PAD where there is none, to the scores [n, W]."""
    zeros = postings.dense.shape[0] - 1
    present = row != PAD
    # Each query's rows first, then the row of zeros, so that groups of ROWS can be full.
    row = jnp.pad(-jnp.sort(-row, axis=1), ((0, 0), (0, -row.shape[1] % ROWS)), constant_values=PAD)
    row = jnp.where(row == PAD, zeros, row)
    before, end = _groups(present.sum(axis=1, dtype=jnp.int32), ROWS)

    def add(step: jax.Array, scores: jax.Array) -> jax.Array:
        query = _group_of(end, step)
        first = ROWS * (step - before[query])
        total = lax.dynamic_index_in_dim(scores, query, keepdims=False)
        for i in range(ROWS):
            values = lax.dynamic_index_in_dim(postings.dense, row[query, first + i], keepdims=False)
            total = total + values.astype(jnp.int32)
        updated: jax.Array = lax.dynamic_update_index_in_dim(scores, total, query, 0)
        return updated

    summed: jax.Array = lax.fori_loop(0, end[-1], add, scores)
    return summed


def _add_tail(
    scores: jax.Array, postings: Postings, term: jax.Array, in_tail: jax.Array
) -> jax.Array:
    """Adds the listed postings of `term` [n, L], where `in_tail`, to the scores [n, W].

    The postings of all tokens are cut into chunks; a step adds CHUNKS of them, whichever queries
    they belong to, so that work follows the postings that there are, not the longest list.
    """
    width = scores.shape[1]
    query = jnp.repeat(jnp.arange(term.shape[0], dtype=jnp.int32), term.shape[1])
    start = postings.start[term].reshape(-1)
    length = jnp.where(in_tail, postings.start[term + 1] - postings.start[term], 0).reshape(-1)
    before, end = _groups(length, CHUNK)
    # Position of a token's chunk c, counted over all tokens: first + CHUNK c, up to its limit.
    first, limit = start - CHUNK * before, start + length
    base = query * width
    lane = jnp.arange(CHUNK, dtype=jnp.int32)[None, :]

    def add(step: jax.Array, flat: jax.Array) -> jax.Array:
        chunk = step * CHUNKS + jnp.arange(CHUNKS, dtype=jnp.int32)
        token = _group_of(end, chunk)
        posting = (first[token] + CHUNK * chunk)[:, None] + lane
        # False past the end of a list, and for every posting of a chunk past the last.
        live = posting < limit[token][:, None]
        posting = jnp.where(live, posting, 0)
        value = jnp.where(live, postings.value[posting].astype(jnp.int32), 0)
        target = base[token][:, None] + postings.passage[posting]
        return flat.at[target].add(value, mode="promise_in_bounds")

    steps = (end[-1] + CHUNKS - 1) // CHUNKS
    summed: jax.Array = lax.fori_loop(0, steps, add, scores.reshape(-1))
    return summed.reshape(scores.shape)


def _groups(counts: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """Cuts counts [m] into groups of `size`: how many come before each, and with it, [m] both."""
    groups = (counts + size - 1) // size
    end = jnp.cumsum(groups)
    return end - groups, end


def _group_of(end: jax.Array, group: jax.Array) -> jax.Array:
    """The count that each group was cut from; the last one for numbers past the end."""
    owner = jnp.searchsorted(end, group, side="right")
    return jnp.minimum(owner, end.shape[0] - 1)
