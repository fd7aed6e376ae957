import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import statistics as reference
from scipy.stats import chi2

from herald_jax.kernels.draws import (
    MAX_INDICES,
    draw_indices,
    draw_words,
    replicate_keys,
    scale_to_range,
    seed_words,
)


@jax.jit
def _indices(seed, replicates, draw, n, stage):
    keys = jax.vmap(replicate_keys, in_axes=(None, 0, None))(seed, replicates, stage)
    return jax.vmap(draw_indices, in_axes=(0, 0, None, None))(*keys, draw, n)


def indices(seed, replicates, n, draws=None, stage=0):
    """int32 [replicates, draws]."""
    return np.asarray(
        _indices(
            seed_words(seed),
            jnp.arange(replicates, dtype=jnp.uint32),
            jnp.arange(draws or n, dtype=jnp.uint32),
            np.uint32(n),
            np.uint32(stage),
        )
    )


def chi_square_p(observed, expected):
    statistic = ((observed - expected) ** 2 / expected).sum()
    return chi2.sf(statistic, observed.size - 1)


@settings(deadline=None)
@given(
    word=st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 0xFFFF, 0x10000, 2**32 - 1]),
    n=st.integers(1, MAX_INDICES) | st.sampled_from([1, 2, 65535, 65536, 65537, MAX_INDICES]),
)
def test_scaling_is_the_product_of_whole_words(word, n):
    found = scale_to_range(jnp.asarray([word], jnp.uint32), jnp.uint32(n))
    assert int(found[0]) == word * n >> 32


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**64 - 1])
@pytest.mark.parametrize("n", [2, 5, 593])
def test_stream_equals_the_reading_in_plain_integers(seed, n):
    assert indices(seed, 3, n).tolist() == [reference.draws(seed, r, n) for r in range(3)]


@pytest.mark.parametrize("stage", [0, 1, 77, 2**31 + 5, 2**32 - 1])
def test_words_equal_the_reading_in_plain_integers(stage):
    keys = replicate_keys(seed_words(2**63 + 9), jnp.uint32(4), jnp.uint32(stage))
    found = draw_words(*keys, jnp.arange(50, dtype=jnp.uint32))
    assert found.tolist() == reference.words(2**63 + 9, 4, stage, range(50))


def test_a_draw_depends_on_its_numbers_alone():
    n, seed = 1000, seed_words(11)
    whole = indices(11, 8, n)
    late = _indices(
        seed,
        jnp.arange(5, 8, dtype=jnp.uint32),
        jnp.arange(300, 400, dtype=jnp.uint32),
        np.uint32(n),
        np.uint32(0),
    )
    assert np.array_equal(whole[5:, 300:400], late)


@pytest.mark.parametrize("n", [7, 593, 10_000])
def test_indices_are_uniform(n):
    drawn = indices(3, 2_000_000 // n, n)
    counts = np.bincount(drawn.ravel(), minlength=n)
    assert counts.size == n
    assert 1e-4 < chi_square_p(counts, drawn.size / n) < 1 - 1e-4


def test_two_draws_of_a_replicate_are_independent():
    n = 8
    drawn = indices(5, 100_000, n)
    for a, b in ((0, 1), (0, 7), (3, 4)):
        pairs = np.bincount(drawn[:, a] * n + drawn[:, b], minlength=n * n)
        assert 1e-4 < chi_square_p(pairs, drawn.shape[0] / n**2) < 1 - 1e-4


def test_neighbouring_replicates_seeds_and_stages_are_independent():
    n = 8
    here, other_seed = indices(5, 50_001, n), indices(6, 50_001, n)
    next_stage, last_stage = (indices(5, 50_001, n, stage=s) for s in (1, 2**31))
    others = (other_seed, next_stage, last_stage)
    for a, b in ((here[:-1], here[1:]), *((here, other) for other in others)):
        pairs = np.bincount((a * n + b).ravel(), minlength=n * n)
        assert 1e-4 < chi_square_p(pairs, a.size / n**2) < 1 - 1e-4


def test_how_often_a_cluster_is_drawn_is_multinomial():
    # n = 3: of 27 equally likely draws 3 are all alike, 18 have one pair, 6 are all different.
    drawn = indices(1, 270_000, 3)
    distinct = np.array([len(set(row)) for row in drawn.tolist()])
    found = np.bincount(distinct, minlength=4)[1:]
    assert 1e-4 < chi_square_p(found, np.array([30_000, 180_000, 60_000])) < 1 - 1e-4


def test_no_two_replicates_share_an_offset():
    offset, _ = jax.vmap(replicate_keys, in_axes=(None, 0, None))(
        seed_words(4), jnp.arange(100_000, dtype=jnp.uint32), jnp.uint32(3)
    )
    assert len(np.unique(np.asarray(offset))) == 100_000


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_out_of_range(seed):
    with pytest.raises(ValueError, match="seed"):
        seed_words(seed)
