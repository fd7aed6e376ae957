"""The search terms of question and answer, as integers: all that candidate generators need of them.

The text that is searched is the question, a space and the answer (SPEC section 6). No token spans a
space, so that the terms of the two are found apart.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from herald_jax.data.flat import Flat
from herald_jax.data.ragged import Ragged
from herald_jax.data.strings import plain
from herald_jax.search.vocabulary import Vocabulary


def query_terms(flat: Flat, lines: NDArray[np.int64], *, vocabulary: Vocabulary) -> Ragged:
    """Term ids of question and answer of some rows, in order, repeats kept.

    Args:
        flat: rows in the order of the file.
        lines: int64 [m] lines of the rows that are asked for, ascending.
        vocabulary: tokens that the corpus holds; others are left out.

    Returns:
        m lists.
    """
    rows = pa.array(np.searchsorted(flat.line, lines))
    question = vocabulary.encode(plain(flat.question.take(rows)))
    answer = vocabulary.encode(plain(flat.answer.take(rows)).fill_null(""))
    return Ragged.side_by_side(question, answer)
