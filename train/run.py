"""A whole run: start or go on, warm start, updates, checkpoints, logs, evaluation, the page."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from herald_jax.data.records import Trajectory
from herald_jax.data.tables import read_table
from herald_jax.interrupts import uninterrupted
from herald_jax.train.checkpoint_policy import start_from
from herald_jax.train.checkpoints import Checkpoints
from herald_jax.train.config import TrainConfig
from herald_jax.train.config_load import config_dict
from herald_jax.train.evaluate import Evaluation, evaluate
from herald_jax.train.logs import RunLog, write_json
from herald_jax.train.page import write_page
from herald_jax.train.rollout import Rollout
from herald_jax.train.setup import Setup, prepare
from herald_jax.train.tasks import TaskError
from herald_jax.train.trainer import Trainer, Update
from herald_jax.train.warm_start import Traces, make_traces, warm_start
from herald_jax.types import InputError
from herald_jax.world import HABITS
from herald_jax.world import rollouts as scripted

Say = Callable[[str], None]
Draw = Callable[[str, int, int, Mapping[str, float | int]], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        updates: taken in all.
        spent: generated action tokens.
        before: the warm-started policy on held-out questions; None when the run went on from a
            checkpoint of later updates.
        after: the trained one.
        told: what each detector did to training, in words.
    """

    updates: int
    spent: int
    before: Evaluation | None
    after: Evaluation
    told: list[str]


def train(config: TrainConfig, out: Path, *, say: Say, draw: Draw) -> Outcome:
    """Train a policy, from nothing or from the last whole checkpoint below `out`.

    Args:
        config: the settings.
        out: folder of the run, made when absent.
        say: told what happens, line by line.
        draw: told progress: stage, done, total, numbers.

    Raises:
        HeraldError: settings, files or checkpoints do not fit.
    """
    setup, states = prepare(config)
    out.mkdir(parents=True, exist_ok=True)
    checkpoints = Checkpoints(out, keep=config.run.keep, identity=setup.identity)
    try:
        return _train(setup, states, out, checkpoints, say, draw)
    finally:
        checkpoints.close()


def _train(
    setup: Setup,
    states: tuple[Any, Any],
    out: Path,
    checkpoints: Checkpoints,
    say: Say,
    draw: Draw,
) -> Outcome:
    for name in checkpoints.incomplete():
        say(f"{checkpoints.folder / name}: not a whole checkpoint, not used")
    latest = checkpoints.latest()
    if latest is None:
        if setup.config.policy.start:
            states = start_from(setup, Path(setup.config.policy.start))
        if setup.config.warm_start.steps:
            states = warm_start(setup, states, traces_of(setup), draw)
        trainer = Trainer(setup, states)
        if primary():
            _write_run(out, setup)
        checkpoints.save(0, trainer.saved, trainer.carried)
        checkpoints.finish()
    else:
        trainer = Trainer(setup, states)
        trainer.take_over(*checkpoints.restore(latest, trainer.saved))
        say(f"going on from {checkpoints.folder / str(latest)}: {trainer.updates:,} updates")
    log = RunLog(out, trainer.updates) if primary() else None
    if log is not None:
        log.write_pool(setup.tasks.passages, setup.tasks.oracle)
    before = _evaluate(setup, trainer, out, draw) if trainer.updates == 0 else None
    # Ctrl-C waits for the update that is under way, and for its checkpoint.
    with uninterrupted() as interrupted:
        try:
            _updates(setup, trainer, checkpoints, log, out, draw, interrupted)
            if checkpoints.latest() != trainer.updates:
                checkpoints.save(trainer.updates, trainer.saved, trainer.carried)
        finally:
            checkpoints.finish()
            if log is not None:
                log.close()
    after = _evaluate(setup, trainer, out, draw)
    outcome = Outcome(trainer.updates, trainer.spent, before, after, trainer.signals.lines())
    if not primary():
        return outcome
    write_json(
        out / "summary.json",
        {
            "updates": outcome.updates,
            "action_tokens": outcome.spent,
            "detectors": outcome.told,
            "credit": trainer.credit.summary(),
            "signals": trainer.signals.sums,
            "evaluations": _evaluations(out),
        },
    )
    write_page(out)
    return outcome


def primary() -> bool:
    """Whether this process writes files: the first of several hosts, which all do the same."""
    return jax.process_index() == 0


