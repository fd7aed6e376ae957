"""`herald train`: a search agent from a settings file, or its evaluation and its rollouts."""

from pathlib import Path
from typing import Annotated

import typer

from herald_jax.cli.console import say, show

EXAMPLES = """
\b
Examples:
  herald train --defaults > config.toml
  herald train config.toml --out runs/first
  herald train config.toml --out runs/first          goes on where it stopped
  herald train config.toml --set run.seed=1 --set reward.contract=R_full --out runs/second
  herald audit runs/first/log                        the audit of its own rollouts
\b
Ctrl-C waits for the update that is under way and saves it. OUT holds page.html (curves and
transcripts), metrics.jsonl, tensorboard/, log/ (a pool for `herald audit`) and checkpoints/.
"""


def train(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings; none: the defaults.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="The run; one that is there goes on."),
    ] = Path("herald-run"),
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Overrides one setting; repeat."),
    ] = None,
    defaults: Annotated[
        bool, typer.Option("--defaults", help="Print a file with every setting, and train nothing.")
    ] = False,
    distributed: Annotated[
        str | None,
        typer.Option(
            metavar="auto|HOST:PORT/INDEX/COUNT",
            help="One of several processes of a run.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Train a search agent by GRPO on a contract of the manifest.

    Without a pool of your own it learns in the built-in world, from nothing.
    """
    from herald_jax.train.config_load import default_config_toml

    if defaults:
        show(default_config_toml(), end="")
        return
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"--out {out} is a file; name a folder")

    from herald_jax.cli.compiled import keep_compiled
    from herald_jax.cli.train_progress import train_progress
    from herald_jax.train.config_load import read_config
    from herald_jax.train.run import primary
    from herald_jax.train.run import train as run

    settings = read_config(config, set_ or [])
    if distributed:
        from herald_jax.pool.peers import connect

        connect(distributed)
    keep_compiled()
    with train_progress(quiet) as draw:
        outcome = run(settings, out, say=say, draw=draw)
    if not primary():
        return
    for line in outcome.told:
        show(line)
    say(
        f"{outcome.updates:,} updates, {outcome.spent:,} action tokens; look at "
        f"{out / 'page.html'}; next: herald audit {out / 'log'}"
    )
