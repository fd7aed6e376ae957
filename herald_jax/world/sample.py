"""The built-in sample: a world and rollouts over it, as the three files of SPEC section 1."""

from functools import partial
from pathlib import Path

from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.together import write_together
from herald_jax.world.build import Progress, World, build_world
from herald_jax.world.episodes import rollouts as run_agents

README = """\
Sample of HERALD-JAX, generated with seed {seed}.

trajectories.jsonl  {trajectories} rollouts: {questions} questions, {rollouts} scripted agents each
corpus.jsonl        {passages} passages of an invented world
oracle.jsonl        gold answers, support passages and evidence nodes of each question

The agents really search the corpus (BM25, three results) and are good, bad, lazy and dishonest; the
field "model" names the habit of each, "pool" the kind of its question. Nothing here is about the
real world. Audit it with:  herald audit THIS_FOLDER
"""


def write_sample(
    out: Path,
    *,
    seed: int = 0,
    questions: int = 120,
    rollouts: int = 8,
    progress: Progress | None = None,
) -> None:
    """Writes `trajectories.jsonl`, `corpus.jsonl`, `oracle.jsonl` and `README.txt` into `out`.

    All four appear whole or none does, after everything is generated. The same arguments write
    the same bytes.

    Args:
        out: folder, made when absent.
        seed: seed of the world and of the agents.
        questions: questions of all splits and kinds.
        rollouts: rollouts of a question, at least 1.
        progress: called with stage, done and total.

    Raises:
        WorldError: the world cannot be built.
        HeraldError: `out` cannot be written; what it held is as it was.
        ValueError: rollouts < 1.
    """
    if rollouts < 1:
        raise ValueError(f"rollouts must be at least 1, got {rollouts}")
    world = build_world(seed, questions, progress=progress)
    trajectories = run_agents(world, rollouts, seed=seed, progress=progress)
    readme = _readme(world, len(trajectories), rollouts)
    write_together(
        out,
        {
            "corpus.jsonl": partial(write_jsonl, records=world.passages),
            "oracle.jsonl": partial(write_jsonl, records=world.oracle),
            "trajectories.jsonl": partial(write_jsonl, records=trajectories),
            "README.txt": partial(Path.write_text, data=readme, encoding="utf-8"),
        },
        remedy="name another folder",
    )


def _readme(world: World, trajectories: int, rollouts: int) -> str:
    return README.format(
        seed=world.seed,
        trajectories=trajectories,
        questions=len(world.questions),
        rollouts=rollouts,
        passages=len(world.passages),
    )
