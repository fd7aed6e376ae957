from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from herald_jax.train.memory import abstract_parameters
from herald_jax.train.model import Decoder, empty_cache, grow_cache
from herald_jax.train.model_config import ModelConfig, read_hf_config
from herald_jax.train.weights import load_weights

GOLDEN = Path(__file__).parent / "golden"
# Programs that run once: to optimise them would take longer than they run.
QUICK = {"xla_backend_optimization_level": 0}
CONFIG = ModelConfig(
    vocab=40, width=24, layers=2, heads=4, kv_heads=2, head_dim=8, hidden=32, rope_theta=1e4
)
SHORT = replace(CONFIG, layers=1)
DRAWS = np.random.default_rng(3)


@lru_cache
def decoder(config=CONFIG, **options):
    """Drawn by numpy: to compile the initialisers takes longer than all the rest."""
    draws = np.random.default_rng(1)
    made = nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(1), **options))
    graph, state = nnx.split(made)

    def value(path, leaf):
        mean, scale = (1.0, 0.2) if path[-1] == "scale" else (0.0, leaf.shape[0] ** -0.5)
        return leaf.replace(jnp.asarray(draws.normal(mean, scale, leaf.shape).astype(leaf.dtype)))

    return nnx.merge(graph, nnx.map_state(value, state))


def causal(valid):
    """bool [B, L, L]: every query sees the valid keys up to itself."""
    length = valid.shape[1]
    return valid[:, None, :] & np.tril(np.ones((length, length), bool))[None]


def forward(state, graph, tokens, positions, mask):
    model = nnx.merge(graph, state)
    return model.logits(model.hidden(tokens, positions, mask)[0])


compiled = jax.jit(forward, static_argnums=1, compiler_options=QUICK)


def logits(model, tokens, positions=None, valid=None, *, shape=(3, 16)):
    """Of the given tokens; they are padded to one shape, so that few programs are compiled."""
    tokens = np.asarray(tokens, np.int32)
    rows, length = tokens.shape
    valid = np.ones(tokens.shape, bool) if valid is None else valid
    if positions is None:
        positions = np.broadcast_to(np.arange(length, dtype=np.int32), tokens.shape)
    after = (0, shape[0] - rows), (0, shape[1] - length)
    tokens, positions, valid = (np.pad(leaf, after) for leaf in (tokens, positions, valid))
    graph, state = nnx.split(model)
    return np.asarray(compiled(state, graph, tokens, positions, causal(valid)))[:rows, :length]


def tokens(rows, length):
    return DRAWS.integers(0, CONFIG.vocab, (rows, length)).astype(np.int32)


@pytest.mark.parametrize("name", ["tied", "free"])
def test_logits_equal_those_of_transformers(name):
    config = read_hf_config(GOLDEN / name)
    assert config.tied == (name == "tied")
    model = load_weights(decoder(config), GOLDEN / name)
    with np.load(GOLDEN / name / "expected.npz") as expected:
        found = logits(model, expected["tokens"], expected["positions"], expected["valid"])
        assert np.abs(expected["logits"]).max() > 1
        valid = expected["valid"]
        np.testing.assert_allclose(found[valid], expected["logits"][valid], atol=1e-4, rtol=0)


def test_parameter_paths_read_well():
    state = abstract_parameters(replace(CONFIG, tied=False))
    shapes = {
        ".".join(map(str, path)): leaf.get_value().shape for path, leaf in nnx.to_flat_state(state)
    }
    layer = {
        "attention_norm.scale": (24,),
        "attention.q.kernel": (24, 32),
        "attention.k.kernel": (24, 16),
        "attention.v.kernel": (24, 16),
        "attention.o.kernel": (32, 24),
        "attention.q_norm.scale": (8,),
        "attention.k_norm.scale": (8,),
        "mlp_norm.scale": (24,),
        "mlp.gate.kernel": (24, 32),
        "mlp.up.kernel": (24, 32),
        "mlp.down.kernel": (32, 24),
    }
    expected = {f"layers.{i}.{name}": shape for i in (0, 1) for name, shape in layer.items()}
    expected |= {"embed.embedding": (40, 24), "norm.scale": (24,), "head.kernel": (24, 40)}
    assert shapes == expected


