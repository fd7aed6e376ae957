"""Many searches as arrays, each once however many rows ask for it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from herald_jax.data.ragged import Int32, Ragged

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Searches:
    """m searches: what is asked for, and what may not be returned.

    Rollouts of a question often end alike: lists are held once, searches point at them.

    Attributes:
        terms: lists of term ids, repeats kept.
        exclude: lists of distinct codes of passages, ascending.
        query: int64 [m], which list of terms each search asks for.
        taken: int64 [m], which list of codes it must not return.
    """

    terms: Ragged
    exclude: Ragged
    query: Positions
    taken: Positions

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, row: int) -> tuple[Int32, Int32]:
        """Terms and excluded codes of one search."""
        return self.terms[self.query[row]], self.exclude[self.taken[row]]

    def take(self, rows: npt.NDArray[np.integer]) -> "Searches":
        """The searches of the given rows, in that order."""
        return Searches(self.terms, self.exclude, self.query[rows], self.taken[rows])


def distinct_searches(
    terms: Ragged, exclude: Ragged | None, n_passages: int
) -> tuple[Searches, npt.NDArray[np.intp]]:
    """The distinct searches of n rows, and which of them each row is, [n].

    Args:
        terms: n lists of term ids.
        exclude: n lists of codes in any order; repeats, PAD and codes of no passage are dropped.
            None excludes nothing.
        n_passages: N.

    Raises:
        ValueError: terms and exclude differ in length.
    """
    if exclude is not None and len(exclude) != len(terms):
        raise ValueError(f"{len(terms)} queries but {len(exclude)} sets of codes to exclude")
    asked, query = _distinct_lists(terms)
    if exclude is None:
        lists, taken = Ragged.of_lists([[]]), np.zeros(len(query), np.int64)
    else:
        lists, taken = _distinct_lists(_passages_alone(exclude, n_passages))
    pairs, which = np.unique(query * len(lists) + taken, return_inverse=True)
    return Searches(asked, lists, pairs // len(lists), pairs % len(lists)), which


def _passages_alone(codes: Ragged, n_passages: int) -> Ragged:
    """The distinct codes of passages in each list, ascending."""
    row = np.repeat(np.arange(len(codes)), codes.lengths)
    real = (codes.values >= 0) & (codes.values < n_passages)
    kept = np.sort(row[real] * n_passages + codes.values[real])
    kept = kept[np.diff(kept, prepend=-1) > 0]
    row, code = np.divmod(kept, max(1, n_passages))
    return Ragged.of_lengths(code.astype(np.int32), np.bincount(row, minlength=len(codes)))


def _distinct_lists(lists: Ragged) -> tuple[Ragged, Positions]:
    """Equal lists once, at least one list; and which of them each list is, int64 [n]."""
    if not len(lists):
        return Ragged.of_lists([[]]), np.zeros(0, np.int64)
    values = np.ascontiguousarray(lists.values)
    # A list is told from others by its bytes.
    coded = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(lists),
        [None, pa.py_buffer(lists.offsets * values.itemsize), pa.py_buffer(values)],
    ).dictionary_encode()
    which = coded.indices.to_numpy().astype(np.int64)
    _, first = np.unique(which, return_index=True)
    return lists.take(first), which
