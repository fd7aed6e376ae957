"""`herald audit`: logs in, verdict and reports out."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from herald_jax.cli.console import say, show
from herald_jax.cli.folders import check_folder, folder_name

if TYPE_CHECKING:
    from herald_jax.pool.find import PoolFiles
    from herald_jax.types import Fault

EXAMPLES = """
\b
Examples:
  herald audit herald-sample
  herald audit logs/ --manifest audit.toml --out nightly
  herald audit 'logs/*.parquet' --corpus corpus.parquet --oracle gold.jsonl
  herald audit s3://bucket/run-7/ --work /scratch/run-7
  herald encode logs/ encoded && herald audit encoded
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
Exit codes: 0 ran, 1 a --fail-on condition tripped, 2 bad input, 130 interrupted. An audit
that was interrupted goes on where it was when the same command is run again.
"""

TRIPPED = 1
SHOWN_FAULTS = 20


def audit(
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOGS...",
            help="A folder with trajectories*, corpus* and oracle*, .jsonl or .parquet; or files, "
            "'patterns' and addresses (s3://...), told apart by name, else by keys; or what "
            "herald encode wrote.",
            show_default=False,
        ),
    ] = None,
    trajectories: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Trajectories; repeat for several files."),
    ] = None,
    corpus: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Passages; repeat for several files.")
    ] = None,
    oracle: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Gold labels; repeat for several files."),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option("--manifest", "-m", metavar="TOML", help="Settings; see `herald manifest`."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="Where reports go.", parser=folder_name),
    ] = Path("herald-report"),
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=folder_name,
            help="Keep encoded rows and partial results here, for other audits of the same logs. "
            "Otherwise large audits keep them in OUT/work until they are done.",
            show_default=False,
        ),
    ] = None,
    skip_bad_rows: Annotated[
        bool,
        typer.Option("--skip-bad-rows", help="Load the good lines of a faulty file, count others."),
    ] = False,
    distributed: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Share the work with other processes that run the same command: auto on Slurm, "
            "GKE and TPU pods, or HOST:PORT/INDEX/COUNT.",
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Exit with 1 when it holds; repeat for several."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress; the verdict is still printed.")
    ] = False,
) -> None:
    """Audit logged trajectories.

    Writes report.json, report.html and report.md.
    """
    from herald_jax.cli.fail_on import parse_condition
    from herald_jax.manifest import Manifest, load_manifest

    named = {"trajectories": trajectories, "corpus": corpus, "oracle": oracle}
    check_command_line(logs, named, out)
    if work is not None:
        check_folder("--work", work)
    settings = load_manifest(manifest) if manifest else Manifest()
    conditions = [parse_condition(text, settings) for text in fail_on or []]

    from herald_jax.audit import run
    from herald_jax.audit.verdict import verdict
    from herald_jax.cli.compiled import keep_compiled
    from herald_jax.cli.encoded import files_of_rows, find_encoded
    from herald_jax.cli.progress import progress
    from herald_jax.cli.reports import write_reports
    from herald_jax.cli.work import index_maker, work_store
    from herald_jax.pool.encoded_load import load_encoded
    from herald_jax.pool.load import load_pool
    from herald_jax.pool.peers import Alone, connect

    encoded = find_encoded(logs, named, skip_bad_rows)
    sources = files_of_rows(encoded) if encoded else find_sources(logs, named)
    load = (
        partial(load_encoded, encoded)
        if encoded
        else partial(load_pool, *sources, skip_bad_rows=skip_bad_rows)
    )
    keep_compiled()
    peers = connect(distributed) if distributed else Alone()
    first = peers.index == 0
    with progress(quiet or not first) as draw, work_store(work, out, sources, clear=first) as store:
        loaded = load(
            rules=settings.data.rules,
            assume_no_citations=settings.data.assume_no_citations,
            make_index=index_maker(settings, store),
            store=store,
            peers=peers,
            progress=draw,
        )
        report = run(loaded, settings, progress=draw)
        peers.gather(b"")  # nobody clears up what another still reads
        if not first:
            return  # the first process writes and says it
        paths = write_reports(out, report)
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


def check_command_line(
    logs: list[str] | None, named: dict[str, list[str] | None], out: Path
) -> None:
    """Refuse arguments that leave open what to audit, and a target folder that is a file."""
    given = [f"--{name}" for name, files in named.items() if files]
    missing = [f"--{name}" for name, files in named.items() if not files]
    if not logs and missing:
        raise typer.BadParameter(
            f"give LOGS, or {', '.join(missing)}" + (f" beside {', '.join(given)}" if given else "")
        )
    if logs and not all(logs):
        raise typer.BadParameter("one of LOGS is an empty name")
    check_folder("--out", out)


def find_sources(logs: list[str] | None, named: dict[str, list[str] | None]) -> "PoolFiles":
    """The files of every kind, from LOGS and from the options.

    Raises:
        InputError: a file is of no kind, or LOGS have none of a kind.
    """
    from herald_jax.pool.find import PoolFiles, find_pool_files, sort_files

    options = {kind: list(files or []) for kind, files in named.items()}
    if not logs:
        return PoolFiles(**options)
    if len(logs) == 1 and not any(options.values()) and "*" not in logs[0]:
        return find_pool_files(logs[0])
    found = sort_files(logs)._asdict()
    for kind, files in options.items():
        if found[kind] and files:
            raise typer.BadParameter(f"LOGS hold {found[kind][0]}: drop it, or --{kind} {files[0]}")
        if not found[kind] and not files:
            raise typer.BadParameter(f"LOGS hold no {kind}: name them with --{kind}")
    return PoolFiles(**{kind: found[kind] + options[kind] for kind in found})