def test_padded_rows_equal_unpadded_ones():
    row = tokens(1, 5)
    alone = logits(decoder(), row, shape=row.shape)[0]
    padded = tokens(2, 9)
    valid = np.zeros((2, 9), bool)
    positions = np.zeros((2, 9), np.int32)
    for at, start in enumerate((0, 4)):  # to the right and to the left
        padded[at, start : start + 5] = row
        valid[at, start : start + 5] = True
        positions[at, start : start + 5] = np.arange(5)
    found = logits(decoder(), padded, positions, valid)
    np.testing.assert_allclose(found[0, :5], alone, atol=1e-5)
    np.testing.assert_allclose(found[1, 4:], alone, atol=1e-5)
    # Whatever the padding holds, ids outside the vocabulary included.
    padded[~valid] = np.array([-1, 9999, 3, 0] * 2)
    other = logits(decoder(), padded, positions, valid)
    assert np.array_equal(other[valid], found[valid])
    assert np.isfinite(other).all()


def test_rows_do_not_see_each_other_nor_the_future():
    several = tokens(3, 7)
    whole = logits(decoder(), several)
    changed = several.copy()
    changed[1, 4:] = (changed[1, 4:] + 1) % CONFIG.vocab
    found = logits(decoder(), changed)
    assert np.array_equal(found[[0, 2]], whole[[0, 2]])
    assert np.array_equal(found[1, :4], whole[1, :4])
    assert np.abs(found[1, 4:] - whole[1, 4:]).max() > 1e-3


def test_only_differences_of_positions_count():
    row = tokens(1, 6)
    near = np.arange(6, dtype=np.int32)[None]
    found = logits(decoder(), row, near)
    np.testing.assert_allclose(logits(decoder(), row, near + 40), found, atol=1e-4)
    assert np.abs(logits(decoder(), row, near * 3) - found).max() > 1e-3


def step(state, graph, tokens, positions, mask, cache, at):
    model = nnx.merge(graph, state)
    hidden, cache = model.hidden(tokens, positions, mask, cache, at)
    return model.logits(hidden), cache


def test_decoding_with_a_cache_equals_the_full_pass():
    """Rows of 3 and 6 tokens, then 4 one by one, then a chunk of 4 of which row 0 takes 2, then 2.

    All rows write at one index, so that invalid slots stay between; the cache grows on the way.
    """
    graph, state = nnx.split(decoder())
    chunks = [(6, (3, 6)), *[(1, (1, 1))] * 4, (4, (2, 4)), *[(1, (1, 1))] * 2]
    run = jax.jit(step, static_argnums=1, donate_argnums=5, compiler_options=QUICK)
    cache = empty_cache(CONFIG, 2, 11)
    seen = np.zeros((2, 24), bool)
    count, at = np.zeros(2, np.int32), 0
    rows: list[list[int]] = [[], []]
    stepped: list[list[np.ndarray]] = [[], []]
    for length, takes in chunks:
        if at + length > cache[0][0].shape[-1]:
            cache = grow_cache(cache, 24)
        slots = cache[0][0].shape[-1]
        chunk = tokens(2, length)
        own = np.arange(length)[None] < np.array(takes)[:, None]
        seen[:, at : at + length] = own
        reach = np.arange(slots)[None] <= at + np.arange(length)[:, None]
        mask = (seen[:, None, :slots] & reach[None]) & own[:, :, None]
        positions = np.where(own, count[:, None] + np.arange(length), 0).astype(np.int32)
        found, cache = run(state, graph, chunk, positions, mask, cache, np.int32(at))
        assert np.isfinite(np.asarray(found)).all()
        for row in (0, 1):
            rows[row] += chunk[row, : takes[row]].tolist()
            stepped[row] += list(np.asarray(found)[row, : takes[row]])
        count += np.array(takes, np.int32)
        at += length
    assert [len(row) for row in rows] == [3 + 4 + 2 + 2, 6 + 4 + 4 + 2]
    for row in (0, 1):
        whole = logits(decoder(), [rows[row]])[0]
        np.testing.assert_allclose(np.stack(stepped[row]), whole, atol=1e-5)


