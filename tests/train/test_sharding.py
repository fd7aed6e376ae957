"""Placement by the table of rules; what eight devices compute comes from a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.sharding import PartitionSpec

from herald_jax.train.lora import LoraConfig, add_lora
from herald_jax.train.memory import abstract_parameters, bytes_per_device, memory_table
from herald_jax.train.model import Decoder
from herald_jax.train.model_config import PRESETS
from herald_jax.train.sharding import (
    MeshError,
    abstract_mesh,
    batch_sharding,
    leaf_path,
    make_mesh,
    param_shardings,
    replicated,
)

ROOT = Path(__file__).resolve().parents[2]
SHAPES = [(8, 1, 1), (1, 8, 1), (2, 2, 2), (1, 2, 4)]

ON_EIGHT = f"""
import json, sys
import jax, jax.numpy as jnp, numpy as np, optax
from flax import nnx
from herald_jax.train.model import Decoder
from herald_jax.train.model_config import PRESETS
from herald_jax.train.sharding import batch_sharding, leaf_path, make_mesh, param_shardings

assert jax.device_count() == 8
config = PRESETS["tiny"]
graph, state = nnx.split(nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0))))
draws = np.random.default_rng(0)
value = lambda leaf: draws.normal(0, leaf.shape[0] ** -0.5, leaf.shape).astype(np.float32)
state = jax.tree.map(lambda leaf: jnp.asarray(value(leaf)), state)
tokens = draws.integers(0, config.vocab, (16, 12)).astype(np.int32)
valid = np.arange(12)[None] < draws.integers(4, 13, (16, 1))
batch = {{
    "tokens": tokens,
    "positions": np.tile(np.arange(12, dtype=np.int32), (16, 1)),
    "mask": valid[:, None] & np.tril(np.ones((12, 12), bool)),
    "valid": valid,
}}

def loss(state, batch):
    model = nnx.merge(graph, state)
    hidden, _ = model.hidden(batch["tokens"], batch["positions"], batch["mask"])
    scores = jax.nn.log_softmax(model.logits(hidden)[:, :-1])
    chosen = jnp.take_along_axis(scores, batch["tokens"][:, 1:, None], axis=-1)[..., 0]
    counted = batch["valid"][:, 1:]
    return -jnp.where(counted, chosen, 0.0).sum() / counted.sum()

def held(tree):
    sizes = [0] * 8
    for leaf in jax.tree.leaves(tree):
        for shard in leaf.addressable_shards:
            sizes[shard.device.id] += shard.data.nbytes
    return sizes

paths = [leaf_path(keys) for keys, _ in jax.tree_util.tree_leaves_with_path(state)]
one = jax.tree.map(np.asarray, jax.jit(jax.grad(loss))(state, batch))
found = {{"total": sum(leaf.nbytes for leaf in jax.tree.leaves(state))}}
for shape in {SHAPES!r}:
    mesh = make_mesh(*shape)
    placed = param_shardings(state, mesh)
    spread = jax.device_put(state, placed.shardings)
    rows = jax.device_put(batch, batch_sharding(mesh))
    step = jax.jit(jax.grad(loss), out_shardings=placed.shardings)
    many = step(spread, rows)
    gaps = {{}}
    for path, a, b in zip(paths, jax.tree.leaves(one), jax.tree.leaves(many), strict=True):
        gaps[path] = float(np.linalg.norm(a - np.asarray(b)) / np.linalg.norm(a))
    start = jax.jit(optax.scale_by_adam().init)
    moments = jax.eval_shape(start, spread)
    lies = param_shardings(moments, mesh).shardings
    moments = jax.device_put(start(spread), lies)
    found[str(shape)] = {{
        "gaps": gaps, "whole": placed.whole,
        "parameters": held(spread), "gradients": held(many), "optimiser": held(moments),
    }}
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def eight():
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        # A program runs once here: to optimise it would take longer than it runs.
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ON_EIGHT],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_equal_those_of_one_device(shape, eight):
    gaps = eight[0][str(shape)]["gaps"]
    assert len(gaps) == len(jax.tree.leaves(abstract_parameters(PRESETS["tiny"])))
    assert {path: gap for path, gap in gaps.items() if not gap <= 1e-5} == {}


