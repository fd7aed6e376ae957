"""Weights in and out: safetensors as Hugging Face names and lays them, in one file or in shards.

One table ties their names to ours. Their linear maps are [out, in], ours [in, out]. A folder whose
tensors are not exactly those of the model is refused before a single parameter changes, with every
tensor that is missing, surplus, of another shape or of a type that the parameter cannot hold
without rounding.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from herald_jax.train.model import Decoder, State
from herald_jax.train.model_config import ModelConfig, to_hf_config
from herald_jax.types import Fault, HeraldError

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARD = "model-{:05d}-of-{:05d}.safetensors"
WEIGHT_FILE = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors|" + re.escape(INDEX))
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


class Name(NamedTuple):
    """One kind of tensor; `{}` stands for the number of the layer."""

    ours: str
    theirs: str
    turned: bool  # [in, out] here, [out, in] there


NAMES = (
    Name("embed.embedding", EMBEDDING, False),
    Name("layers.{}.attention_norm.scale", "model.layers.{}.input_layernorm.weight", False),
    Name("layers.{}.attention.q.kernel", "model.layers.{}.self_attn.q_proj.weight", True),
    Name("layers.{}.attention.k.kernel", "model.layers.{}.self_attn.k_proj.weight", True),
    Name("layers.{}.attention.v.kernel", "model.layers.{}.self_attn.v_proj.weight", True),
    Name("layers.{}.attention.o.kernel", "model.layers.{}.self_attn.o_proj.weight", True),
    Name("layers.{}.attention.q_norm.scale", "model.layers.{}.self_attn.q_norm.weight", False),
    Name("layers.{}.attention.k_norm.scale", "model.layers.{}.self_attn.k_norm.weight", False),
    Name("layers.{}.mlp_norm.scale", "model.layers.{}.post_attention_layernorm.weight", False),
    Name("layers.{}.mlp.gate.kernel", "model.layers.{}.mlp.gate_proj.weight", True),
    Name("layers.{}.mlp.up.kernel", "model.layers.{}.mlp.up_proj.weight", True),
    Name("layers.{}.mlp.down.kernel", "model.layers.{}.mlp.down_proj.weight", True),
    Name("norm.scale", "model.norm.weight", False),
    Name("head.kernel", HEAD, True),
)

# What a parameter's type holds without rounding.
_HELD = {"float32": ("F32", "BF16", "F16"), "bfloat16": ("BF16",), "float16": ("F16",)}

Target = TypeVar("Target", Decoder, State)


class WeightsError(HeraldError):
    """Weights that are not those of the model; `faults` lists all of them."""

    def __init__(self, faults: Sequence[Fault]):
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


def theirs(path: Sequence[Any]) -> tuple[str, bool]:
    """Their name of the parameter at `path` of our state, and whether it is turned.

    Raises:
        ValueError: no such parameter in a plain decoder.
    """
    ours = ".".join(map(str, path))
    number = next((str(part) for part in path if str(part).isdigit()), "")
    for name in NAMES:
        if name.ours.format(number) == ours:
            return name.theirs.format(number), name.turned
    raise ValueError(f"{ours} is no parameter of a plain decoder; merge LoRA first")


def load_weights(target: Target, folder: str | PathLike[str]) -> Target:
    """The weights of `folder`, in the types and on the devices of `target`.

    Args:
        target: a decoder, which is changed in place, or the state of its parameters; leaves of a
            state may be `jax.ShapeDtypeStruct`, with a sharding or without: then every device is
            given its own part and no whole parameter.
        folder: holds `model.safetensors`, or shards and `model.safetensors.index.json`. A second
            copy of a tied head is accepted when it is the embedding.

    Returns:
        `target`, or a new state of arrays.

    Raises:
        WeightsError: listing every tensor that is wrong; nothing was changed.
    """
    if isinstance(target, Decoder):
        nnx.update(target, load_weights(nnx.state(target, nnx.Param), folder))
        return target
    leaves = dict(nnx.to_flat_state(target))
    names = {path: theirs(path) for path in leaves}
    with ExitStack() as stack:
        sources = _Sources(Path(folder), stack)
        sources.check({names[path]: _value(leaf) for path, leaf in leaves.items()})
        made = {
            path: leaf.replace(sources.array(*names[path], _value(leaf)))
            for path, leaf in leaves.items()
        }
    return nnx.from_flat_state(made)


def save_weights(
    state: State,
    config: ModelConfig,
    folder: str | PathLike[str],
    shard_bytes: int = 5_000_000_000,
) -> None:
    """Write the parameters and `config.json`, as Hugging Face reads them.

    Every file gets its name when it is whole. Weights that were there are replaced: while the new
    ones take their names the folder holds no model, rather than half of two.

    Args:
        state: parameters of a plain decoder, all of them on devices of this process.
        config: of the decoder.
        folder: made when it is not there; other files in it stay.
        shard_bytes: files are cut before they pass this size, between tensors.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    entries = [(*theirs(path), _value(leaf)) for path, leaf in nnx.to_flat_state(state)]
    groups = _groups(entries, shard_bytes)
    total = sum(array.nbytes for _, _, array in entries)
    types = sorted({array.dtype.name for _, _, array in entries})
    described = to_hf_config(config) | ({"torch_dtype": types[0]} if len(types) == 1 else {})
    places: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix=".weights-", dir=target) as partial:
        for number, group in enumerate(groups, 1):
            file = SINGLE if len(groups) == 1 else SHARD.format(number, len(groups))
            tensors = {name: _laid(array, turned) for name, turned, array in group}
            save_file(tensors, Path(partial) / file, metadata={"format": "pt"})
            places |= dict.fromkeys(tensors, file)
        if len(groups) > 1:
            index = {"metadata": {"total_size": total}, "weight_map": places}
            _write_json(Path(partial) / INDEX, index)
        _write_json(Path(partial) / "config.json", described)
        written = sorted(path.name for path in Path(partial).iterdir())
        for name in written:
            # The writer of safetensors keeps others from reading; a checkpoint is as any file.
            shutil.copymode(Path(partial) / "config.json", Path(partial) / name)
            _flush(Path(partial) / name)
        # What makes a folder loadable goes first and comes last.
        stale = [path for path in target.iterdir() if WEIGHT_FILE.fullmatch(path.name)]
        for path in sorted(stale, key=lambda path: path.name.count("-")):
            path.unlink()
        for name in sorted(written, key=lambda name: (name == INDEX, name)):
            (Path(partial) / name).replace(target / name)


