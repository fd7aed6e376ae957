"""`herald audit`: logs in, verdict and reports out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from herald_jax.cli.console import say, show

if TYPE_CHECKING:
    from herald_jax.types import Fault

EXAMPLES = """
\b
Examples:
  herald audit herald-sample
  herald audit logs/ --manifest audit.toml --out nightly
  herald audit --trajectories run1.jsonl --trajectories run2.parquet \\
      --corpus corpus.parquet --oracle gold.jsonl
  herald audit logs/ --fail-on insufficient
  herald audit logs/ --fail-on 'R0.citation_laundering.oracle_worst.upper>0.05'
\b
Conditions of --fail-on (any number; what was not measured trips them):
  insufficient            R0 is not observed sufficient against the primary attacks
  CONTRACT.insufficient   the same of another contract, such as R_full or R[L]
  CONTRACT.OPERATOR.SELECTION.FIELD OP NUMBER
                          SELECTION: first_visible, oracle_worst
                          FIELD: asr, upper, mean_margin, max_margin, any_success,
                                 questions, rows
                          OP: < <= > >=
\b
Exit codes: 0 ran, 1 a --fail-on condition tripped, 2 bad input, 130 interrupted.
"""

TRIPPED = 1
SHOWN_FAULTS = 20


class Sources(NamedTuple):
    """The files of one pool."""

    trajectories: list[Path]
    corpus: list[Path]
    oracle: list[Path]


def audit(
    pool: Annotated[
        Path | None,
        typer.Argument(
            metavar="POOL_DIR",
            help="Folder with trajectories*, corpus* and oracle* as .jsonl or .parquet.",
            show_default=False,
        ),
    ] = None,
    trajectories: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Trajectories; repeat for several files."),
    ] = None,
    corpus: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Passages; repeat for several files.")
    ] = None,
    oracle: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Gold labels; repeat for several files."),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option("--manifest", "-m", metavar="TOML", help="Settings; see `herald manifest`."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where reports go.")] = (
        Path("herald-report")
    ),
    skip_bad_rows: Annotated[
        bool,
        typer.Option("--skip-bad-rows", help="Load the good lines of a faulty file, count others."),
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Exit with 1 when it holds; repeat for several."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress; the verdict is still printed.")
    ] = False,
) -> None:
    """Audit logged trajectories.

    Writes report.json, report.html and report.md. The pool is a folder, or the files named one by
    one.
    """
    from herald_jax.cli.fail_on import parse_condition
    from herald_jax.manifest import Manifest, load_manifest

    named = Sources(trajectories or [], corpus or [], oracle or [])
    check_command_line(pool, named, out)
    settings = load_manifest(manifest) if manifest else Manifest()
    conditions = [parse_condition(text, settings) for text in fail_on or []]

    from herald_jax.audit import run
    from herald_jax.audit.markdown import render_markdown
    from herald_jax.audit.page import render_html
    from herald_jax.audit.verdict import verdict
    from herald_jax.cli.compiled import keep_compiled
    from herald_jax.cli.files import write_all
    from herald_jax.cli.progress import progress
    from herald_jax.pool.find import find_pool_files
    from herald_jax.pool.load import load_pool

    sources = find_pool_files(pool) if pool else named
    keep_compiled()
    with progress(quiet) as draw:
        loaded = load_pool(
            *sources,
            rules=settings.data.rules,
            assume_no_citations=settings.data.assume_no_citations,
            skip_bad_rows=skip_bad_rows,
            progress=lambda file, rows: draw(f"read {Path(file).name}", rows, 0),
        )
        for file, read in loaded.inputs.items():
            draw(f"read {Path(file).name}", int(read["rows"]), int(read["rows"]))
        report = run(loaded, settings, progress=draw)
        contents = {
            "report.html": render_html(report.data).encode(),
            "report.md": render_markdown(report.data).encode(),
            "report.json": report.to_json(),
        }
    paths = write_all(out, contents)
    say_faults("skipped ", loaded.skipped)
    say_faults("", loaded.warnings)

    show(f"{verdict(report.data)}\n")
    page, *others = (path.resolve() for path in paths)
    show(f"Report: {page}\n        beside it {' and '.join(path.name for path in others)}")
    reasons = [reason for item in conditions if (reason := item.tripped(report.data))]
    for reason in reasons:
        say(f"--fail-on tripped: {reason}")
    if reasons:
        raise typer.Exit(TRIPPED)


def say_faults(kind: str, faults: Sequence["Fault"]) -> None:
    """The first faults to stderr, and how many more there are."""
    for fault in faults[:SHOWN_FAULTS]:
        say(f"{kind}{fault}")
    if len(faults) > SHOWN_FAULTS:
        say(f"{kind}{len(faults) - SHOWN_FAULTS} more; `herald validate` lists all")


def check_command_line(pool: Path | None, named: Sources, out: Path) -> None:
    """Refuse arguments that leave open what to audit, and a target folder that is a file."""
    options = {f"--{name}": files for name, files in named._asdict().items()}
    given = [name for name, files in options.items() if files]
    missing = [name for name, files in options.items() if not files]
    if pool and given:
        raise typer.BadParameter(f"give POOL_DIR or {', '.join(given)}, not both")
    if not pool and missing:
        raise typer.BadParameter(
            f"give POOL_DIR, or {', '.join(missing)}"
            + (f" beside {', '.join(given)}" if given else "")
        )
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"--out {out} is a file; name a folder")
