"""Bytes that training keeps on each device, worked out from shapes and the table of shardings.

No hardware is needed, nor that many devices: shapes come from tracing, parts from the rules. What
is counted stays from update to update: parameters, gradients, and the optimiser's two moments
(Adam, arXiv 1412.6980) in float32. Activations, the cache of a rollout and what a compiler sets
aside come on top and depend on batch and length.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.typing import DTypeLike

from herald_jax.train.model import Decoder, State
from herald_jax.train.model_config import ModelConfig
from herald_jax.train.sharding import abstract_mesh, param_shardings


@dataclass(frozen=True, kw_only=True)
class MemoryRow:
    """One mesh; bytes are those of one device, the same for all of them."""

    data: int
    fsdp: int
    tensor: int
    parameters: int
    gradients: int
    optimiser: int

    @property
    def devices(self) -> int:
        """Devices of the mesh."""
        return self.data * self.fsdp * self.tensor

    @property
    def total(self) -> int:
        """Bytes of a device."""
        return self.parameters + self.gradients + self.optimiser


def abstract_parameters(config: ModelConfig, param_dtype: DTypeLike = jnp.float32) -> State:
    """Shapes and types of a decoder's parameters; nothing is allocated."""
    decoder = nnx.eval_shape(
        lambda: Decoder(config, rngs=nnx.Rngs(0), dtype=param_dtype, param_dtype=param_dtype)
    )
    return nnx.state(decoder, nnx.Param)


def memory_table(
    config: ModelConfig,
    shapes: Iterable[tuple[int, int, int]],
    *,
    param_dtype: DTypeLike = jnp.float32,
) -> tuple[MemoryRow, ...]:
    """What each mesh keeps on a device.

    Args:
        config: sizes of the decoder.
        shapes: (data, fsdp, tensor) of each mesh.
        param_dtype: of parameters and gradients; the moments are float32.
    """
    parameters = abstract_parameters(config, param_dtype)
    wide = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.float32), parameters)
    optimiser = jax.eval_shape(optax.scale_by_adam().init, wide)
    rows = []
    for data, fsdp, tensor in shapes:
        held = bytes_per_device(parameters, data, fsdp, tensor)
        rows.append(
            MemoryRow(
                data=data,
                fsdp=fsdp,
                tensor=tensor,
                parameters=held,
                gradients=held,
                optimiser=bytes_per_device(optimiser, data, fsdp, tensor),
            )
        )
    return tuple(rows)


def bytes_per_device(tree: Any, data: int, fsdp: int, tensor: int) -> int:
    """Bytes of one device's parts of `tree`, whose leaves have shapes and types."""
    placed = param_shardings(tree, abstract_mesh(data, fsdp, tensor)).shardings
    parts = zip(jax.tree.leaves(tree), jax.tree.leaves(placed), strict=True)
    return sum(
        int(np.prod(sharding.shard_shape(leaf.shape), dtype=np.int64)) * leaf.dtype.itemsize
        for leaf, sharding in parts
    )