class _Sources:
    """The tensors of a folder, read when they are asked for."""

    def __init__(self, folder: Path, stack: ExitStack):
        self.folder = folder
        self.tensors: dict[str, Any] = {}  # name to its open file
        self.file_of: dict[str, str] = {}
        faults = []
        for file, promised in self._files().items():
            path = folder / file
            try:
                opened = stack.enter_context(safe_open(path, framework="np"))
            except (OSError, SafetensorError) as error:
                faults.append(_fault(path, "", "unreadable", "a safetensors file", str(error)))
                continue
            found = list(opened.keys())
            for name in found:
                self.tensors[name], self.file_of[name] = opened, str(path)
            faults += [
                _fault(path, name, "missing", "a tensor, as the index says", "none")
                for name in sorted(promised - set(found))
            ]
        if faults:
            raise WeightsError(faults)

    def _files(self) -> Mapping[str, set[str]]:
        """Files to open, each with the tensors that an index promises there."""
        single, index = self.folder / SINGLE, self.folder / INDEX
        if single.is_file() and index.is_file():
            expected = f"{SINGLE} or {INDEX}"
            raise WeightsError([_fault(self.folder, "", "ambiguous", expected, "both")])
        if single.is_file():
            return {SINGLE: set()}
        if not index.is_file():
            expected = f"{SINGLE} or {INDEX}"
            raise WeightsError([_fault(self.folder, "", "missing", expected, "neither")])
        expected = "`weight_map`, from tensors to files of the same folder"
        try:
            places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
            files: dict[str, set[str]] = {}
            for name, file in places.items():
                if Path(file).name != file:
                    raise ValueError(f"{name} in {file!r}")
                files.setdefault(file, set()).add(name)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            got = f"{type(error).__name__}: {error}"
            raise WeightsError([_fault(index, "", "bad_index", expected, got)]) from None
        return files

    def check(self, wanted: Mapping[tuple[str, bool], Any]) -> None:
        """Refuse whatever is not as the parameters `wanted` need it."""
        names = {name for name, _ in wanted}
        faults = []
        for (name, turned), leaf in wanted.items():
            if name not in self.tensors:
                shape = leaf.shape[::-1] if turned else leaf.shape
                expected = f"a tensor of shape {list(shape)}"
                faults.append(_fault(self.folder, name, "missing", expected, "none"))
                continue
            part = self.tensors[name].get_slice(name)
            shape, kind = part.get_shape(), part.get_dtype()
            expected_shape = list(leaf.shape[::-1] if turned else leaf.shape)
            if shape != expected_shape:
                where = self.file_of[name]
                faults.append(_fault(where, name, "wrong_shape", str(expected_shape), str(shape)))
            held = _HELD.get(jnp.dtype(leaf.dtype).name, ())
            if kind not in held:
                expected = f"{' or '.join(held)} for a parameter of {jnp.dtype(leaf.dtype).name}"
                faults.append(_fault(self.file_of[name], name, "wrong_type", expected, kind))
        for name in sorted(set(self.tensors) - names):
            if name == HEAD and EMBEDDING in self.tensors:
                faults += self._second_head()
                continue
            got = f"{self.tensors[name].get_slice(name).get_shape()}"
            faults.append(_fault(self.file_of[name], name, "surplus", "no such tensor", got))
        if faults:
            raise WeightsError(faults)

    def _second_head(self) -> Iterator[Fault]:
        """A tied model's head is written a second time by some: it must be the embedding."""
        head = self.tensors[HEAD].get_tensor(HEAD)
        embedding = self.tensors[EMBEDDING].get_tensor(EMBEDDING)
        if head.dtype != embedding.dtype or head.tobytes() != embedding.tobytes():
            expected = "no such tensor, or the embedding again: the head is tied"
            where = self.file_of[HEAD]
            yield _fault(where, HEAD, "surplus", expected, "other values")

    def array(self, name: str, turned: bool, leaf: Any) -> jax.Array:
        """One tensor as `leaf` is: its type, and its devices when it has any."""
        tensor = self.tensors[name].get_tensor(name)
        laid = (tensor.T if turned else tensor).astype(leaf.dtype)
        sharding = getattr(leaf, "sharding", None)
        if sharding is None:
            return jnp.asarray(laid)
        return jax.make_array_from_callback(laid.shape, sharding, lambda part: laid[part])


def _value(leaf: Any) -> Any:
    """The array, or the shape of one, of a variable."""
    return leaf.get_value()


def _laid(array: jax.Array, turned: bool) -> np.ndarray:
    """On the host and in their order; the writer takes memory as it lies."""
    host = np.asarray(array)
    return np.ascontiguousarray(host.T if turned else host)


def _groups(
    entries: Sequence[tuple[str, bool, Any]], shard_bytes: int
) -> list[list[tuple[str, bool, Any]]]:
    """Entries in order, cut before a group passes `shard_bytes`; a larger tensor stands alone."""
    groups: list[list[tuple[str, bool, Any]]] = [[]]
    size = 0
    for entry in entries:
        if groups[-1] and size + entry[2].nbytes > shard_bytes:
            groups.append([])
            size = 0
        groups[-1].append(entry)
        size += entry[2].nbytes
    return groups


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _flush(path: Path) -> None:
    """To the disk before it gets its name: a name must not survive what it names."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _fault(place: Path | str, name: str, code: str, expected: str, got: str) -> Fault:
    remedy = "check that config.json and the weights belong together"
    return Fault(os.fspath(place), 0, name, code, expected, got, remedy)
