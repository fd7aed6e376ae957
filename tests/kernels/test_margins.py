import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.kernels.margins import first, worst

CONTRACTS, ROWS = 2, 3
# XLA flushes subnormal numbers to zero: no two margins differ by so little.
MARGIN = st.sampled_from([0.0, -0.0, 1.0, -0.4, 0.25, math.nan, math.inf, -math.inf]) | st.floats(
    -4, 4, width=32, allow_subnormal=False
)


def select(margins, isolated):
    """Both selectors, from margins that are worked out already."""
    firsts = jax.vmap(first, in_axes=(0, None))(margins, isolated)
    return jnp.where(isolated.any(axis=0)[None], firsts, jnp.nan), worst(margins, isolated)


selected = jax.jit(select)


def plain(margins, isolated):
    """First-visible and oracle-worst of one trajectory under one contract, None where none."""
    counted = [m for m, counts in zip(margins, isolated, strict=True) if counts]
    leading = counted[0] if counted and math.isfinite(counted[0]) else None
    return leading, max((m for m in counted if math.isfinite(m)), default=None)


def found(margins, isolated):
    picked = selected(np.asarray(margins, np.float32), np.asarray(isolated))
    return [np.where(np.isfinite(v), v, np.nan) for v in map(np.asarray, picked)]


# Up to 16 edits are straight code, more are a loop.
@pytest.mark.parametrize("edits", [0, 1, 5, 16, 17, 40])
@given(data=st.data())
def test_against_a_plain_reading(edits, data):
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    pool = np.array(data.draw(st.lists(MARGIN, min_size=1, max_size=6)), np.float32)
    margins = rng.choice(pool, (CONTRACTS, edits, ROWS))
    isolated = rng.random((edits, ROWS)) < data.draw(st.sampled_from([0.1, 0.5, 0.9]))
    both = found(margins, isolated)
    for j in range(CONTRACTS):
        for row in range(ROWS):
            expected = plain(margins[j, :, row].tolist(), isolated[:, row].tolist())
            got = [v[j, row].item() for v in both]
            assert [None if math.isnan(v) else v for v in got] == list(expected)


def test_a_margin_that_is_no_number():
    # First-visible drops the trajectory, oracle-worst the candidate.
    margins = [[[math.nan], [0.25], [math.inf], [-1.0]]]
    leading, largest = found(margins, [[True]] * 4)
    assert math.isnan(leading[0, 0]) and largest[0, 0] == 0.25
    # Not isolated: as if it were not there.
    leading, largest = found(margins, [[False], [True], [False], [True]])
    assert leading[0, 0] == largest[0, 0] == 0.25


def test_without_a_pair_nothing_counts():
    leading, largest = found(np.ones((1, 3, 1)), np.zeros((3, 1), bool))
    assert np.isnan(leading).all() and np.isnan(largest).all()


def test_a_flag_of_the_first_isolated_edit():
    flags = np.array([[True, False], [False, True], [True, True]])
    isolated = np.array([[False, False], [True, False], [True, False]])
    assert jax.jit(first)(flags, isolated).tolist() == [False, False]
    assert jax.jit(first)(~flags, isolated).tolist() == [True, False]


@pytest.mark.parametrize("edits", [3, 20])
def test_edits_that_do_not_count_may_be_padding(edits):
    rng = np.random.default_rng(edits)
    margins = rng.normal(size=(CONTRACTS, edits, ROWS)).astype(np.float32)
    isolated = rng.random((edits, ROWS)) < 0.5
    wider = np.concatenate([margins, np.full((CONTRACTS, 25, ROWS), np.nan, np.float32)], axis=1)
    more = np.concatenate([isolated, np.zeros((25, ROWS), bool)])
    for ours, theirs in zip(found(margins, isolated), found(wider, more), strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True)


def test_compiled_or_not_one_or_many():
    rng = np.random.default_rng(1)
    margins = rng.normal(size=(CONTRACTS, 20, ROWS)).astype(np.float32)
    margins[0, 3, 1] = np.nan
    isolated = rng.random((20, ROWS)) < 0.5
    whole = selected(margins, isolated)
    with jax.disable_jit():
        eager = select(margins, isolated)
    alone = [selected(margins[:, :, row], isolated[:, row]) for row in range(ROWS)]
    for number, expected in enumerate(map(np.asarray, whole)):
        assert np.array_equal(expected, eager[number], equal_nan=True)
        columns = np.stack([np.asarray(one[number]) for one in alone], axis=-1)
        assert np.array_equal(expected, columns, equal_nan=True)
