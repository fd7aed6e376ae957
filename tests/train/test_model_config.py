import json
from dataclasses import replace

import jax
import pytest

from herald_jax.train.memory import abstract_parameters
from herald_jax.train.model_config import (
    PRESETS,
    ModelConfig,
    ModelConfigError,
    read_hf_config,
    to_hf_config,
)
from herald_jax.types import HeraldError

TINY = PRESETS["tiny"]

# What the hub counts in the published checkpoints; the small ones without the second copy of
# their tied head, 151936 * width.
PUBLISHED = {
    "qwen3-0.6b": 751_632_384 - 151_936 * 1024,
    "qwen3-1.7b": 2_031_739_904 - 151_936 * 2048,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
}


def written(folder, **changes):
    document = to_hf_config(TINY) | changes
    kept = {key: value for key, value in document.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", PUBLISHED)
def test_presets_have_the_published_number_of_parameters(name):
    leaves = jax.tree.leaves(abstract_parameters(PRESETS[name]))
    assert sum(leaf.size for leaf in leaves) == PUBLISHED[name]


def test_small_presets():
    assert (TINY.width, TINY.layers, TINY.vocab, TINY.tied) == (64, 2, 512, True)
    small = PRESETS["small"]
    assert (small.width, small.layers, small.heads, small.kv_heads) == (128, 4, 4, 2)
    # Embedding 512 * 128; a layer: q and o 128 * 128 each, k and v 128 * 64, three of the
    # feed-forward 128 * 384, norms 2 * 128 + 2 * 32; the last norm 128.
    layer = 2 * 128 * 128 + 2 * 128 * 64 + 3 * 128 * 384 + 2 * 128 + 2 * 32
    leaves = jax.tree.leaves(abstract_parameters(small))
    assert sum(leaf.size for leaf in leaves) == 512 * 128 + 4 * layer + 128


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("as_file", [True, False])
def test_what_is_written_is_read_back(name, as_file, tmp_path):
    config = PRESETS[name]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(to_hf_config(config)), encoding="utf-8")
    assert read_hf_config(file if as_file else tmp_path) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 3}, "heads: conflict: expected a multiple of kv_heads, 2, got 3"),
        ({"head_dim": 15}, "head_dim: odd: expected an even number"),
        ({"vocab": 0}, "vocab: out_of_range: expected a whole number from 1"),
        ({"layers": True}, "layers: wrong_type: expected a whole number"),
        ({"width": 64.0}, "width: wrong_type: expected a whole number"),
        ({"norm_eps": 0.0}, "norm_eps: out_of_range"),
        ({"rope_theta": float("nan")}, "rope_theta: not_finite"),
        ({"tied": 1}, "tied: wrong_type: expected true or false, got 1"),
    ],
)
def test_a_wrong_shape_cannot_be_made(changes, message):
    with pytest.raises(ModelConfigError, match=message) as caught:
        replace(TINY, **changes)
    assert isinstance(caught.value, HeraldError)


def test_all_faults_of_a_shape_are_listed():
    with pytest.raises(ModelConfigError) as caught:
        replace(TINY, heads=3, head_dim=15)
    assert [problem.key for problem in caught.value.problems] == ["heads", "head_dim"]


def test_numbers_are_stored_as_their_type():
    config = replace(TINY, rope_theta=10_000)
    assert (config.rope_theta, type(config.rope_theta)) == (10_000.0, float)
    assert hash(config) == hash(replace(TINY, rope_theta=10_000.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, "architectures: unsupported: expected "),
        ({"architectures": ["Qwen3MoeForCausalLM"]}, r"got \['Qwen3MoeForCausalLM'\]"),
        ({"architectures": ...}, "architectures: unsupported: .* got None"),
        ({"hidden_act": "gelu"}, "hidden_act: unsupported: expected 'silu', got 'gelu'"),
        ({"attention_bias": True}, "attention_bias: unsupported: expected false, got true"),
        ({"attention_dropout": 0.1}, "attention_dropout: unsupported: expected 0.0, got 0.1"),
        ({"use_sliding_window": True}, "use_sliding_window: unsupported: expected false, got true"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling: unsupported: expected null, got "),
        ({"quantization_config": {"bits": 4}}, "quantization_config: unsupported"),
        ({"layer_types": ["sliding_attention"] * 2}, "layer_types: unsupported"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters.rope_type: .* got 'yarn'"),
        ({"head_dim": ...}, "head_dim: missing: expected a value, got nothing"),
        ({"rope_theta": ...}, "rope_theta: missing"),
        ({"num_attention_heads": 3}, "num_attention_heads: conflict"),
        ({"vocab_size": "512"}, "vocab_size: wrong_type"),
        ({"vocab_size": None}, "vocab_size: wrong_type"),
    ],
)
def test_another_model_is_refused_by_name(changes, message, tmp_path):
    with pytest.raises(ModelConfigError, match=message) as caught:
        read_hf_config(written(tmp_path, **changes))
    assert str(caught.value).startswith(str(tmp_path / "config.json"))


def test_all_faults_of_a_file_are_listed(tmp_path):
    folder = written(tmp_path, hidden_act="gelu", attention_bias=True, head_dim=..., vocab_size=-1)
    with pytest.raises(ModelConfigError) as caught:
        read_hf_config(folder)
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {"hidden_act", "attention_bias", "head_dim", "vocab_size"}


def test_what_changes_nothing_is_accepted(tmp_path):
    folder = written(
        tmp_path,
        sliding_window=4096,  # a size that is not in use
        layer_types=["full_attention"] * 2,
        rope_parameters={"rope_type": "default", "rope_theta": 5e5},
        rope_theta=...,
        tie_word_embeddings=...,
        torch_dtype="bfloat16",
        use_cache=True,
    )
    assert read_hf_config(folder) == replace(TINY, rope_theta=5e5, tied=False)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not_json"), ("[]", "wrong_type: expected an object")]
)
def test_no_document(text, message, tmp_path):
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelConfigError, match=message):
        read_hf_config(tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(ModelConfigError, match="unreadable: expected a readable config"):
        read_hf_config(tmp_path)


def test_keywords_only():
    with pytest.raises(TypeError):
        ModelConfig(512, 64, 2, 4, 2, 16, 192)
