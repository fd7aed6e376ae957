"""Many queries of any length through a kernel that is compiled for few shapes.

Queries of similar size share a batch of fixed shape: the number of compiled programs is bounded by
the number of width buckets, whatever the data, and one long query does not pad the others.
"""

import functools
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import jax
import numpy as np
import numpy.typing as npt

from herald_jax.data.ragged import Ragged
from herald_jax.search.searches import Searches
from herald_jax.types import PAD

# Queries of a batch. Eight rows of scores stay in a processor's cache for corpora of usual size.
BATCH = 8

# Batches that one call of a program answers, one after another, where there are as many.
_BATCHES = 8

# Widths are 64, 256, 1024, ...: few, since the kernels' work follows the entries that there are.
_NARROWEST = 64
_STEP = 4

# Entries that are padded at a time.
_PADDED = 1 << 20

# Calls at the same time. One call leaves a processor idle while it scatters.
_THREADS = min(8, os.cpu_count() or 1)

Progress = Callable[[int, int], None]
Answers = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]


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


def width_buckets(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each length, the smallest width in use that holds as many entries."""
    widths = np.full(len(lengths), _NARROWEST, np.int64)
    while (short := widths < lengths).any():
        widths[short] *= _STEP
    return widths


def run_batches(
    ranking: Ranking, index: Any, searches: Searches, k: int, progress: Progress | None = None
) -> Answers:
    """Answers all searches, in the order given.

    Args:
        ranking: answers one batch; rows are independent.
        index: the arrays that it ranks by.
        searches: m searches.
        k: answers to a search.
        progress: called with the number of searches answered so far and m.

    Returns:
        Codes int32 [m, k] and scores int64 [m, k].
    """
    codes = np.full((len(searches), k), PAD, np.int32)
    scores = np.zeros((len(searches), k), np.int64)
    answered = 0

    def call(queries: npt.NDArray[np.int32], taken: npt.NDArray[np.int32]) -> Answers:
        found = _answer(index, queries, taken, ranking=ranking, k=k)
        return np.asarray(found[0]).reshape(-1, k), np.asarray(found[1]).reshape(-1, k)

    def collect() -> None:
        nonlocal answered
        members, answers = waiting.popleft()
        found_codes, found_scores = answers.result()
        codes[members], scores[members] = found_codes[: len(members)], found_scores[: len(members)]
        answered += len(members)
        if progress is not None:
            progress(answered, len(searches))

    waiting: deque[tuple[npt.NDArray[np.int64], Future[Answers]]] = deque()
    compiled = set()
    with ThreadPoolExecutor(_THREADS) as pool:
        for members, queries, taken in padded_calls(searches):
            shapes = queries.shape, taken.shape
            if shapes in compiled:
                answers = pool.submit(call, queries, taken)
            else:  # threads that start together would each compile it
                compiled.add(shapes)
                answers = Future()
                answers.set_result(call(queries, taken))
            waiting.append((members, answers))
            if len(waiting) > 2 * _THREADS:
                collect()
        while waiting:
            collect()
    return codes, scores


@functools.partial(jax.jit, static_argnames=("ranking", "k"))
def _answer(
    index: Any, queries: jax.Array, taken: jax.Array, *, ranking: Ranking, k: int
) -> tuple[jax.Array, jax.Array]:
    """Ranks batches [m, BATCH, L] and [m, BATCH, X] in turn: codes and scores [m, BATCH, k]."""
    return jax.lax.map(lambda batch: ranking(index, *batch, k=k), (queries, taken))


def padded_calls(
    searches: Searches,
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]]:
    """Batches of equal widths: which searches they hold, int32 [m, BATCH, L] and [m, BATCH, X]."""
    lengths = width_buckets(searches.terms.lengths)[searches.query]
    excluded_lengths = width_buckets(searches.exclude.lengths)[searches.taken]
    pairs = zip(lengths.tolist(), excluded_lengths.tolist(), strict=True)
    for length, excluded in sorted(set(pairs)):
        members = np.flatnonzero((lengths == length) & (excluded_lengths == excluded))
        at_once = BATCH * (_BATCHES if len(members) >= BATCH * _BATCHES else 1)
        step = at_once * max(1, _PADDED // (at_once * max(length, excluded)))
        for first in range(0, len(members), step):
            rows = members[first : first + step]
            queries = _padded(searches.terms, searches.query[rows], length, at_once)
            taken = _padded(searches.exclude, searches.taken[rows], excluded, at_once)
            for part, (some, others) in enumerate(zip(queries, taken, strict=True)):
                yield rows[part * at_once : (part + 1) * at_once], some, others


def _padded(
    lists: Ragged, rows: npt.NDArray[np.int64], width: int, at_once: int
) -> npt.NDArray[np.int32]:
    """Lists of `rows` as int32 [calls, at_once / BATCH, BATCH, width], PAD beyond them."""
    rows = np.pad(rows, (0, -len(rows) % at_once), constant_values=PAD)
    block = np.ascontiguousarray(lists.to_padded(rows, width).T)
    return block.reshape(-1, at_once // BATCH, BATCH, width)
