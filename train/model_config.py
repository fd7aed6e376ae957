"""Shape of the policy: checked, read from a Hugging Face `config.json`, with presets.

The policy is a decoder of the Qwen3 family (arXiv 2505.09388, section 2): grouped-query attention
with norms of queries and keys, rotary positions, RMSNorm before each block, SwiGLU, no biases.
Whatever of `config.json` would make another model is refused by name: a checkpoint that loads and
answers nonsense is worse than one that does not load.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any

from herald_jax.manifest.rules import (
    Flag,
    Integer,
    Number,
    Problem,
    Rule,
    RuleError,
    read_all,
    shown,
)
from herald_jax.types import HeraldError

ARCHITECTURE = "Qwen3ForCausalLM"

_SIZE = Integer(low=1, high=2**31 - 1)
_RULES: Mapping[str, Rule] = {
    "vocab": _SIZE,
    "width": _SIZE,
    "layers": Integer(low=1, high=10_000),
    "heads": _SIZE,
    "kv_heads": _SIZE,
    "head_dim": _SIZE,
    "hidden": _SIZE,
    "rope_theta": Number(low=1.0, high=1e12),
    "norm_eps": Number(low=0.0, high=1.0, open_ended=True),
    "tied": Flag(),
}

# Ours against theirs. The base of the rotation stands in one of two places, see `_theta`.
_KEYS = {
    "vocab": "vocab_size",
    "width": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "hidden": "intermediate_size",
    "rope_theta": "rope_theta",
    "norm_eps": "rms_norm_eps",
    "tied": "tie_word_embeddings",
}

# What the model does not do: the only value that a file may give, if it gives one.
_FIXED: Mapping[str, Any] = {
    "hidden_act": "silu",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "use_sliding_window": False,
    "rope_scaling": None,
    "quantization_config": None,
}


class ModelConfigError(HeraldError):
    """A shape that no model has, or a `config.json` of a model that is not supported."""

    def __init__(self, owner: str, problems: Sequence[Problem]):
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem.in_file(owner)) for problem in problems))


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Sizes of a decoder; one that breaks a rule cannot be made.

    Attributes:
        vocab: token ids are 0 to vocab - 1.
        width: of the residual stream.
        layers: number of blocks.
        heads: query heads, a multiple of `kv_heads`.
        kv_heads: key and value heads.
        head_dim: width of one head, even; heads * head_dim need not be `width`.
        hidden: width inside the gated feed-forward block.
        rope_theta: base of the rotary angles.
        norm_eps: added to the mean square in every norm.
        tied: the output head is the embedding.

    Raises:
        ModelConfigError: with everything that is wrong.
    """

    vocab: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    rope_theta: float = 1e6
    norm_eps: float = 1e-6
    tied: bool = True

    def __post_init__(self) -> None:
        try:
            values = read_all({name: (rule, getattr(self, name)) for name, rule in _RULES.items()})
        except RuleError as error:
            raise ModelConfigError(type(self).__name__, error.problems) from None
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if problems := list(self._conflicts()):
            raise ModelConfigError(type(self).__name__, problems)

    def _conflicts(self) -> Iterator[Problem]:
        """What is wrong between fields that are each right."""
        if self.heads % self.kv_heads:
            expected = f"a multiple of kv_heads, {self.kv_heads}"
            yield Problem("heads", "conflict", expected, shown(self.heads), "correct one of them")
        if self.head_dim % 2:
            expected = "an even number: rotary positions turn pairs"
            yield Problem("head_dim", "odd", expected, shown(self.head_dim), "correct the value")


def _qwen3(width: int, layers: int, heads: int, hidden: int, *, tied: bool) -> ModelConfig:
    """A published size; what all of them share is said here."""
    return ModelConfig(
        vocab=151_936,
        width=width,
        layers=layers,
        heads=heads,
        kv_heads=8,
        head_dim=128,
        hidden=hidden,
        tied=tied,
    )


