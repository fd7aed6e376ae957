"""`herald sweep`: retrieval credit, every setting against the others, in one table."""

from pathlib import Path
from typing import Annotated

import typer

from herald_jax.cli.console import show

EXAMPLES = """
\b
Examples:
  herald sweep config.toml --out runs/credit
  herald sweep --set run.budget=100000 --signal cov --out runs/cov

Each arm is a run of its own below OUT; a sweep that was stopped goes on where it was.
"""


def sweep(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings; none: the defaults.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Runs and table.")
    ] = Path("herald-sweep"),
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Overrides one setting; repeat."),
    ] = None,
    signal: Annotated[
        list[str] | None, typer.Option(help="cov, cov_dep or answer_match; repeat. All if none.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Train with every signal, incorporation and control of retrieval credit, matched."""
    from herald_jax.cli.compiled import keep_compiled
    from herald_jax.cli.console import say
    from herald_jax.cli.sweep_table import sweep_table
    from herald_jax.cli.train_progress import train_progress
    from herald_jax.train.config import SIGNALS
    from herald_jax.train.config_load import read_config
    from herald_jax.train.sweep import arms
    from herald_jax.train.sweep import sweep as run

    known = SIGNALS[1:]
    if wrong := [name for name in signal or () if name not in known]:
        raise typer.BadParameter(f"--signal {wrong[0]}: there are {', '.join(known)}")
    settings = read_config(config, set_ or [])
    chosen = arms(settings.credit, signals=tuple(signal or known))
    out.mkdir(parents=True, exist_ok=True)
    keep_compiled()
    with train_progress(quiet) as draw:
        rows = run(settings, out, chosen, say=say, draw=draw)
    table = sweep_table(rows)
    (out / "sweep.txt").write_text(table, encoding="utf-8")
    show(table)
