"""What is taken of the ids that a log proposes, against a plain reading."""

import numpy as np
import pytest
import trajectory_strategies as strategies
from hypothesis import given
from hypothesis import strategies as st
from reference.detectors import retrieved_ids
from trajectory_arrays import Widths, encode

from herald_jax.kernels import programs
from herald_jax.kernels.admission import admitted
from herald_jax.types import PAD

ROWS = 4
PROPOSED = 12


def plain(proposed, row, codes, width):
    """The first distinct passages that were neither retrieved nor cited."""
    names = {*retrieved_ids(row.trajectory), *row.trajectory["citations"]}
    seen = {codes.of(name) for name in names}
    free = [code for code in proposed if 0 <= code < codes.passages and code not in seen]
    return list(dict.fromkeys(free))[:width]


def padded(lists, length):
    """int32 [length, B]."""
    return np.array([codes + [PAD] * (length - len(codes)) for codes in lists], np.int32).T


@pytest.mark.parametrize("width", [1, 3, PROPOSED, 16])
@given(block=strategies.blocks(ROWS), data=st.data())
def test_against_a_plain_reading(width, block, data):
    visible, _, codes = encode(block, Widths())
    lists = st.lists(st.integers(0, int(codes.passages) + 9), max_size=PROPOSED)
    proposed = data.draw(st.lists(lists, min_size=ROWS, max_size=ROWS))
    expected = [
        plain(of_row, row, codes, width) for of_row, row in zip(proposed, block.rows, strict=True)
    ]
    for length in (PROPOSED, 2 * PROPOSED):  # padding is never taken
        found = programs.admit(
            padded(proposed, length), visible, codes.passages, admit=admitted, width=width
        )
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, padded(expected, width))
