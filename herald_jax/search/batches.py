"""Many queries of any length through a kernel that is compiled for few shapes.

Queries of similar size share a batch of fixed shape: the number of compiled programs is bounded by
the number of width buckets, whatever the data, and one long query does not pad the others.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np
import numpy.typing as npt

from herald_jax.types import PAD

# Queries of a batch. Eight rows of scores stay in a processor's cache for corpora of usual size.
BATCH = 8

# Widths are 64, 256, 1024, ...: few, since the kernels' work follows the entries that there are.
_NARROWEST = 64
_STEP = 4

# Batches handed to the device before the oldest result is waited for.
_IN_FLIGHT = 16

Progress = Callable[[int, int], None]
Kernel = Callable[
    [npt.NDArray[np.int32], npt.NDArray[np.int32]], tuple[jax.Array, jax.Array]
]  # queries [BATCH, L] and excluded codes [BATCH, X] to codes and scores [BATCH, k]


@dataclass(frozen=True, slots=True)
class Query:
    """One search: what is asked for and what may not be returned."""

    terms: npt.NDArray[np.int32]  # [l] term ids, repeats kept
    exclude: npt.NDArray[np.int32]  # [x] passage codes


def width_bucket(longest: int) -> int:
    """The smallest width in use that holds `longest` entries."""
    width = _NARROWEST
    while width < longest:
        width *= _STEP
    return width


def pad_rows(
    rows: Sequence[npt.NDArray[np.int32]], width: int, n_rows: int | None = None
) -> npt.NDArray[np.int32]:
    """Stacks rows of at most `width` entries into int32 [n_rows or len(rows), width], PAD after."""
    padded = np.full((len(rows) if n_rows is None else n_rows, width), PAD, np.int32)
    for target, row in zip(padded, rows, strict=False):
        target[: len(row)] = row
    return padded


def run_batches(
    kernel: Kernel, queries: Sequence[Query], k: int, progress: Progress | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Answers all queries, in the order given.

    Args:
        kernel: answers one batch; rows are independent.
        queries: n queries.
        k: answers to a query.
        progress: called with the number of queries answered so far and n.

    Returns:
        Codes int32 [n, k] and scores int64 [n, k].
    """
    codes = np.full((len(queries), k), PAD, np.int32)
    scores = np.zeros((len(queries), k), np.int64)
    in_flight: list[tuple[list[int], tuple[jax.Array, jax.Array]]] = []
    answered = 0

    def collect() -> None:
        nonlocal answered
        members, (batch_codes, batch_scores) = in_flight.pop(0)
        codes[members] = np.asarray(batch_codes)[: len(members)]
        scores[members] = np.asarray(batch_scores)[: len(members)]
        answered += len(members)
        if progress is not None:
            progress(answered, len(queries))

    for (length, excluded), members in _grouped(queries):
        terms = pad_rows([queries[i].terms for i in members], length, BATCH)
        exclude = pad_rows([queries[i].exclude for i in members], excluded, BATCH)
        in_flight.append((members, kernel(terms, exclude)))
        if len(in_flight) > _IN_FLIGHT:
            collect()
    while in_flight:
        collect()
    return codes, scores


def _grouped(queries: Sequence[Query]) -> list[tuple[tuple[int, int], list[int]]]:
    """Splits queries into batches of equal widths: ((L, X), up to BATCH positions) each."""
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for position, query in enumerate(queries):
        widths = width_bucket(len(query.terms)), width_bucket(len(query.exclude))
        groups[widths].append(position)
    return [
        (widths, members[first : first + BATCH])
        for widths, members in groups.items()
        for first in range(0, len(members), BATCH)
    ]
