"""Ragged lists against lists of lists."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.aligned import aligned
from herald_jax.data.ragged import Ragged
from herald_jax.types import PAD

LISTS = st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=5), min_size=1, max_size=8)


def as_lists(ragged):
    return [ragged[row].tolist() for row in range(len(ragged))]


@given(LISTS)
def test_lists_survive(lists):
    ragged = Ragged.of_lists(lists)
    assert ragged.values.dtype == np.int32
    assert ragged.offsets.dtype == np.int64
    assert as_lists(ragged) == lists
    assert ragged.lengths.tolist() == [len(items) for items in lists]


@given(LISTS, st.data())
def test_take_and_pad(lists, data):
    rows = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=10))
    ragged = Ragged.of_lists(lists)
    assert as_lists(ragged.take(rows)) == [lists[row] for row in rows]
    padded_rows = data.draw(st.lists(st.integers(PAD, len(lists) - 1), max_size=10))
    block = ragged.to_padded(padded_rows, 6)
    assert block.dtype == np.int32
    assert block.shape == (6, len(padded_rows))
    for column, row in enumerate(padded_rows):
        items = [] if row == PAD else lists[row]
        assert block[:, column].tolist() == items + [PAD] * (6 - len(items))


@given(LISTS, st.data())
def test_joining_neighbours(lists, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(lists)), max_size=4)))
    outer = np.array([0, *cuts, len(lists)], np.int64)
    expected = [[value for items in lists[a:b] for value in items] for a, b in pairwise(outer)]
    assert as_lists(Ragged.of_lists(lists).concatenated(outer)) == expected


def test_no_lists():
    ragged = Ragged.of_lists([])
    assert len(ragged) == 0
    assert ragged.to_padded([PAD, PAD], 2).tolist() == [[PAD, PAD], [PAD, PAD]]
    assert ragged.to_padded([], 2).shape == (2, 0)


@pytest.mark.parametrize("row", [-2, 2])
def test_rows_out_of_range_are_refused(row):
    ragged = Ragged.of_lists([[1], [2]])
    for act in (ragged.take, lambda rows: ragged.to_padded(rows, 1), lambda rows: ragged[rows[0]]):
        with pytest.raises(IndexError):
            act([row])


def test_padding_is_no_row_and_nothing_is_cut_off():
    ragged = Ragged.of_lists([[1], [2, 3]])
    with pytest.raises(IndexError):
        ragged.take([PAD])
    with pytest.raises(ValueError, match="does not fit"):
        ragged.to_padded([1], 1)


def test_a_block_is_where_a_device_takes_it_without_copying():
    ragged = Ragged.of_lists([[1, 2], [], [3]])
    for width in (2, 3, 40):
        block = ragged.to_padded([2, 0, 0, PAD, 1], width)
        assert block.ctypes.data % 64 == 0
        assert block.flags.c_contiguous
        placed = jax.device_put(block, jax.local_devices(backend="cpu")[0])
        assert placed.unsafe_buffer_pointer() == block.ctypes.data


@pytest.mark.parametrize("shape", [(), (0,), (3,), (5, 7), (2, 0, 4)])
@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float64])
def test_aligned_arrays_have_the_shape_that_was_asked_for(shape, dtype):
    made = aligned(shape, dtype)
    assert made.shape == shape and made.dtype == dtype
    assert made.size == 0 or made.ctypes.data % 64 == 0
    made[...] = 1
    assert made.sum() == made.size
