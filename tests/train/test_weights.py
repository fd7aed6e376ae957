import json
import shutil
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from safetensors.numpy import load_file, save_file

from herald_jax.train import weights
from herald_jax.train.memory import abstract_parameters
from herald_jax.train.model import Decoder
from herald_jax.train.model_config import ModelConfig, read_hf_config
from herald_jax.train.weights import INDEX, SINGLE, WeightsError, load_weights, save_weights

TIED = ModelConfig(vocab=20, width=16, layers=2, heads=2, kv_heads=1, head_dim=4, hidden=12)
FREE = replace(TIED, tied=False)


def parameters(config=TIED, seed=0, param_dtype=jnp.float32):
    draws = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: jnp.asarray(draws.normal(size=leaf.shape).astype(leaf.dtype)),
        abstract_parameters(config, param_dtype),
    )


def decoder(config=TIED, seed=0, param_dtype=jnp.float32):
    made = nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0), param_dtype=param_dtype))
    return nnx.merge(nnx.split(made)[0], parameters(config, seed, param_dtype))


def same_bits(first, second):
    leaves = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(
        a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in leaves
    )


def faults(folder, target=None):
    with pytest.raises(WeightsError) as caught:
        load_weights(parameters() if target is None else target, folder)
    return {(fault.field, fault.code) for fault in caught.value.faults}


def edited(folder, **changes):
    """Save the tied decoder and change tensors of its file; None takes one out."""
    save_weights(parameters(), TIED, folder)
    tensors = load_file(folder / SINGLE)
    for name, value in changes.items():
        name = name.replace("__", ".")
        if value is None:
            del tensors[name]
        else:
            tensors[name] = value
    save_file(tensors, folder / SINGLE)
    return tensors


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("config", [TIED, FREE], ids=["tied", "free"])
@pytest.mark.parametrize("shard_bytes", [10**9, 2000])
def test_a_round_trip_is_exact_to_the_bit(dtype, config, shard_bytes, tmp_path):
    state = parameters(config, 1, dtype)
    save_weights(state, config, tmp_path / "made", shard_bytes)
    assert read_hf_config(tmp_path / "made") == config
    files = {path.name for path in (tmp_path / "made").iterdir()}
    assert (INDEX in files) == (shard_bytes == 2000) == (SINGLE not in files)
    other = parameters(config, 2, dtype)
    assert not same_bits(state, other)
    assert same_bits(state, load_weights(other, tmp_path / "made"))
    model = decoder(config, 2, dtype)
    assert load_weights(model, tmp_path / "made") is model
    assert same_bits(state, nnx.state(model, nnx.Param))


def test_files_are_laid_out_as_hugging_face_has_them(tmp_path):
    state = parameters(FREE)
    save_weights(state, FREE, tmp_path)
    tensors = load_file(tmp_path / SINGLE)
    kernel = np.asarray(state["layers"][1]["mlp"]["gate"]["kernel"].get_value())
    assert kernel.shape == (16, 12)
    assert np.array_equal(tensors["model.layers.1.mlp.gate_proj.weight"], kernel.T)
    embedding = np.asarray(state["embed"]["embedding"].get_value())
    assert np.array_equal(tensors["model.embed_tokens.weight"], embedding)
    assert tensors["lm_head.weight"].shape == (20, 16)
    assert json.loads((tmp_path / "config.json").read_text())["torch_dtype"] == "float32"
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1  # whoever may read the configuration may read the weights


def test_shards_stay_below_their_size_and_the_index_names_each_tensor(tmp_path):
    save_weights(parameters(), TIED, tmp_path, shard_bytes=2000)
    index = json.loads((tmp_path / INDEX).read_text())
    total = sum(leaf.nbytes for leaf in jax.tree.leaves(parameters()))
    assert index["metadata"]["total_size"] == total
    shards = sorted(set(index["weight_map"].values()))
    assert shards[0] == f"model-00001-of-{len(shards):05d}.safetensors"
    held = {file: load_file(tmp_path / file) for file in shards}
    assert {n: f for f, tensors in held.items() for n in tensors} == index["weight_map"]
    assert all(sum(t.nbytes for t in tensors.values()) <= 2000 for tensors in held.values())


def test_fewer_digits_are_widened_exactly_and_never_cut(tmp_path):
    state = parameters(param_dtype=jnp.bfloat16)
    save_weights(state, TIED, tmp_path)
    wide = load_weights(parameters(), tmp_path)
    assert same_bits(wide, jax.tree.map(lambda leaf: leaf.astype(jnp.float32), state))
    save_weights(parameters(), TIED, tmp_path)
    found = faults(tmp_path, parameters(param_dtype=jnp.bfloat16))
    assert {code for _, code in found} == {"wrong_type"}
    assert len(found) == len(jax.tree.leaves(state))


def test_everything_wrong_is_listed_at_once_and_nothing_changes(tmp_path):
    edited(
        tmp_path,
        model__norm__weight=None,
        model__extra=np.zeros(3, np.float32),
        model__embed_tokens__weight=np.zeros((20, 8), np.float32),
        model__layers__0__mlp__up_proj__weight=np.zeros((12, 16), np.int8),
        model__layers__1__self_attn__k_norm__weight=np.zeros(4, np.float64),
        model__layers__1__self_attn__q_proj__weight=np.zeros((16, 8), np.float32),
    )
    model = decoder(seed=5)
    before = jax.tree.map(np.array, nnx.state(model, nnx.Param))
    assert faults(tmp_path, model) == {
        ("model.norm.weight", "missing"),
        ("model.extra", "surplus"),
        ("model.embed_tokens.weight", "wrong_shape"),
        ("model.layers.0.mlp.up_proj.weight", "wrong_type"),
        ("model.layers.1.self_attn.k_norm.weight", "wrong_type"),
        ("model.layers.1.self_attn.q_proj.weight", "wrong_shape"),
    }
    assert same_bits(before, nnx.state(model, nnx.Param))


