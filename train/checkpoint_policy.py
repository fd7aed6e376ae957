"""The policy of a run that is over or under way, for rollouts and evaluation."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from herald_jax.train.checkpoints import CheckpointError, Checkpoints
from herald_jax.train.config import Mesh
from herald_jax.train.config_load import parse_config
from herald_jax.train.setup import Setup, around, prepare
from herald_jax.train.sharding import param_shardings
from herald_jax.train.tasks import pool_tasks
from herald_jax.train.trainer import Trainer


def open_run(run: Path, *, step: int | None = None) -> tuple[Setup, tuple[Any, Any], int]:
    """The parts of a run and its policy.

    Args:
        run: its folder; `RUN/checkpoints/STEP` names a checkpoint of it.
        step: which checkpoint; None is the last whole one.

    Returns:
        The setup, the trained and frozen states, and the updates that they have taken.

    Raises:
        CheckpointError: there is no run, or no whole checkpoint of it.
    """
    if run.name.isdigit() and run.parent.name == "checkpoints":
        run, step = run.parent.parent, int(run.name)
    try:
        told = json.loads((run / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{run}: expected the folder of a run of `herald train`, got none ({error})"
        ) from None
    config = parse_config(told["settings"], str(run / "run.json"))
    # One device is enough to roll out, whatever the run was laid over.
    config = replace(config, mesh=Mesh())
    setup, states = prepare(config)
    checkpoints = Checkpoints(
        run,
        keep=config.run.keep,
        identity={**setup.identity, "settings": told["identity"]["settings"]},
    )
    try:
        found = checkpoints.latest() if step is None else step
        if found is None or not (checkpoints.folder / str(found)).is_dir():
            raise CheckpointError(
                f"{checkpoints.folder}: expected a whole checkpoint"
                f"{'' if step is None else f' {step}'}, got none"
            )
        trainer = Trainer(setup, states)
        trainer.take_over(*checkpoints.restore(found, trainer.saved))
    finally:
        checkpoints.close()
    return setup, trainer.states, trainer.updates


def start_from(setup: Setup, place: Path) -> tuple[Any, Any]:
    """The trained and frozen states of another run's policy, for a run of the same policy.

    Raises:
        CheckpointError: the policies differ in shape, tokeniser or LoRA.
    """
    other, states, _ = open_run(place)
    mine, theirs = setup.config.policy, other.config.policy
    for name, expected, got in (
        ("shape", setup.shape, other.shape),
        ("tokeniser", setup.identity["tokeniser"][:12], other.identity["tokeniser"][:12]),
        ("lora_rank", mine.lora_rank, theirs.lora_rank),
        ("lora_alpha", mine.lora_alpha, theirs.lora_alpha),
    ):
        if expected != got:
            raise CheckpointError(f"{place}: {name}: expected {expected}, got {got}")
    placed = param_shardings(states, setup.mesh).shardings
    moved: tuple[Any, Any] = jax.device_put(states, placed)
    return moved


def on_pool(setup: Setup, folder: Path) -> Setup:
    """The same policy before the questions and the corpus of a pool.

    Raises:
        InputError: its files have faults.
        TaskError: no question of it has a gold label.
    """
    tasks = pool_tasks(folder, held_out=1.0)
    parts = around(setup.config, setup.manifest, setup.tokeniser, tasks)
    return replace(setup, world=None, **parts)
