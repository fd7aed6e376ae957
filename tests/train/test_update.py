"""One optimiser step: cut as one likes, masked as it says, never broken by what is not finite."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from herald_jax.kernels.policy_loss import token_weights
from herald_jax.train.model import Decoder
from herald_jax.train.model_config import ModelConfig
from herald_jax.train.sharding import make_mesh, replicated
from herald_jax.train.update import (
    Batch,
    TrainState,
    make_step,
    reference_logps,
    token_logps,
)

SHAPE = ModelConfig(vocab=40, width=16, layers=2, heads=2, kv_heads=1, head_dim=8, hidden=24)
ROWS, WIDTH, TRAINED = 8, 24, 6
SETTINGS = {"temperature": 1.0, "clip_low": 0.2, "clip_high": 0.28, "kl_weight": 0.0}


@pytest.fixture(scope="module")
def policy():
    decoder = Decoder(SHAPE, rngs=nnx.Rngs(0))
    return nnx.split(decoder, nnx.Param, ...)


def make_batch(policy, *, seed=0, aggregation="token_mean", far=0.0):
    """Random rows of different lengths; `far` moves the old log-probabilities away."""
    graph, params, frozen = policy
    draw = np.random.default_rng(seed)
    tokens = draw.integers(0, SHAPE.vocab, (ROWS, WIDTH)).astype(np.int32)
    length = draw.integers(12, WIDTH + 1, ROWS).astype(np.int32)
    places = np.full((ROWS, TRAINED), -1, np.int32)
    for row in range(ROWS):
        n = draw.integers(1, TRAINED + 1)
        places[row, :n] = np.sort(draw.choice(np.arange(1, length[row]), n, replace=False))
    old = token_logps(nnx.merge(graph, params, frozen), tokens, length, places, 1.0)[0]
    old = old + far * draw.standard_normal(old.shape).astype(np.float32)
    action = jnp.asarray(places >= 0)
    return Batch(
        tokens=jnp.asarray(tokens),
        length=jnp.asarray(length),
        places=jnp.asarray(places),
        old_logps=old,
        reference=jnp.zeros_like(old),
        advantage=jnp.asarray(draw.standard_normal(old.shape).astype(np.float32)),
        weight=token_weights(action, aggregation, 32.0),
    )


def start(policy, optimizer):
    _, params, frozen = policy
    return TrainState(
        params=params, frozen=frozen, optimizer=optimizer.init(params), step=jnp.int32(0)
    )


def gradient(policy, batch, micro_rows, **settings):
    """The gradient, read off a step of plain gradient descent."""
    optimizer = optax.sgd(1.0)
    step = jax.jit(make_step(policy[0], optimizer, micro_rows=micro_rows, **SETTINGS | settings))
    after, stats = step(start(policy, optimizer), batch)
    return jax.tree.map(lambda a, b: np.asarray(a - b), policy[1], after.params), stats


def assert_close(a, b, relative=1e-5):
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        # Read off parameters of size 1: known to their rounding, whatever the size of the gradient.
        rounding = np.finfo(np.float32).eps * np.sqrt(one.size)
        assert np.linalg.norm(one - other) <= relative * np.linalg.norm(other) + rounding


@pytest.mark.parametrize("aggregation", ["token_mean", "row_mean", "fixed_length"])
@pytest.mark.parametrize("micro_rows", [1, 2, 4])
def test_micro_batches_are_the_whole_batch(policy, micro_rows, aggregation):
    batch = make_batch(policy, aggregation=aggregation, far=0.3)
    whole, stats = gradient(policy, batch, ROWS)
    cut, cut_stats = gradient(policy, batch, micro_rows)
    assert_close(cut, whole)
    assert np.isclose(stats.loss, cut_stats.loss, rtol=1e-5)
    for name in ("tokens", "clipped_low", "clipped_high", "credited"):
        assert int(getattr(stats, name)) == int(getattr(cut_stats, name))


def test_rows_in_another_order_are_the_same_batch(policy):
    batch = make_batch(policy, far=0.3)
    order = np.random.default_rng(1).permutation(ROWS)
    other = jax.tree.map(lambda leaf: leaf[order], batch)
    assert_close(gradient(policy, other, 4)[0], gradient(policy, batch, 4)[0])


def test_padding_changes_nothing(policy):
    batch = make_batch(policy)
    dirty = np.asarray(batch.tokens).copy()
    for row, n in enumerate(np.asarray(batch.length)):
        dirty[row, n:] = 7
    wide = jax.tree.map(lambda leaf: leaf, batch)
    wide = Batch(
        **{
            **vars(wide),
            "tokens": jnp.pad(jnp.asarray(dirty), ((0, 0), (0, 8))),
            "places": jnp.pad(batch.places, ((0, 0), (0, 3)), constant_values=-1),
            "old_logps": jnp.pad(batch.old_logps, ((0, 0), (0, 3)), constant_values=jnp.nan),
            "reference": jnp.pad(batch.reference, ((0, 0), (0, 3))),
            "advantage": jnp.pad(batch.advantage, ((0, 0), (0, 3)), constant_values=jnp.inf),
            "weight": jnp.pad(batch.weight, ((0, 0), (0, 3))),
        }
    )
    assert_close(gradient(policy, wide, 4)[0], gradient(policy, batch, 4)[0])


def test_the_first_step_has_ratio_one_and_is_the_policy_gradient(policy):
    graph, params, frozen = policy
    batch = make_batch(policy)
    found, stats = gradient(policy, batch, 4)

    def plain(params):
        logps = token_logps(
            nnx.merge(graph, params, frozen), batch.tokens, batch.length, batch.places, 1.0
        )[0]
        return -jnp.sum(jnp.where(batch.places >= 0, batch.weight * batch.advantage * logps, 0.0))

    assert_close(found, jax.grad(plain)(params), 1e-4)
    assert np.isclose(stats.ratio_low, 1, atol=1e-5) and np.isclose(stats.ratio_high, 1, atol=1e-5)
    assert float(stats.gap) < 1e-5


def test_without_advantage_nothing_moves(policy):
    batch = make_batch(policy)
    still = Batch(**{**vars(batch), "advantage": jnp.zeros_like(batch.advantage)})
    found, stats = gradient(policy, still, 4)
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(found))
    assert int(stats.credited) == 0


def test_kl_pulls_towards_the_reference(policy):
    batch = make_batch(policy)
    still = Batch(
        **{
            **vars(batch),
            "advantage": jnp.zeros_like(batch.advantage),
            "reference": batch.old_logps,
        }
    )
    # At the reference itself k3 has no slope; away from it, it has.
    found, stats = gradient(policy, still, 4, kl_weight=0.5)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(found)) < 1e-6
    assert abs(float(stats.kl)) < 1e-6
    moved = Batch(**{**vars(still), "reference": batch.old_logps + 0.5})
    found, stats = gradient(policy, moved, 4, kl_weight=0.5)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(found)) > 1e-4
    assert np.isclose(float(stats.kl) / int(stats.tokens), np.exp(0.5) - 1.5, rtol=1e-4)


def test_reference_log_probabilities_are_the_policys(policy):
    graph, params, frozen = policy
    batch = make_batch(policy)
    found = reference_logps(
        graph,
        params,
        frozen,
        batch.tokens,
        batch.length,
        batch.places,
        temperature=1.0,
        told=replicated(make_mesh(1, 1, 1)),
    )
    mask = np.asarray(batch.places) >= 0
    assert np.allclose(np.asarray(found)[mask], np.asarray(batch.old_logps)[mask], atol=1e-6)


def test_what_is_not_finite_changes_nothing(policy):
    batch = make_batch(policy)
    broken = Batch(**{**vars(batch), "advantage": batch.advantage.at[2, 0].set(jnp.nan)})
    optimizer = optax.adam(1e-2)
    step = jax.jit(make_step(policy[0], optimizer, micro_rows=4, **SETTINGS))
    state = start(policy, optimizer)
    after, stats = step(state, broken)
    assert not bool(stats.finite)
    for one, other in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other))
    moved, stats = step(after, batch)
    assert bool(stats.finite)
    assert int(moved.step) == 1


def test_clips_are_counted_where_they_bind(policy):
    batch = make_batch(policy, far=1.0)
    _, stats = gradient(policy, batch, 4)
    graph, params, frozen = policy
    logps = token_logps(
        nnx.merge(graph, params, frozen), batch.tokens, batch.length, batch.places, 1.0
    )[0]
    mask = np.asarray(batch.places) >= 0
    ratio = np.exp(np.asarray(logps - batch.old_logps))
    advantage = np.asarray(batch.advantage)
    assert int(stats.clipped_low) == np.sum(mask & (ratio < 0.8) & (advantage < 0)) > 0
    assert int(stats.clipped_high) == np.sum(mask & (ratio > 1.28) & (advantage > 0)) > 0


@pytest.mark.parametrize("platform", ["cuda", "tpu", "cpu"])
def test_the_update_lowers_for_accelerators(policy, platform):
    optimizer = optax.adamw(1e-3)
    step = jax.jit(make_step(policy[0], optimizer, micro_rows=4, **SETTINGS))
    exported = jax.export.export(step, platforms=[platform])(
        *jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype),
            (start(policy, optimizer), make_batch(policy)),
        )
    )
    assert exported.platforms == (platform,)