def test_a_cache_grows_by_zeros_in_buffers_of_its_own():
    cache = empty_cache(CONFIG, 2, 4, jnp.bfloat16)
    assert [leaf.shape for leaf in cache[0]] == [(2, 2, 8, 4), (2, 2, 4, 8)]
    full = jax.tree.map(jnp.ones_like, cache)
    grown = grow_cache(full, 6)
    for keys, values in grown:
        assert keys.dtype == values.dtype == jnp.bfloat16
        assert np.asarray(keys.sum(axis=(0, 1, 2))).tolist() == [32.0] * 4 + [0.0] * 2
        assert np.asarray(values.sum(axis=(0, 1, 3))).tolist() == [32.0] * 4 + [0.0] * 2
    for made in (cache, grown):
        leaves = jax.tree.leaves(made)
        assert len({leaf.unsafe_buffer_pointer() for leaf in leaves}) == len(leaves) == 4
    with pytest.raises(ValueError, match="6 slots cannot shrink to 5"):
        grow_cache(grown, 5)


def test_jit_equals_eager():
    graph, state = nnx.split(decoder())
    given = tokens(1, 5)  # a shape that is compiled already
    positions = np.arange(5, dtype=np.int32)[None]
    mask = causal(np.ones((1, 5), bool))
    eager = np.asarray(forward(state, graph, given, positions, mask))
    found = logits(decoder(), given, shape=given.shape)
    np.testing.assert_allclose(found, eager, atol=1e-5)


def test_computation_in_bfloat16():
    given = tokens(2, 6)
    exact = logits(decoder(), given)
    model = decoder(dtype=jnp.bfloat16)
    hidden, _ = jax.eval_shape(model.hidden, given, given, causal(given >= 0))
    assert hidden.dtype == jnp.bfloat16
    found = logits(model, given)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, atol=0.05)
    assert np.abs(found - exact).max() > 1e-4  # it did compute in fewer digits
    lean = decoder(dtype=jnp.bfloat16, param_dtype=jnp.bfloat16)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(nnx.state(lean))} == {"bfloat16"}
    assert np.isfinite(logits(lean, given)).all()


def test_groups_equal_repeated_key_heads():
    """Grouped attention is full attention in which both heads of a group have the same keys."""
    full = decoder(replace(CONFIG, kv_heads=4))
    given = nnx.state(decoder(), nnx.Param)
    repeated = []
    for path, leaf in nnx.to_flat_state(given):
        if path[-2] in ("k", "v"):
            heads = leaf.get_value().reshape(24, 2, 8)
            leaf = leaf.replace(jnp.repeat(heads, 2, axis=1).reshape(24, 32))
        repeated.append((path, leaf))
    nnx.update(full, nnx.from_flat_state(repeated))
    row = tokens(2, 7)
    np.testing.assert_allclose(logits(full, row), logits(decoder(), row), atol=1e-5)


@partial(jax.jit, static_argnums=1, compiler_options=QUICK)
def slope(state, graph, given, positions, valid):
    def loss(state):
        mask = valid[:, None] & np.tril(np.ones((6, 6), bool))[None]
        scores = jax.nn.log_softmax(forward(state, graph, given, positions, mask))
        chosen = jnp.take_along_axis(scores, given[..., None], axis=-1)[..., 0]
        return -jnp.sum(jnp.where(valid, chosen, 0.0))

    return jax.grad(loss)(state)


