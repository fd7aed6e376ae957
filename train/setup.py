"""From settings to the parts of a run: tasks, tokeniser, policy, environment, reward."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from herald_jax.manifest import Manifest, load_manifest, manifest_digest
from herald_jax.train.config import TrainConfig
from herald_jax.train.config_load import config_digest
from herald_jax.train.environment import Environment, Tasks
from herald_jax.train.evidence import Evidence
from herald_jax.train.lora import LoraConfig, LoraParam, add_lora
from herald_jax.train.model import Decoder
from herald_jax.train.model_config import PRESETS, ModelConfig, read_hf_config
from herald_jax.train.reward import RewardModel
from herald_jax.train.rollout import Sampler
from herald_jax.train.sharding import make_mesh, param_shardings
from herald_jax.train.tasks import TaskError, make_world, pool_tasks, world_tasks
from herald_jax.train.tokens import Tokeniser
from herald_jax.train.weights import load_weights
from herald_jax.world import World

_TRAINED_ON = 4000  # passages that a tokeniser of our own is trained on


@dataclass(frozen=True, eq=False)
class Setup:
    """What stays the same during a run.

    Attributes:
        config: the settings.
        manifest: whose contract is paid.
        world: the built-in world; None for a pool.
        tasks: questions, corpus, gold labels.
        tokeniser: the policy's.
        shape: sizes of the policy.
        graph: its structure, to be merged with a trained and a frozen state.
        compute: type of the computation.
        environment: answers searches.
        reward: scores rollouts.
        evidence: what searches bring, by the gold labels.
        mesh: the devices.
    """

    config: TrainConfig
    manifest: Manifest
    world: World | None
    tasks: Tasks
    tokeniser: Tokeniser
    shape: ModelConfig
    graph: nnx.GraphDef[Any]
    compute: Any
    environment: Environment
    reward: RewardModel
    evidence: Evidence
    mesh: jax.sharding.Mesh

    @property
    def identity(self) -> dict[str, str]:
        """Digests of all that decides what a run computes, by name."""
        tasks = hashlib.sha256()
        for task in (*self.tasks.train, *self.tasks.held_out):
            tasks.update(repr((task.question_id, task.question)).encode())
        for passage in self.tasks.passages:
            tasks.update(repr((passage.passage_id, passage.title, passage.text)).encode())
        for row in self.tasks.oracle:
            tasks.update(repr(row).encode())
        return {
            "settings": config_digest(self.config),
            "manifest": manifest_digest(self.manifest),
            "tasks": tasks.hexdigest(),
            "tokeniser": hashlib.sha256(self.tokeniser.to_json().encode()).hexdigest(),
        }


def prepare(config: TrainConfig) -> tuple[Setup, tuple[Any, Any]]:
    """The parts of a run, and the policy's trained and frozen states as they are at its start.

    Raises:
        HeraldError: settings, files or devices do not fit; says which.
    """
    manifest = load_manifest(config.reward.manifest) if config.reward.manifest else Manifest()
    world = None if config.data.pool else make_world(config.data)
    if world is None:
        tasks = pool_tasks(Path(config.data.pool), config.data.held_out)
    else:
        tasks = world_tasks(world)
    if not tasks.train or not tasks.held_out:
        raise TaskError(
            "data: expected questions to train on and held-out ones, got "
            f"{len(tasks.train)} and {len(tasks.held_out)}; ask for more questions"
        )
    tokeniser = make_tokeniser(config, tasks)
    mesh = make_mesh(config.mesh.data, config.mesh.fsdp, config.mesh.tensor)
    compute = compute_type(config.policy.compute)
    shape = model_shape(config, tokeniser)
    graph, states = make_policy(config, shape, compute, mesh)
    setup = Setup(
        config=config,
        manifest=manifest,
        world=world,
        tokeniser=tokeniser,
        shape=shape,
        graph=graph,
        compute=compute,
        mesh=mesh,
        **around(config, manifest, tokeniser, tasks),
    )
    return setup, states


def around(
    config: TrainConfig, manifest: Manifest, tokeniser: Tokeniser, tasks: Tasks
) -> dict[str, Any]:
    """The parts of a setup that questions and corpus decide."""
    return {
        "tasks": tasks,
        "environment": Environment(
            tasks.passages,
            tokeniser,
            results=config.environment.results,
            passage_tokens=config.environment.passage_tokens,
        ),
        "reward": RewardModel(tasks.passages, tasks.oracle, manifest, config.reward.contract),
        "evidence": Evidence(tasks.passages, tasks.oracle, manifest.data.rules),
    }


def sampler_of(setup: Setup) -> Sampler:
    """Runs the policy's conversations."""
    return Sampler(
        setup.shape,
        setup.graph,
        setup.tokeniser,
        setup.environment,
        setup.mesh,
        setup.compute,
    )


def make_tokeniser(config: TrainConfig, tasks: Tasks) -> Tokeniser:
    """The checkpoint's own, or a small one trained on corpus and questions."""
    if config.policy.folder:
        return Tokeniser.load(Path(config.policy.folder) / "tokenizer.json")
    texts = [
        f"{passage.passage_id} {passage.title} {passage.text}"
        for passage in tasks.passages[:_TRAINED_ON]
    ]
    texts += [task.question for task in tasks.train]
    return Tokeniser.train(texts, config.policy.vocab)


def model_shape(config: TrainConfig, tokeniser: Tokeniser) -> ModelConfig:
    """Sizes of the policy; a preset from nothing has as many ids as the tokeniser."""
    if config.policy.folder:
        return read_hf_config(config.policy.folder)
    return replace(PRESETS[config.policy.preset], vocab=tokeniser.size)


def compute_type(name: str) -> Any:
    """float32 on CPU and bfloat16 on an accelerator, unless one is named."""
    if name == "auto":
        name = "float32" if jax.default_backend() == "cpu" else "bfloat16"
    return jnp.dtype(name).type


def make_policy(
    config: TrainConfig, shape: ModelConfig, compute: Any, mesh: jax.sharding.Mesh
) -> tuple[nnx.GraphDef[Any], tuple[Any, Any]]:
    """Structure, and the trained and frozen states, laid out over the mesh.

    Weights are drawn from the run's seed where they are to lie: no device ever holds all of a
    policy that is split.
    """
    rank = config.policy.lora_rank

    def build() -> Decoder:
        decoder = Decoder(
            shape, rngs=nnx.Rngs(config.run.seed), dtype=compute, remat=shape.width >= 1024
        )
        if rank:
            lora = LoraConfig(rank=rank, alpha=config.policy.lora_alpha)
            add_lora(decoder, lora, rngs=nnx.Rngs(config.run.seed + 1))
        return decoder

    def states() -> tuple[Any, Any]:
        _, *parts = nnx.split(build(), LoraParam if rank else nnx.Param, ...)
        return parts[0], parts[1]

    graph, *abstract = nnx.split(nnx.eval_shape(build), LoraParam if rank else nnx.Param, ...)
    placed = param_shardings(tuple(abstract), mesh).shardings
    trained, frozen = jax.jit(states, out_shardings=placed)()
    if config.policy.folder:
        # Under LoRA the checkpoint is what is frozen, and what is trained starts at nothing.
        if rank:
            frozen = load_weights(frozen, config.policy.folder)
        else:
            trained = load_weights(trained, config.policy.folder)
    return graph, (trained, frozen)
