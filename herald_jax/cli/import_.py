"""`herald import`: published benchmark files as corpus and oracle."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from herald_jax.cli.console import counted, say

EXAMPLES = """
\b
Examples:
  herald import hotpotqa hotpot_dev_distractor_v1.json hotpot
  herald import 2wiki dev.json wiki2 --aliases id_aliases.json
  herald import musique musique_ans_v1.0_train.jsonl musique_ans_v1.0_dev.jsonl musique
\b
The files are local, JSON arrays or JSON Lines. Several share one corpus; passage ids are titles,
with #2, #3, ... where different texts share one. Exit codes: 0 done, 2 a fault, nothing written.
"""


class Benchmark(StrEnum):
    """Formats of benchmark files."""

    HOTPOTQA = "hotpotqa"
    TWOWIKI = "2wiki"
    MUSIQUE = "musique"


def import_(
    benchmark: Annotated[
        Benchmark, typer.Argument(metavar="BENCHMARK", help="hotpotqa, 2wiki or musique.")
    ],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Its published files.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write to.")],
    aliases: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="2wiki: id_aliases.json, for more gold answers."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Turn benchmark files into corpus.jsonl and oracle.jsonl.

    The trajectories are yours: log the passage ids of the corpus that is written here.
    """
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"OUT {out} is a file; name a folder after the files")
    if aliases is not None and benchmark is not Benchmark.TWOWIKI:
        raise typer.BadParameter(f"--aliases is for 2wiki; {benchmark} has no such file")

    from herald_jax.cli.progress import progress
    from herald_jax.data.imports.benchmark import import_benchmark

    with progress(quiet) as report:
        done = import_benchmark(benchmark, files, out, aliases=aliases, progress=report)
    passages, questions = counted(done.passages, "passage"), counted(done.questions, "question")
    say(f"wrote {out}: {passages}, {questions}")
    for reason, count in done.left_out.items():
        say(f"left out, {reason}: {counted(count, 'question')}")
    for oddity, count in done.noted.items():
        say(f"noted, {oddity}: {count:,}")
    say(f"next: put trajectories.jsonl beside them, then herald audit {out}")
