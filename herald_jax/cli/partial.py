"""`herald partial`: what a running or interrupted audit has found so far."""

from pathlib import Path
from typing import Annotated

import typer

from herald_jax.cli.console import show

EXAMPLES = """
\b
Examples:
  herald partial herald-report/work
  herald partial /scratch/run-7 --out so-far
\b
The audit goes on undisturbed. Questions are worked in the order of their ids, so that what is
done is no random part of them.
"""


def partial(
    work: Annotated[
        Path, typer.Argument(metavar="WORK", help="Work folder of the audit: OUT/work, or --work.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where reports go.")] = (
        Path("herald-partial")
    ),
) -> None:
    """Report on the questions that an audit has finished so far.

    Writes report.json, report.html and report.md, without the worst attacks.
    """
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"--out {out} is a file; name a folder")

    from herald_jax.audit.partial import partial_report
    from herald_jax.audit.verdict import verdict
    from herald_jax.cli.compiled import keep_compiled
    from herald_jax.cli.reports import write_reports

    keep_compiled()
    report = partial_report(work)
    paths = write_reports(out, report)
    done = report.data["partial"]
    show(
        f"Partial: {done['rows']:,} of {done['of_rows']:,} trajectories "
        f"({done['sections']} of {done['of_sections']} sections).\n"
    )
    show(f"{verdict(report.data)}\n")
    show(f"Report: {paths[0].resolve()}")