def test_messages_say_what_was_expected_and_what_came(tmp_path):
    edited(tmp_path, model__embed_tokens__weight=np.zeros((20, 8), np.float16))
    with pytest.raises(WeightsError) as caught:
        load_weights(parameters(param_dtype=jnp.bfloat16), tmp_path)
    text = str(caught.value)
    assert "model.embed_tokens.weight: wrong_shape: expected [20, 16], got [20, 8]" in text
    assert "wrong_type: expected BF16 for a parameter of bfloat16, got F16" in text


def test_a_second_copy_of_a_tied_head_must_be_the_embedding(tmp_path):
    tensors = edited(tmp_path)
    embedding = tensors["model.embed_tokens.weight"]
    edited(tmp_path, lm_head__weight=embedding)
    assert same_bits(load_weights(parameters(seed=4), tmp_path), parameters())
    edited(tmp_path, lm_head__weight=embedding + 1)
    assert faults(tmp_path) == {("lm_head.weight", "surplus")}
    save_weights(parameters(), TIED, tmp_path)
    assert faults(tmp_path, parameters(FREE)) == {("lm_head.weight", "missing")}


def test_a_folder_without_a_whole_model_is_refused(tmp_path):
    assert faults(tmp_path) == {("", "missing")}
    (tmp_path / SINGLE).write_bytes(b"half")
    assert faults(tmp_path) == {("", "unreadable")}
    save_weights(parameters(), TIED, tmp_path)
    whole = (tmp_path / SINGLE).read_bytes()
    (tmp_path / SINGLE).write_bytes(whole[:-10])
    assert faults(tmp_path) == {("", "unreadable")}
    (tmp_path / SINGLE).write_bytes(whole)
    (tmp_path / INDEX).write_text("{}")
    assert faults(tmp_path) == {("", "ambiguous")}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"weight_map": {"a": "../up.safetensors"}}'])
def test_a_bad_index_is_refused(text, tmp_path):
    (tmp_path / INDEX).write_text(text)
    assert faults(tmp_path) == {("", "bad_index")}


def test_a_lost_shard_and_a_tensor_that_is_not_where_the_index_says(tmp_path):
    save_weights(parameters(), TIED, tmp_path, shard_bytes=2000)
    index = json.loads((tmp_path / INDEX).read_text())
    shards = sorted(set(index["weight_map"].values()))
    shutil.copy(tmp_path / shards[1], tmp_path / shards[0])
    (tmp_path / shards[2]).unlink()
    lost = {(name, "missing") for name, file in index["weight_map"].items() if file == shards[0]}
    assert faults(tmp_path) == lost | {("", "unreadable")}


def test_new_weights_replace_old_ones_whole(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    save_weights(parameters(), TIED, tmp_path, shard_bytes=2000)
    save_weights(parameters(seed=1), TIED, tmp_path)
    names = {SINGLE, "config.json", "tokenizer.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert same_bits(load_weights(parameters(), tmp_path), parameters(seed=1))
    save_weights(parameters(seed=2), TIED, tmp_path, shard_bytes=2000)
    assert not (tmp_path / SINGLE).exists()
    assert same_bits(load_weights(parameters(), tmp_path), parameters(seed=2))


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    save_weights(parameters(), TIED, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    calls = []

    def full(tensors, path, metadata):
        if calls:
            raise OSError("no space left")
        calls.append(path)
        save_file(tensors, path, metadata)

    monkeypatch.setattr(weights, "save_file", full)
    with pytest.raises(OSError, match="no space"):
        save_weights(parameters(seed=1), TIED, tmp_path, shard_bytes=2000)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_each_device_gets_its_own_part(tmp_path):
    save_weights(parameters(), TIED, tmp_path)
    mesh = Mesh(np.array(jax.devices()[:2]), ("fsdp",))

    def split(leaf):
        spec = PartitionSpec("fsdp") if leaf.ndim == 2 else PartitionSpec()
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))

    made = load_weights(jax.tree.map(split, parameters(seed=3)), tmp_path)
    assert same_bits(made, parameters())
    embedding = made["embed"]["embedding"].get_value()
    assert [shard.data.shape for shard in embedding.addressable_shards] == [(10, 16)] * 2
    # Parameters that lie on devices already keep their places.
    again = load_weights(made, tmp_path)["embed"]["embedding"].get_value()
    assert again.sharding == embedding.sharding
    save_weights(made, TIED, tmp_path / "again")
    assert (tmp_path / "again" / SINGLE).read_bytes() == (tmp_path / SINGLE).read_bytes()


def test_a_parameter_that_no_plain_decoder_has(tmp_path):
    with pytest.raises(ValueError, match=r"layers.0.attention.q.a is no parameter .* merge LoRA"):
        weights.theirs(("layers", 0, "attention", "q", "a"))
