"""`herald encode`: logs in, a folder of integers out that repeated audits read in their place."""

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from herald_jax.cli.audit import check_command_line, find_sources, say_faults
from herald_jax.cli.console import counted, say

EXAMPLES = """
\b
Examples:
  herald encode logs/ encoded
  herald encode 'logs/*.parquet' --corpus corpus.parquet --oracle gold.jsonl encoded
  herald encode logs/ encoded --manifest audit.toml --work /scratch/run-7
  herald encode logs/ encoded --format array_record
\b
Then, as often as you like:
  herald audit encoded --manifest audit.toml
\b
The report is that of the logs, to the byte. Encode again when the logs, data.rules or
data.assume_no_citations change; until then an audit of the old folder is refused.
Exit codes: 0 done, 2 bad input, 130 interrupted; OUT is written whole or not at all.
"""


class Format(StrEnum):
    """Files of rows."""

    PARQUET = "parquet"
    ARRAY_RECORD = "array_record"


def encode(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOGS...",
            default_factory=list,
            help="As for herald audit: a folder, or files, 'patterns' and addresses.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write to.")],
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
        typer.Option(
            "--manifest",
            "-m",
            metavar="TOML",
            help="Settings of the audits to come; rows depend on its [data], and have search "
            "terms where its generators search.",
        ),
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="Of the rows. array_record is for TensorFlow Datasets and Grain, and needs "
            "herald-jax[tfds].",
        ),
    ] = Format.PARQUET,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep what is finished here, so that an interrupted run goes on; audits of the "
            "same logs may share it.",
            show_default=False,
        ),
    ] = None,
    skip_bad_rows: Annotated[
        bool,
        typer.Option("--skip-bad-rows", help="Load the good lines of a faulty file, count others."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Encode logged trajectories once, for many audits.

    Writes the rows as integers, their strings apart, corpus and gold labels, and a record of what
    all of it was made from.
    """
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"OUT {out} is a file; name a folder")
    named = {"trajectories": trajectories, "corpus": corpus, "oracle": oracle}
    check_command_line(logs, named, out)

    from herald_jax.cli.encoded import find_encoded
    from herald_jax.cli.progress import progress
    from herald_jax.cli.work import index_maker, work_store
    from herald_jax.manifest import Manifest, load_manifest
    from herald_jax.pool.encoded_write import write_encoded
    from herald_jax.pool.store import Memory

    settings = load_manifest(manifest) if manifest else Manifest()
    if find_encoded(logs, named, skip_bad_rows):
        raise typer.BadParameter(f"{logs[0]} is an encoded pool; name the logs")
    sources = find_sources(logs, named)
    kept = work_store(work, out, sources) if work else nullcontext()
    with progress(quiet) as draw, kept as store:
        done = write_encoded(
            out,
            *sources,
            form=form,
            rules=settings.data.rules,
            assume_no_citations=settings.data.assume_no_citations,
            skip_bad_rows=skip_bad_rows,
            make_index=index_maker(settings, store or Memory()),
            store=store,
            progress=draw,
        )
    say_faults("skipped ", done.skipped)
    say_faults("", done.warnings)
    size = sum(file.size for file in done.files.values())
    rows, questions = counted(done.rows, "row"), counted(done.questions, "question")
    say(f"wrote {out}: {rows}, {questions}, {size / 1e6:,.1f} MB")
    for reason, count in done.set_aside.items():
        say(f"set aside, {reason}: {counted(count, 'row')}")
    say(f"next: herald audit {out}")
