"""Faults of going on: the newest-looking folder, a stale pointer, data or keys a second time.

Orbax writes to a folder with a temporary name and renames it, which stands for the marker of the
case: a folder without one is laid down under such a name. What is called like a finished
checkpoint and is none (a part of it is missing, or it is of another number) cannot come from a
crash; it is refused by name, and the run goes on from the one before once it is taken away.

Random keys are folded from the number of the update, so that they have no state of their own; that
the rollouts of a resumed run are those of one that never stopped is tests/train/test_trainer.py.
"""

import re
import shutil
from pathlib import Path

import jax.numpy as jnp

from herald_jax.train.checkpoints import CheckpointError, Checkpoints
from herald_jax.train.environment import Task
from herald_jax.train.grouping import questions_of_update
from known_faults.cases import Case, Record

STATE = {"weights": jnp.arange(4, dtype=jnp.float32), "step": jnp.int32(0)}
IDENTITY = {"settings": "0123456789ab"}


def resumed_steps(case: Case, folder: Path) -> None:
    given, expected = case.given, case.expected
    step, left = gone_on_from(folder / "first", given["directories"], given)
    assert step == expected["resume_step"]
    assert left == expected["incomplete"]
    # The data of what comes next are those of a run that never stopped.
    count = given["batches_per_step"]
    assert count * step == expected["next_batch_index"]
    tasks = [Task(f"q{n}", "?") for n in range(count * step + count)]
    whole = questions_of_update(tasks, len(tasks), 0, 0)
    assert questions_of_update(tasks, count, step, 0) == whole[count * step :]

    step, left = gone_on_from(folder / "second", given["second_run_directories"], given)
    assert (step or 0) == expected["second_run"]["resume_step"]
    assert (step is None) == expected["second_run"]["fresh_start"]
    assert left == expected["second_run"]["incomplete"]


def gone_on_from(
    run: Path, directories: list[Record], given: Record
) -> tuple[int | None, list[str]]:
    """Where a run goes on, and what it names as not whole."""
    names = lay_down(run, directories, set(given["required"]))
    (run / "checkpoints" / "latest").write_text(given["latest_file"], encoding="utf-8")
    there = {path.name for path in (run / "checkpoints").iterdir()}
    refused = []
    while True:
        checkpoints = Checkpoints(run, keep=1000, identity=IDENTITY)
        step = checkpoints.latest()
        left = checkpoints.incomplete()
        reason = None if step is None else refusal(checkpoints, step)
        checkpoints.close()
        if reason is None:
            break
        assert f"checkpoints/{step}: " in reason
        refused.append(str(step))
        (run / "checkpoints" / str(step)).rename(run / f"taken away {step}")
    # Nothing is deleted.
    assert {path.name for path in (run / "checkpoints").iterdir()} == there - set(refused)
    found = sorted(names[name] for name in (*left, *refused))
    return step, [name for name in found if name.startswith("step_")]


def refusal(checkpoints: Checkpoints, step: int) -> str | None:
    """Why a checkpoint is not gone on from; None when it is."""
    try:
        state, loop = checkpoints.restore(step, STATE)
    except CheckpointError as error:
        return str(error)
    assert (int(state["step"]), loop["updates"]) == (step, step)
    return None


def lay_down(run: Path, directories: list[Record], required: set[str]) -> dict[str, str]:
    """The same folders as checkpoints of Orbax; the name of each -> the name in the case."""
    numbers = {entry["dir"]: number_of(entry["dir"]) for entry in directories}
    whole = {
        number
        for entry in directories
        if (number := numbers[entry["dir"]]) is not None
        and required <= set(entry["files"])
        and entry["COMMIT"] == str(number)
    }
    # What others are copies of: a checkpoint of a number that the case does not have.
    other = 1 + max((n for n in numbers.values() if n is not None), default=0)
    checkpoints = Checkpoints(run, keep=1000, identity=IDENTITY)
    for step in (*sorted(whole), other):
        checkpoints.save(step, STATE | {"step": jnp.int32(step)}, {})
    checkpoints.finish()
    checkpoints.close()
    model = run / "model"
    (checkpoints.folder / str(other)).rename(model)
    names = {}
    for entry in directories:
        number, name = numbers[entry["dir"]], entry["dir"].removeprefix("step_")
        if number is not None and entry["COMMIT"] is None:
            name = f"{number}.orbax-checkpoint-tmp"
        names[name] = entry["dir"]
        place = checkpoints.folder / name
        if number in whole:
            continue
        if not entry["files"]:
            place.mkdir()
            continue
        shutil.copytree(model, place)
        if not required <= set(entry["files"]):
            shutil.rmtree(place / "state")
    return names


def number_of(name: str) -> int | None:
    """The number of a folder that is called like a checkpoint."""
    found = re.fullmatch(r"step_(0|[1-9][0-9]*)", name)
    return int(found[1]) if found else None
