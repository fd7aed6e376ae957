import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.retrieval import ranking

from herald_jax.kernels.topk import BLOCK, MAX_SCORE, NO_SCORE, exclude_codes, topk
from herald_jax.types import PAD

jitted = jax.jit(topk, static_argnames="k")

# Few distinct values make ties; the ends of the range are where bits could go wrong.
SCORES = st.one_of(st.integers(-2, 2), st.sampled_from([-MAX_SCORE, MAX_SCORE]), st.just(NO_SCORE))


# Blocks of scores and k: one block, more asked for than there is, k blocks or fewer, many blocks.
SIZES = [(1, 1), (1, 200), (3, 3), (6, 2), (20, 16)]


@st.composite
def rows_of_scores(draw, blocks):
    palette = draw(st.lists(SCORES, min_size=1, max_size=5))
    seed = draw(st.integers(0, 2**32 - 1))
    picks = np.random.default_rng(seed).integers(0, len(palette), (2, blocks * BLOCK))
    return np.array(palette, np.int32)[picks]


@settings(deadline=None, max_examples=60)
@given(data=st.data(), size=st.sampled_from(SIZES))
def test_equals_a_sort_by_score_then_position(data, size):
    blocks, k = size
    scores = data.draw(rows_of_scores(blocks))
    codes, best = map(np.asarray, jitted(jnp.asarray(scores), k=k))
    for row in range(len(scores)):
        out = np.flatnonzero(scores[row] == NO_SCORE).tolist()
        expected = ranking(scores[row].tolist(), out, k)
        missing = k - len(expected)
        assert codes[row].tolist() == expected + [PAD] * missing
        assert best[row].tolist() == scores[row][expected].tolist() + [NO_SCORE] * missing


def test_neighbouring_scores_that_float32_cannot_tell_apart():
    scores = np.full((1, 4 * BLOCK), 2**30, np.int32)
    scores[0, 300], scores[0, 7] = 2**30 + 1, 2**30 - 1
    codes, _ = topk(jnp.asarray(scores), k=2)
    assert codes.tolist() == [[300, 0]]


@pytest.mark.parametrize("low", [0, -(2**23), -MAX_SCORE])
def test_small_and_negative_scores_keep_their_order(low):
    # Integers below 2^23 are the bits of subnormal floats, which a device may flush to zero.
    scores = low + np.arange(2 * BLOCK, dtype=np.int32)[None, :]
    codes, _ = topk(jnp.asarray(scores), k=3)
    assert codes.tolist() == [[255, 254, 253]]


def test_exclusion_ignores_padding_and_foreign_codes():
    scores = jnp.zeros((2, BLOCK), jnp.int32)
    codes = jnp.array([[0, PAD, 2, 0], [BLOCK, 2**31 - 1, PAD, BLOCK - 1]], jnp.int32)
    kept = np.asarray(exclude_codes(scores, codes))
    assert np.flatnonzero(kept[0] == NO_SCORE).tolist() == [0, 2]
    assert np.flatnonzero(kept[1] == NO_SCORE).tolist() == [BLOCK - 1]


@pytest.mark.parametrize(("width", "k", "complaint"), [(BLOCK, 0, "k must"), (100, 3, "multiple")])
def test_static_faults_are_refused(width, k, complaint):
    with pytest.raises(ValueError, match=complaint):
        topk(jnp.zeros((1, width), jnp.int32), k=k)


def test_scores_must_be_integers():
    with pytest.raises(AssertionError):
        topk(jnp.zeros((1, BLOCK), jnp.float32), k=1)


def test_jit_equals_eager():
    scores = jnp.asarray(np.random.default_rng(0).integers(-3, 3, (3, 5 * BLOCK)).astype(np.int32))
    both = topk(scores, k=9), jitted(scores, k=9)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), *both))
