"""LoRA: a frozen kernel and a trained low-rank difference beside it (arXiv 2106.09685, section 4).

    y = x W + (alpha / rank) (x A) B        W [in, out], A [in, rank], B [rank, out]

B starts at zero, so a decoder answers as before until it is trained. A and B are `LoraParam`, the
kernels stay `nnx.Param`: `nnx.split(decoder, LoraParam, ...)` tells what is trained from what is
not, and `trainable` says the same of the paths of a whole state, for a mask of optax.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from herald_jax.manifest.rules import Choice, Integer, Items, Number, Rule, RuleError, read_all
from herald_jax.train.model import Decoder, Dense, State
from herald_jax.train.model_config import ModelConfigError

ATTENTION, MLP = ("q", "k", "v", "o"), ("gate", "up", "down")
_RULES: dict[str, Rule] = {
    "kernels": Items(item=Choice(ATTENTION + MLP), low=1, high=len(ATTENTION + MLP)),
    "rank": Integer(low=1, high=65_536),
    "alpha": Number(low=0.0, high=1e6, open_ended=True),
}


@dataclass(frozen=True, kw_only=True)
class LoraConfig:
    """Which kernels get a difference, and of what rank.

    Attributes:
        kernels: names of kernels, in every layer.
        rank: columns of A and rows of B.
        alpha: the difference is scaled by alpha / rank.

    Raises:
        ModelConfigError: with everything that is wrong.
    """

    kernels: tuple[str, ...] = ATTENTION + MLP
    rank: int = 16
    alpha: float = 32.0

    def __post_init__(self) -> None:
        try:
            values = read_all({name: (rule, getattr(self, name)) for name, rule in _RULES.items()})
        except RuleError as error:
            raise ModelConfigError(type(self).__name__, error.problems) from None
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def scale(self) -> float:
        """What the product A B is multiplied by."""
        return self.alpha / self.rank


class LoraParam(nnx.Param[jax.Array]):
    """A parameter of a low-rank difference."""


class LoraDense(Dense):
    """`Dense` with a difference beside its kernel."""

    def __init__(self, base: Dense, config: LoraConfig, *, rngs: nnx.Rngs):
        inputs, outputs = base.kernel.shape
        kind = base.kernel[...].dtype
        draw = nnx.initializers.normal(inputs**-0.5)
        self.kernel = base.kernel
        self.a = LoraParam(draw(rngs.params(), (inputs, config.rank), kind))
        self.b = LoraParam(jnp.zeros((config.rank, outputs), kind))
        self.scale = config.scale
        self.dtype = base.dtype

    def __call__(self, x: jax.Array) -> jax.Array:
        """[..., inputs] to [..., outputs]."""
        x = x.astype(self.dtype)
        down = x @ self.a[...].astype(self.dtype)
        difference = down @ self.b[...].astype(self.dtype)
        return super().__call__(x) + difference * jnp.asarray(self.scale, self.dtype)


def add_lora(decoder: Decoder, config: LoraConfig, *, rngs: nnx.Rngs) -> None:
    """Give the named kernels of every layer a difference, in place; the outputs stay as they are.

    Raises:
        ValueError: the decoder has one already.
    """
    for block, name in _kernels(decoder, config):
        base = getattr(block, name)
        if isinstance(base, LoraDense):
            raise ValueError("the decoder has LoRA already")
        setattr(block, name, LoraDense(base, config, rngs=rngs))


def merge(state: State, config: LoraConfig) -> State:
    """The plain decoder's parameters: W + (alpha / rank) A B, and no LoraParam.

    Args:
        state: all parameters of a decoder with LoRA.
        config: what `add_lora` was given.

    Returns:
        A new state; `nnx.update` puts it into a decoder without LoRA, `save_weights` writes it.
    """
    leaves = dict(nnx.to_flat_state(state))
    merged = {}
    for path, leaf in leaves.items():
        if isinstance(leaf, LoraParam):
            continue
        beside = (*path[:-1], "a"), (*path[:-1], "b")
        if path[-1] == "kernel" and beside[0] in leaves:
            a, b = (leaves[name].get_value().astype(jnp.float32) for name in beside)
            kernel = leaf.get_value()
            whole = kernel.astype(jnp.float32) + config.scale * (a @ b)
            leaf = leaf.replace(whole.astype(kernel.dtype))
        merged[path] = leaf
    return nnx.from_flat_state(merged)


def trainable(state: State) -> State:
    """A state of booleans like `state`, true for LoraParam alone: a mask for optax."""
    leaves = nnx.to_flat_state(state)
    return nnx.from_flat_state(
        [(path, leaf.replace(isinstance(leaf, LoraParam))) for path, leaf in leaves]
    )


def _kernels(decoder: Decoder, config: LoraConfig) -> Iterator[tuple[Any, str]]:
    for layer in decoder.layers:
        for name in config.kernels:
            yield (layer.attention if name in ATTENTION else layer.mlp), name