def _updates(
    setup: Setup,
    trainer: Trainer,
    checkpoints: Checkpoints,
    log: RunLog | None,
    out: Path,
    draw: Draw,
    interrupted: Callable[[], bool],
) -> None:
    """Updates until the budget of generated action tokens is spent."""
    run = setup.config.run
    every = setup.config.evaluation.every
    while trainer.spent < run.budget and trainer.updates < run.updates and not interrupted():
        update = trainer.update()
        if log is not None:
            log.write_rollouts(update.number, rollout_rows(update))
            log.write_metrics(update.metrics)
        draw("train", min(trainer.spent, run.budget), run.budget, update.metrics)
        if update.number % run.checkpoint_every == 0:
            checkpoints.save(update.number, trainer.saved, trainer.carried)
        if every and update.number % every == 0:
            _evaluate(setup, trainer, out, draw)


def traces_of(setup: Setup) -> Traces:
    """What is imitated: a file, or the world's agents on the questions that are trained on.

    Raises:
        InputError: the file has faults.
        TaskError: a pool of the user's own, and no file.
    """
    settings = setup.config.warm_start
    if settings.traces:
        table = read_table([settings.traces], Trajectory)
        if table.faults:
            raise InputError(table.faults)
        records = table.records
    elif setup.world is not None:
        records = scripted(
            setup.world,
            settings.rollouts,
            seed=setup.config.run.seed,
            habits={name: HABITS[name] for name in settings.habits},
            questions=setup.world.split("train"),
        )
    else:
        raise TaskError(
            "warm_start.traces: expected a file of trajectories for a pool of your own, got none; "
            "name one or set warm_start.steps = 0"
        )
    return make_traces(
        records,
        setup.tokeniser,
        setup.environment,
        setup.config.environment.turns,
        settings.tokens,
    )


def rollout_rows(update: Update) -> list[dict[str, Any]]:
    """Rollouts as records of SPEC section 1, with what training knows of them beside."""
    rewarded, credited = update.rewarded, update.credited
    reward, advantage = np.asarray(rewarded.reward), np.asarray(credited.advantage)
    bonus, credit = np.asarray(credited.bonus), np.asarray(credited.credit)
    rows = []
    for at, run in enumerate(update.rollouts):
        rows.append(
            record_row(f"update-{update.number}/{run.row}", run)
            | {
                "update": update.number,
                "reward": _number(reward[at]),
                "terms": {name: float(value[at]) for name, value in rewarded.terms.items()},
                "bonus": float(bonus[at]),
                "advantage": float(advantage[at]),
                "credit": credit[at, : len(run.searches)].tolist(),
                "em": float(rewarded.em[at]),
                "f1": float(rewarded.f1[at]),
            }
        )
    return rows


def record_row(name: str, run: Rollout) -> dict[str, Any]:
    """A rollout as a record, with its tokens and who wrote which of them."""
    record = run.record(name, "policy", run.row)
    return {field: getattr(record, field) for field in record.__struct_fields__} | {
        "stop": run.stop,
        "tokens": run.tokens,
        "spans": [[span.author, span.kind, span.first, span.last] for span in run.spans],
    }


def _number(value: np.floating[Any]) -> float | None:
    return float(value) if np.isfinite(value) else None


def _evaluate(setup: Setup, trainer: Trainer, out: Path, draw: Draw) -> Evaluation:
    """Held-out questions, written beside the metrics."""
    settings = setup.config.evaluation
    found = evaluate(
        setup,
        trainer.states,
        setup.tasks.held_out[: settings.questions],
        samples=settings.samples,
        seed=settings.seed,
        draw=lambda done, total: draw("evaluate", done, total, {}),
    )
    if primary():
        folder = out / "evaluations"
        folder.mkdir(exist_ok=True)
        write_json(folder / f"update-{trainer.updates:08d}.json", found.summary)
        if trainer.updates:
            write_page(out)
    return found


def _evaluations(out: Path) -> dict[str, Any]:
    """All of them by update."""
    return {
        str(int(path.stem.rsplit("-", 1)[1])): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((out / "evaluations").glob("update-*.json"))
    }


def _write_run(out: Path, setup: Setup) -> None:
    """What the run was made from, for people and for `rollout` and `eval`."""
    write_json(
        out / "run.json",
        {
            "settings": config_dict(setup.config),
            "identity": setup.identity,
            "device": str(jax.devices()[0].device_kind),
        },
    )
    setup.tokeniser.save(out / "tokenizer.json")
