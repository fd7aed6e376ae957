"""Blocks: shapes are few, no question is divided, no row is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.blocks import bucket, group_blocks
from herald_jax.types import PAD


@given(st.integers(0, 10**6), st.lists(st.integers(1, 100), min_size=1))
def test_bucket(n, buckets):
    size = bucket(n, buckets)
    assert size >= n
    if n <= max(buckets):
        assert size == min(b for b in buckets if b >= n)
    else:
        assert size & (size - 1) == 0
        assert size < 2 * n


@pytest.mark.parametrize(("n", "buckets"), [(-1, [4]), (3, [])])
def test_no_bucket(n, buckets):
    with pytest.raises(ValueError, match="size"):
        bucket(n, buckets)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 20)), max_size=12),
    st.sampled_from([1, 2, 4, 8]),
)
def test_group_blocks(runs, block_rows):
    # Question numbers need not be dense.
    question = np.repeat(np.cumsum([gap for gap, _ in runs]), [n for _, n in runs]).astype(np.int32)
    blocks = group_blocks(question, block_rows)
    rows = np.concatenate([block.rows for block in blocks]) if blocks else np.empty(0, np.int32)
    assert sorted(rows[rows != PAD]) == list(range(len(question)))
    for block in blocks:
        assert block.rows.dtype == block.groups.dtype == np.int32
        assert len(block.rows) == max(block_rows, block.width) == len(block.groups) * block.width
        real = block.groups[block.groups != PAD]
        assert real.tolist() == sorted(set(real.tolist()))
        assert (block.groups[len(real) :] == PAD).all()
        for group, number in enumerate(block.groups):
            inside = block.rows[group * block.width : (group + 1) * block.width]
            members = np.flatnonzero(question == number) if number != PAD else []
            assert inside.tolist() == list(members) + [PAD] * (block.width - len(members))
            assert number == PAD or block.width < 2 * len(members)
    shapes = {(len(block.rows), block.width) for block in blocks}
    assert len(shapes) <= 6  # widths 1 to 32, whatever the data


def test_group_blocks_refuses_what_it_cannot_cut():
    with pytest.raises(ValueError, match="sorted"):
        group_blocks(np.array([1, 0], np.int32), 4)
    with pytest.raises(ValueError, match="at least one row"):
        group_blocks(np.array([0], np.int32), 0)
