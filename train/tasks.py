"""Questions to train on: the built-in world, or a pool of the user's own."""

import hashlib
from pathlib import Path

from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.data.tables import read_table, without_clashes
from herald_jax.pool.find import find_pool_files
from herald_jax.train.config import Data
from herald_jax.train.environment import Task, Tasks
from herald_jax.types import HeraldError, InputError
from herald_jax.world import KIND_WEIGHTS, World, build_world


class TaskError(HeraldError):
    """A pool that nothing can be learned from."""


def make_world(data: Data) -> World:
    """The built-in world of a run, with questions of the kinds that are trained on alone."""
    kinds = {kind: KIND_WEIGHTS[kind] for kind in data.kinds}
    return build_world(data.world_seed, data.questions, kinds=kinds)


def world_tasks(world: World) -> Tasks:
    """Its train split to learn from, its dev split held out: no county is in both."""

    def of(split: str) -> tuple[Task, ...]:
        return tuple(
            Task(question.question_id, question.text, question.kind)
            for question in world.split(split)
        )

    return Tasks(of("train"), of("dev"), world.passages, world.oracle)


def pool_tasks(folder: Path, held_out: float) -> Tasks:
    """The questions of a pool's logs, each once; a share that depends on ids alone is held out.

    Raises:
        InputError: files have faults.
        TaskError: no question has a gold label.
    """
    files = find_pool_files(folder)
    corpus = without_clashes(read_table(files.corpus, Passage), Passage)
    oracle = without_clashes(read_table(files.oracle, OracleRow), OracleRow)
    logs = without_clashes(read_table(files.trajectories, Trajectory), Trajectory)
    if faults := [*corpus.faults, *oracle.faults, *logs.faults]:
        raise InputError(faults)
    known = {row.question_id for row in oracle.records}
    tasks = {
        record.question_id: Task(record.question_id, record.question, record.pool)
        for record in logs.records
        if record.question_id in known
    }
    if not tasks:
        raise TaskError(
            f"{folder}: expected logs of questions with gold labels, got none; check question_id"
        )
    chosen = [tasks[name] for name in sorted(tasks)]
    passages = tuple(sorted(corpus.records, key=lambda passage: passage.passage_id))
    return Tasks(
        train=tuple(task for task in chosen if not is_held_out(task.question_id, held_out)),
        held_out=tuple(task for task in chosen if is_held_out(task.question_id, held_out)),
        passages=passages,
        oracle=tuple(oracle.records),
    )


def is_held_out(question_id: str, share: float) -> bool:
    """Whether a question is kept for evaluation: by the hash of its id, whatever else is there."""
    digest = hashlib.sha256(question_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64