PRESETS: Mapping[str, ModelConfig] = MappingProxyType(
    {
        "tiny": ModelConfig(
            vocab=512, width=64, layers=2, heads=4, kv_heads=2, head_dim=16, hidden=192
        ),
        "small": ModelConfig(
            vocab=512, width=128, layers=4, heads=4, kv_heads=2, head_dim=32, hidden=384
        ),
        "qwen3-0.6b": _qwen3(1024, 28, 16, 3072, tied=True),
        "qwen3-1.7b": _qwen3(2048, 28, 16, 6144, tied=True),
        "qwen3-8b": _qwen3(4096, 36, 32, 12_288, tied=False),
        "qwen3-14b": _qwen3(5120, 40, 40, 17_408, tied=False),
    }
)


def read_hf_config(path: str | PathLike[str]) -> ModelConfig:
    """The shape that a Hugging Face `config.json` describes.

    Args:
        path: the file, or the folder that holds it.

    Raises:
        ModelConfigError: the file cannot be read, lacks a size, or describes a model that the
            decoder is not; one line for each problem.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "config.json"
    name = fspath(file)
    document = _document(file, name)
    problems = list(_unsupported(document))
    values = {ours: document[theirs] for ours, theirs in _KEYS.items() if theirs in document}
    values.setdefault("tied", False)  # as Qwen3's own configuration has it when left out
    if (theta := _theta(document)) is not None:
        values["rope_theta"] = theta
    remedy = "take it from the checkpoint"
    problems += [
        Problem(_KEYS[ours], "missing", "a value", "nothing", remedy)
        for ours in _RULES
        if ours not in values
    ]
    try:
        read_all({ours: (_RULES[ours], value) for ours, value in values.items()})
    except RuleError as error:
        problems.extend(problem._replace(key=_KEYS[problem.key]) for problem in error.problems)
    if problems:
        raise ModelConfigError(name, problems)
    try:
        return ModelConfig(**values)
    except ModelConfigError as error:
        renamed = [problem._replace(key=_KEYS[problem.key]) for problem in error.problems]
        raise ModelConfigError(name, renamed) from None


def to_hf_config(config: ModelConfig) -> dict[str, Any]:
    """What `config.json` says of this model; `read_hf_config` reads the same shape back."""
    shape = asdict(config)
    return {
        "architectures": [ARCHITECTURE],
        "model_type": "qwen3",
        **{theirs: shape[ours] for ours, theirs in _KEYS.items()},
        **_FIXED,
        "sliding_window": None,
        "max_position_embeddings": 40_960,  # as published; the decoder itself has no limit
    }


def _document(file: Path, name: str) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        got = error.strerror or "an error"
        problem = Problem("", "unreadable", "a readable config.json", got, "check the path")
        raise ModelConfigError(name, [problem]) from None
    except ValueError as error:
        problem = Problem("", "not_json", "JSON in UTF-8", str(error), "copy the file again")
        raise ModelConfigError(name, [problem]) from None
    if not isinstance(document, dict):
        problem = Problem("", "wrong_type", "an object", shown(document), "copy the file again")
        raise ModelConfigError(name, [problem])
    return document


def _theta(document: Mapping[str, Any]) -> Any:
    """The base of the rotation: newer files keep it in a table of its own."""
    table = document.get("rope_parameters")
    if isinstance(table, dict) and "rope_theta" in table:
        return table["rope_theta"]
    return document.get("rope_theta")


def _unsupported(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Whatever would make a model that the decoder is not."""

    def refused(key: str, expected: str, got: object) -> Problem:
        remedy = "choose a checkpoint of the Qwen3 family without it"
        return Problem(key, "unsupported", expected, shown(got), remedy)

    if document.get("architectures") != [ARCHITECTURE]:
        yield refused("architectures", shown([ARCHITECTURE]), document.get("architectures"))
    for key, only in _FIXED.items():
        got = document.get(key, only)
        # 0 is no boolean and True is no number, though Python has them equal.
        if got != only or isinstance(got, bool) != isinstance(only, bool):
            yield refused(key, "null" if only is None else shown(only), got)
    kinds = document.get("layer_types")
    if kinds is not None and set(map(str, kinds)) != {"full_attention"}:
        yield refused("layer_types", "'full_attention' for every layer", kinds)
    table = document.get("rope_parameters")
    if table is not None:
        kind = table.get("rope_type") if isinstance(table, dict) else table
        if kind != "default":
            yield refused("rope_parameters.rope_type", "'default'", kind)