def test_no_device_holds_more_than_a_quarter(eight):
    found = eight[0]["(1, 8, 1)"]
    assert max(found["parameters"]) <= eight[0]["total"] / 4
    assert max(found["optimiser"]) <= 2 * eight[0]["total"] / 4
    assert eight[0]["(8, 1, 1)"]["parameters"] == [eight[0]["total"]] * 8


@pytest.mark.parametrize("shape", SHAPES)
def test_memory_is_what_devices_hold(shape, eight):
    found = eight[0][str(shape)]
    [row] = memory_table(PRESETS["tiny"], [shape])
    assert found["whole"] == []
    assert found["parameters"] == [row.parameters] * 8
    assert found["gradients"] == [row.gradients] * 8
    assert found["optimiser"] == [row.optimiser] * 8


def test_no_layout_is_made_anew_at_every_use(eight):
    assert "rematerialization" not in eight[1].lower()


def specs(tree, mesh):
    placed = param_shardings(tree, mesh)
    leaves = jax.tree_util.tree_leaves_with_path(placed.shardings)
    return {leaf_path(keys): sharding.spec for keys, sharding in leaves}, placed.whole


def test_the_rules_split_what_they_say():
    mesh = abstract_mesh(1, 2, 2)
    found, whole = specs(abstract_parameters(PRESETS["qwen3-8b"]), mesh)
    assert whole == ()
    assert found["embed.embedding"] == PartitionSpec("fsdp", None)
    assert found["head.kernel"] == PartitionSpec("fsdp", "tensor")
    assert found["layers.35.attention.k.kernel"] == PartitionSpec("fsdp", "tensor")
    assert found["layers.0.attention.o.kernel"] == PartitionSpec("tensor", "fsdp")
    assert found["layers.0.mlp.down.kernel"] == PartitionSpec("tensor", "fsdp")
    assert found["layers.0.attention.q_norm.scale"] == PartitionSpec()


@pytest.mark.parametrize("name", ["tiny", "qwen3-8b"])  # a tied head and one of its own
def test_every_matrix_has_a_rule(name):
    state = abstract_parameters(PRESETS[name])
    found, _ = specs(state, abstract_mesh(1, 2, 2))
    shapes = {leaf_path(k): x.shape for k, x in jax.tree_util.tree_leaves_with_path(state)}
    assert {path for path, spec in found.items() if spec == PartitionSpec()} == {
        path for path, shape in shapes.items() if len(shape) == 1
    }


def test_lora_lies_beside_its_kernels():
    def made():
        decoder = Decoder(PRESETS["tiny"], rngs=nnx.Rngs(0))
        add_lora(decoder, LoraConfig(rank=3), rngs=nnx.Rngs(0))
        return decoder

    state = nnx.state(nnx.eval_shape(made), nnx.Param)
    found, whole = specs(state, abstract_mesh(1, 2, 2))
    assert whole == ()  # the odd rank is never split
    assert found["layers.0.attention.q.a"] == PartitionSpec("fsdp", None)
    assert found["layers.0.attention.q.b"] == PartitionSpec(None, "tensor")
    assert found["layers.0.mlp.down.a"] == PartitionSpec("tensor", None)
    assert found["layers.0.mlp.down.b"] == PartitionSpec(None, "fsdp")
    assert found["layers.0.mlp.down.kernel"] == PartitionSpec("tensor", "fsdp")


def test_what_does_not_divide_stays_whole_and_is_said():
    # 512 and 64 do not divide by 3, nor do 32, 64 and 192 by 5.
    state = abstract_parameters(PRESETS["tiny"])
    found, whole = specs(state, abstract_mesh(1, 3, 5))
    assert found["embed.embedding"] == PartitionSpec(None, None)
    assert found["layers.0.mlp.down.kernel"] == PartitionSpec(None, None)
    said = "embed.embedding: axis 0 of 512 stays whole, fsdp = 3 does not divide it"
    assert said in whole
    # The embedding once; two axes of each of seven kernels in two layers.
    assert len(whole) == 1 + 2 * 7 * 2
    assert specs(state, abstract_mesh(2, 8, 1))[1] == ()


