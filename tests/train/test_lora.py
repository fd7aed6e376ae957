import zlib
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from herald_jax.train.lora import LoraConfig, LoraParam, add_lora, merge, trainable
from herald_jax.train.model import Decoder
from herald_jax.train.model_config import ModelConfig, ModelConfigError
from herald_jax.train.weights import load_weights, save_weights

CONFIG = ModelConfig(vocab=24, width=16, layers=2, heads=2, kv_heads=1, head_dim=8, hidden=20)
# Programs that run once: to optimise them would take longer than they run.
QUICK = {"xla_backend_optimization_level": 0}
LORA = LoraConfig(rank=3, alpha=6.0)
IDS = np.random.default_rng(0).integers(0, 24, (2, 5)).astype(np.int32)
PLACES = np.tile(np.arange(5, dtype=np.int32), (2, 1))
MASK = np.broadcast_to(np.tril(np.ones((5, 5), bool)), (2, 5, 5))


def decoder(lora=None, **options):
    """The same numbers at every call; with LoRA untrained differences beside them."""

    def build():
        model = Decoder(CONFIG, rngs=nnx.Rngs(1), **options)
        if lora is not None:
            add_lora(model, lora, rngs=nnx.Rngs(2))
        return model

    def value(path, leaf):
        draws = np.random.default_rng(zlib.crc32(repr(path).encode()))
        scale = 0.0 if path[-1] == "b" else 0.3
        number = draws.normal(float(path[-1] == "scale"), scale, leaf.shape)
        return leaf.replace(jnp.asarray(number.astype(leaf.dtype)))

    graph, state = nnx.split(nnx.eval_shape(build))
    return nnx.merge(graph, nnx.map_state(value, state))


def outputs(graph, state):
    model = nnx.merge(graph, state)
    return model.logits(model.hidden(IDS, PLACES, MASK)[0])


run = jax.jit(outputs, static_argnums=0, compiler_options=QUICK)


def answers(model):
    return np.asarray(run(*nnx.split(model)))


def drawn(model, seed=7):
    """The decoder with differences that are not zero."""
    draws = np.random.default_rng(seed)
    state = nnx.state(model, LoraParam)
    values = jax.tree.map(lambda leaf: draws.normal(0, 0.3, leaf.shape).astype(leaf.dtype), state)
    nnx.update(model, jax.tree.map(jnp.asarray, values))
    return model


def test_at_the_start_the_outputs_are_the_base_s():
    base, low = answers(decoder()), answers(decoder(LORA))
    np.testing.assert_allclose(low, base, atol=1e-6)  # two programs, compiled apart
    assert np.abs(answers(drawn(decoder(LORA))) - base).max() > 0.1
    plain, beside = (made.layers[0].mlp.down for made in (decoder(), decoder(LORA)))
    x = np.random.default_rng(1).normal(size=(3, 20)).astype(np.float32)
    assert np.array_equal(plain(jnp.asarray(x)), beside(jnp.asarray(x)))


def test_which_kernels_get_a_difference():
    state = nnx.state(decoder(LoraConfig(kernels=("q", "down"), rank=3)), LoraParam)
    shapes = {
        ".".join(map(str, path)): leaf.get_value().shape for path, leaf in nnx.to_flat_state(state)
    }
    each = {
        "attention.q.a": (16, 3),
        "attention.q.b": (3, 16),
        "mlp.down.a": (20, 3),
        "mlp.down.b": (3, 16),
    }
    assert shapes == {f"layers.{i}.{name}": shape for i in (0, 1) for name, shape in each.items()}
    assert len(jax.tree.leaves(nnx.state(decoder(LORA), LoraParam))) == 2 * 7 * 2


def test_by_hand():
    # x W + (6 / 3) (x A) B of one kernel.
    model = drawn(decoder(LORA))
    dense = model.layers[0].attention.q
    x = np.random.default_rng(1).normal(size=(1, 2, 16)).astype(np.float32)
    w, a, b = (np.asarray(leaf[...], np.float64) for leaf in (dense.kernel, dense.a, dense.b))
    np.testing.assert_allclose(dense(jnp.asarray(x)), x @ w + 2.0 * (x @ a @ b), atol=1e-5)


def test_merging_gives_plain_weights_with_the_same_outputs(tmp_path):
    model = drawn(decoder(LORA))
    merged = merge(nnx.state(model, nnx.Param), LORA)
    plain = decoder()
    assert jax.tree.structure(merged) == jax.tree.structure(nnx.state(plain, nnx.Param))
    nnx.update(plain, merged)
    np.testing.assert_allclose(answers(plain), answers(model), atol=1e-4)
    save_weights(merged, CONFIG, tmp_path)
    read = load_weights(decoder(), tmp_path)
    assert np.array_equal(answers(read), answers(plain))


def test_untrained_differences_merge_to_the_base_exactly():
    merged = merge(nnx.state(decoder(LORA), nnx.Param), LORA)
    base = nnx.state(decoder(), nnx.Param)
    same = jax.tree.map(lambda a, b: bool((a == b).all()), merged, base)
    assert all(jax.tree.leaves(same))


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def gradient(graph, state):
    return jax.grad(lambda state: -jnp.mean(jax.nn.log_softmax(outputs(graph, state))[..., 0]))(
        state
    )


def test_only_the_differences_are_trained():
    model = drawn(decoder(LORA))
    before = jax.tree.map(np.array, nnx.state(model, nnx.Param))
    whole = nnx.state(model, nnx.Param)
    every = gradient(*nnx.split(model))
    low = nnx.filter_state(every, LoraParam)
    assert len(jax.tree.leaves(low)) == 2 * 7 * 2
    assert min(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(low)) > 0
    mask = trainable(whole)
    optimiser = optax.masked(optax.sgd(0.1), mask)
    updates = jax.jit(lambda one: optimiser.update(one, optimiser.init(one))[0])(every)
    # A mask passes over what is not trained: there the gradient came through as it was.
    after = jax.tree.map(lambda a, u, one: a + np.asarray(u) * one, whole, updates, mask)
    moved = jax.tree.map(lambda a, b: bool((np.asarray(a) != b).any()), after, before)
    assert jax.tree.leaves(moved) == jax.tree.leaves(mask)
    assert sum(jax.tree.leaves(mask)) == 2 * 7 * 2


def test_in_bfloat16():
    model = drawn(decoder(LORA, dtype=jnp.bfloat16, param_dtype=jnp.bfloat16))
    merged = merge(nnx.state(model, nnx.Param), LORA)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(merged)} == {"bfloat16"}
    assert np.isfinite(np.asarray(answers(model))).all()


def test_twice_is_refused():
    with pytest.raises(ValueError, match="LoRA already"):
        add_lora(decoder(LORA), LORA, rngs=nnx.Rngs(0))


def test_a_wrong_config_cannot_be_made():
    with pytest.raises(ModelConfigError) as caught:
        LoraConfig(kernels=("q", "gates"), rank=0, alpha=0.0)
    assert [problem.key for problem in caught.value.problems] == ["kernels[1]", "rank", "alpha"]
    assert "did you mean `gate`?" in str(caught.value)
