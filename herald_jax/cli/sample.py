"""`herald sample`: the built-in world as log files to try an audit on."""

from pathlib import Path
from typing import Annotated

import typer

from herald_jax.cli.console import say

EXAMPLES = """
\b
Examples:
  herald sample herald-sample
  herald sample big --questions 2000 --rollouts 8 --seed 7
"""


def sample(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write to.")],
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same files.")] = 0,
    questions: Annotated[int, typer.Option(min=1, help="How many questions.")] = 120,
    rollouts: Annotated[int, typer.Option(min=1, max=1000, help="Trajectories a question.")] = 8,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Write the built-in sample logs.

    A corpus, multi-hop questions over it, and scripted agents, honest and not. The agents really
    search the corpus with BM25; what they do is logged in the format that `herald audit` reads.
    """
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"OUT {out} is a file; name a folder")

    from herald_jax.cli.progress import progress
    from herald_jax.world import write_sample

    with progress(quiet) as report:
        write_sample(out, seed=seed, questions=questions, rollouts=rollouts, progress=report)
    say(f"wrote {out}; next: herald audit {out}")