@pytest.mark.parametrize("optimiser", [optax.adamw(1e-3), optax.adafactor(1e-3), optax.sgd(0.1)])
def test_an_optimiser_lies_where_its_parameters_do(optimiser):
    state = abstract_parameters(PRESETS["small"])
    mesh = abstract_mesh(1, 2, 2)
    parameters, _ = specs(state, mesh)
    shapes = {leaf_path(k): x.shape for k, x in jax.tree_util.tree_leaves_with_path(state)}
    kept = jax.eval_shape(optimiser.init, state)
    found, whole = specs(kept, mesh)
    assert whole == ()
    mirrored = 0
    for keys, leaf in jax.tree_util.tree_leaves_with_path(kept):
        path = leaf_path(keys)
        name = next((name for name in parameters if path.endswith("." + name)), None)
        if name is not None and shapes[name] == leaf.shape:
            assert found[path] == parameters[name]
            mirrored += 1
        else:
            assert found[path] == PartitionSpec()
    if isinstance(kept[0], optax.ScaleByAdamState):
        assert mirrored == 2 * len(parameters)


def test_memory_by_hand():
    """Qwen3-8B: 8,190,735,360 numbers, of which 36 (2 * 4096 + 2 * 128) + 4096 are norms."""
    norms = 36 * (2 * 4096 + 2 * 128) + 4096
    split = 8_190_735_360 - norms
    eight, sixty_four = memory_table(PRESETS["qwen3-8b"], [(1, 8, 1), (1, 64, 1)])
    assert (eight.devices, sixty_four.devices) == (8, 64)
    for row in (eight, sixty_four):
        held = 4 * (split // row.devices + norms)
        assert (row.parameters, row.gradients) == (held, held)
        assert row.optimiser == 2 * held + 4  # two moments and a counter
        assert row.total == 4 * held + 4


def test_moments_are_float32_whatever_the_parameters_are():
    [full] = memory_table(PRESETS["tiny"], [(1, 8, 1)])
    [lean] = memory_table(PRESETS["tiny"], [(1, 8, 1)], param_dtype=jnp.bfloat16)
    assert 2 * lean.parameters == full.parameters
    assert 2 * lean.gradients == full.gradients
    assert lean.optimiser == full.optimiser


def test_tensor_and_data_in_memory():
    # 64 ways: (4, 8, 2) keeps four copies; kernels are split by 16, the embedding by 8 alone.
    config = PRESETS["qwen3-8b"]
    norms, embedding = 36 * (2 * 4096 + 2 * 128) + 4096, 151_936 * 4096
    kernels = 8_190_735_360 - norms - embedding
    [row] = memory_table(config, [(4, 8, 2)])
    assert row.parameters == 4 * (kernels // 16 + embedding // 8 + norms)


def test_bytes_of_any_tree():
    tree = {
        "embed": {"embedding": jax.ShapeDtypeStruct((6, 4), jnp.bfloat16)},
        "count": np.int32(3),
    }
    assert bytes_per_device(tree, 1, 2, 1) == 3 * 4 * 2 + 4


def test_a_mesh_of_the_devices_here():
    mesh = make_mesh(1, 2, 1, devices=jax.devices()[:2])
    assert dict(mesh.shape) == {"data": 1, "fsdp": 2, "tensor": 1}
    rows = jax.device_put(np.zeros((4, 3)), batch_sharding(mesh))
    assert [shard.data.shape for shard in rows.addressable_shards] == [(2, 3)] * 2
    count = jax.device_put(np.int32(1), replicated(mesh))
    assert count.is_fully_replicated
    assert make_mesh(1, 1, 1).devices.tolist() == [[[jax.devices()[0]]]]


@pytest.mark.parametrize(
    ("shape", "message"), [((0, 1, 1), "at least 1"), ((64, 8, 1), r"devices, got 512; choose")]
)
def test_a_mesh_that_cannot_be_made(shape, message):
    with pytest.raises(MeshError, match=message):
        make_mesh(*shape)
