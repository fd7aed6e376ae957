"""Where parameters, optimiser state and batches lie: one mesh, one table of rules.

The mesh has three axes. A batch is split over 'data' and 'fsdp'; parameters are split over 'fsdp'
and gathered as they are used (ZeRO stage 3, arXiv 1910.02054, section 5); 'tensor' splits heads and
hidden units (Megatron, arXiv 1909.08053, section 3), so that one sum a block is all its devices
exchange. The embedding is split over its rows alone: split over both axes it would have to be laid
out anew for every look-up.

A rule is found by the end of a leaf's path, so that the moments of an optimiser, which mirror the
parameters, lie where those do.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from herald_jax.types import HeraldError

AXES = ("data", "fsdp", "tensor")

# The first pattern that matches the end of the path wins; a leaf that none matches is replicated.
RULES: tuple[tuple[str, PartitionSpec], ...] = (
    (r"embed\.embedding", PartitionSpec("fsdp", None)),
    (r"head\.kernel", PartitionSpec("fsdp", "tensor")),
    (r"attention\.[qkv]\.kernel", PartitionSpec("fsdp", "tensor")),
    (r"attention\.o\.kernel", PartitionSpec("tensor", "fsdp")),
    (r"mlp\.(gate|up)\.kernel", PartitionSpec("fsdp", "tensor")),
    (r"mlp\.down\.kernel", PartitionSpec("tensor", "fsdp")),
    # LoRA: the long side lies as that of the kernel does, the rank is never split.
    (r"(q|k|v|gate|up)\.a", PartitionSpec("fsdp", None)),
    (r"(q|k|v|gate|up)\.b", PartitionSpec(None, "tensor")),
    (r"(o|down)\.a", PartitionSpec("tensor", None)),
    (r"(o|down)\.b", PartitionSpec(None, "fsdp")),
)
_COMPILED = tuple((re.compile(rf"(?:.*\.)?{pattern}"), spec) for pattern, spec in RULES)


class MeshError(HeraldError):
    """A mesh that the devices at hand cannot make."""


class Placement(NamedTuple):
    """Where the leaves of a tree lie."""

    shardings: Any  # the tree with a NamedSharding for each leaf
    whole: tuple[str, ...]  # axes that a rule splits and whose size does not divide, in words


def make_mesh(
    data: int, fsdp: int, tensor: int, *, devices: Sequence[jax.Device] | None = None
) -> Mesh:
    """A mesh with the axes `AXES`.

    Args:
        data: parts of the batch with a copy of the parameters each.
        fsdp: parts of the batch that share one copy of the parameters.
        tensor: parts of heads and hidden units; it should divide the number of key heads, or
            the devices exchange parts of heads.
        devices: all of this run by default. One process may use fewer: the first ones.

    Raises:
        MeshError: sizes below 1, or more parts than devices, or fewer in a run of several
            processes.
    """
    sizes = (data, fsdp, tensor)
    devices = jax.devices() if devices is None else devices
    parts = math.prod(sizes)
    said = f"mesh (data, fsdp, tensor) = {sizes}"
    if min(sizes) < 1:
        raise MeshError(f"{said}: expected sizes of at least 1; correct the sizes")
    if parts > len(devices) or (parts < len(devices) and jax.process_count() > 1):
        raise MeshError(
            f"{said}: expected {len(devices)} devices, got {parts}; "
            "choose sizes whose product is the number of devices"
        )
    return jax.make_mesh(sizes, AXES, axis_types=(AxisType.Auto,) * 3, devices=devices[:parts])


def abstract_mesh(data: int, fsdp: int, tensor: int) -> AbstractMesh:
    """The same mesh without devices, to reckon with."""
    return AbstractMesh((data, fsdp, tensor), AXES, axis_types=(AxisType.Auto,) * 3)


def param_shardings(abstract_state: Any, mesh: Mesh | AbstractMesh) -> Placement:
    """The sharding of every leaf by `RULES`.

    An axis that its mesh axis does not divide stays whole; so does a leaf of another rank than its
    rule, such as the factored moments of some optimisers.

    Args:
        abstract_state: any tree whose leaves have shapes: parameters, optimiser state, or both.
        mesh: as `make_mesh` or `abstract_mesh` gives it.
    """
    whole: list[str] = []

    def place(keys: Sequence[Any], leaf: Any) -> NamedSharding:
        path, shape = leaf_path(keys), np.shape(leaf)
        spec = list(_rule(path))
        if len(spec) != len(shape):
            spec = []
        for axis, name in enumerate(spec):
            if name is not None and shape[axis] % mesh.shape[name]:
                whole.append(
                    f"{path}: axis {axis} of {shape[axis]} stays whole, "
                    f"{name} = {mesh.shape[name]} does not divide it"
                )
                spec[axis] = None
        return NamedSharding(mesh, PartitionSpec(*spec))

    shardings = jax.tree_util.tree_map_with_path(place, abstract_state)
    return Placement(shardings, tuple(whole))


def batch_sharding(mesh: Mesh | AbstractMesh) -> NamedSharding:
    """Rows, the first axis, over 'data' and 'fsdp'; their product must divide the rows."""
    return NamedSharding(mesh, PartitionSpec(("data", "fsdp")))


def replicated(mesh: Mesh | AbstractMesh) -> NamedSharding:
    """The whole on every device: keys, counters, scalars."""
    return NamedSharding(mesh, PartitionSpec())


def leaf_path(keys: Sequence[Any]) -> str:
    """A path of jax.tree_util with dots; the step from a variable to its array is left out."""
    names = []
    for key in keys:
        name = next(getattr(key, field) for field in ("key", "name", "idx") if hasattr(key, field))
        if name != "value":
            names.append(str(name))
    return ".".join(names)


def _rule(path: str) -> PartitionSpec:
    return next((spec for pattern, spec in _COMPILED if pattern.fullmatch(path)), PartitionSpec())
