"""`herald rollout` and `herald eval`: a trained policy on the questions of a pool."""

import json
from pathlib import Path
from typing import Annotated

import typer

from herald_jax.cli.console import say, show

ROLLOUT_EXAMPLES = """
\b
Examples:
  herald rollout runs/first my-pool --out my-rollouts
  herald rollout runs/first/checkpoints/40 my-pool --samples 7
  herald audit my-rollouts
\b
Writes the greedy rollout and the samples of every question as trajectories.jsonl, with the pool's
corpus and oracle beside it, so that the folder can be audited as it is.
"""

EVAL_EXAMPLES = """
\b
Examples:
  herald eval runs/first my-pool
  herald eval runs/first                the held-out questions of the run itself
  herald eval runs/first --against runs/second
"""

Run = Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="A run, or RUN/checkpoints/STEP.")]
Samples = Annotated[int, typer.Option(min=0, max=64, help="Samples beside the greedy rollout.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the samples.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def rollout(
    checkpoint: Run,
    pool: Annotated[Path, typer.Argument(metavar="POOL", help="Corpus, oracle and logs.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where they go.")
    ] = Path("herald-rollouts"),
    samples: Samples = 4,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Roll a policy out on the questions of a pool, for an audit of what it does."""
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"--out {out} is a file; name a folder")

    from functools import partial

    from herald_jax.cli.compiled import keep_compiled
    from herald_jax.cli.progress import progress
    from herald_jax.data.jsonl import write_jsonl
    from herald_jax.data.together import write_together
    from herald_jax.train.checkpoint_policy import on_pool, open_run
    from herald_jax.train.evaluate import evaluate

    keep_compiled()
    setup, states, updates = open_run(checkpoint)
    setup = on_pool(setup, pool)
    with progress(quiet) as draw:
        found = evaluate(
            setup,
            states,
            setup.tasks.held_out,
            samples=samples,
            seed=seed,
            draw=lambda done, total: draw("rollouts", done, total),
        )
    write_together(
        out,
        {
            "corpus.jsonl": partial(write_jsonl, records=setup.tasks.passages),
            "oracle.jsonl": partial(write_jsonl, records=setup.tasks.oracle),
            "trajectories.jsonl": partial(write_jsonl, records=found.records),
        },
        remedy="name another folder",
    )
    say(
        f"{len(found.records):,} rollouts of {len(setup.tasks.held_out):,} questions by the policy "
        f"after {updates:,} updates; next: herald audit {out}"
    )


def eval_(
    checkpoint: Run,
    pool: Annotated[
        Path | None,
        typer.Argument(metavar="POOL", help="None: the held-out questions of the run."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="CHECKPOINT", help="Another policy, paired by question."),
    ] = None,
    questions: Annotated[int, typer.Option(min=1, help="At most so many.")] = 1_000_000,
    samples: Samples = 4,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.json", help="Also as JSON.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Evaluate a policy: EM, F1, citations and detectors, with intervals over questions."""
    from functools import partial

    from herald_jax.cli.compiled import keep_compiled
    from herald_jax.cli.eval_table import difference_table, evaluation_table
    from herald_jax.cli.progress import progress
    from herald_jax.train.checkpoint_policy import on_pool, open_run
    from herald_jax.train.evaluate import evaluate

    keep_compiled()
    summaries = []
    for number, place in enumerate([checkpoint, against] if against else [checkpoint]):
        setup, states, updates = open_run(place)
        setup = setup if pool is None else on_pool(setup, pool)
        with progress(quiet) as draw:
            found = evaluate(
                setup,
                states,
                setup.tasks.held_out[:questions],
                samples=samples,
                seed=seed,
                draw=partial(draw, f"evaluate {number + 1}"),
            )
        summaries.append({"checkpoint": str(place), "updates": updates, **found.summary})
        show(evaluation_table(summaries[-1]))
    if against:
        show(difference_table(summaries[1], summaries[0]))
    if out is not None:
        out.write_text(json.dumps({"evaluations": summaries}, indent=2) + "\n", encoding="utf-8")