def gradient(model, valid):
    graph, state = nnx.split(model)
    given = np.random.default_rng(5).integers(0, CONFIG.vocab, (2, 6)).astype(np.int32)
    positions = np.tile(np.arange(6, dtype=np.int32), (2, 1))
    return slope(state, graph, given, positions, valid)


def test_a_row_of_padding_has_a_finite_gradient_and_adds_none():
    valid = np.ones((2, 6), bool)
    valid[1] = False
    with_row = gradient(decoder(SHORT), valid)
    valid[1] = True
    both = gradient(decoder(SHORT), valid)
    for leaf, other in zip(jax.tree.leaves(with_row), jax.tree.leaves(both), strict=True):
        assert np.isfinite(np.asarray(leaf)).all()
        assert np.abs(np.asarray(leaf)).max() > 0
        assert np.abs(np.asarray(leaf) - np.asarray(other)).max() > 0
    nothing = gradient(decoder(SHORT), np.zeros((2, 6), bool))
    assert {float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(nothing)} == {0.0}


def test_computing_again_changes_no_gradient():
    valid = np.ones((2, 6), bool)
    kept, again = (gradient(decoder(SHORT, remat=remat), valid) for remat in (False, True))
    for leaf, other in zip(jax.tree.leaves(kept), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(np.asarray(leaf), np.asarray(other), atol=1e-5)


def test_a_fresh_policy_follows_its_seed_and_is_nearly_indifferent():
    first, same, other = (Decoder(SHORT, rngs=nnx.Rngs(seed)) for seed in (1, 1, 2))
    for leaf, again, another in zip(
        *(jax.tree.leaves(nnx.state(made)) for made in (first, same, other)), strict=True
    ):
        assert np.array_equal(leaf, again)
        assert leaf.ndim == 1 or np.abs(leaf - another).max() > 0.01
    scores = logits(first, tokens(3, 16)).astype(np.float64)
    odds = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    assert -(odds * np.log(odds)).sum(-1).min() > 0.95 * np.log(CONFIG.vocab)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_lowers_for(platform):
    graph, state = nnx.split(decoder(dtype=jnp.bfloat16, remat=True))
    ids, slots = np.zeros((2, 3), np.int32), np.ones((2, 3, 8), bool)
    cache = empty_cache(CONFIG, 2, 8, jnp.bfloat16)
    leaves, tree = jax.tree.flatten(state)

    def both(leaves, cache):
        state = jax.tree.unflatten(tree, leaves)
        whole = forward(state, graph, ids, ids, slots[..., :3])
        return whole, step(state, graph, ids, ids, slots, cache, jnp.int32(2))

    exported = jax.export.export(jax.jit(both), platforms=[platform])(leaves, cache)
    assert exported.platforms == (platform,)


def test_what_does_not_fit_is_refused():
    ids, mask = np.zeros((2, 3), np.int32), np.ones((2, 3, 3), bool)
    model = decoder()
    with pytest.raises(ValueError, match="go together"):
        model.hidden(ids, ids, mask, at=jnp.int32(0))
    with pytest.raises(AssertionError):
        model.hidden(ids, ids, np.ones((2, 3, 4), bool))
    with pytest.raises(AssertionError):
        model.hidden(ids, ids[:1], mask)
    with pytest.raises(AssertionError):
        model.hidden(ids, ids, mask.astype(np.float32))


def test_strict_promotion_of_ranks_and_types():
    ids, mask = np.zeros((1, 2), np.int32), np.ones((1, 2, 4), bool)
    cache = empty_cache(CONFIG, 1, 4, jnp.bfloat16)
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        for dtype in (jnp.float32, jnp.bfloat16):
            model = decoder(dtype=dtype)
            hidden, _ = jax.eval_shape(model.hidden, ids, ids, mask, cache, np.int32(0))
            assert jax.eval_shape(model.logits, hidden).dtype == jnp.float32
