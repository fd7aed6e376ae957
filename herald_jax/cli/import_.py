"""`herald import`: published benchmark files as corpus and oracle, question sets as oracle."""

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
  herald import tfds natural_questions_open nq --split validation
  herald import tfds trivia_qa/unfiltered.nocontext trivia --data-dir /data/tensorflow_datasets
\b
tfds writes questions and gold answers alone, of the data set trivia_qa or natural_questions_open of
TensorFlow Datasets; what is not on the disk is downloaded. It needs herald-jax[tfds].
\b
The files of the others are local, JSON arrays or JSON Lines. Several share one corpus; passage ids
are titles, with #2, #3, ... where different texts share one.
\b
Exit codes: 0 done, 2 a fault, nothing written.
"""


class Benchmark(StrEnum):
    """Formats of benchmark files."""

    HOTPOTQA = "hotpotqa"
    TWOWIKI = "2wiki"
    MUSIQUE = "musique"
    TFDS = "tfds"


def import_(
    benchmark: Annotated[
        Benchmark, typer.Argument(metavar="BENCHMARK", help="hotpotqa, 2wiki, musique or tfds.")
    ],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Its published files; of tfds, the data set."),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write to.")],
    aliases: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="2wiki: id_aliases.json, for more gold answers."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="tfds: which questions; validation unless given.",
            show_default=False,
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="tfds: where data sets lie, and downloaded ones go."),
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
    if benchmark is Benchmark.TFDS:
        import_tfds(files, out, split or "validation", data_dir, quiet)
        return
    for name, given in (("--split", split), ("--data-dir", data_dir)):
        if given is not None:
            raise typer.BadParameter(f"{name} is for tfds; {benchmark} has files")

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


def import_tfds(
    names: list[Path], out: Path, split: str, data_dir: Path | None, quiet: bool
) -> None:
    """Turn a question set of TensorFlow Datasets into oracle.jsonl and questions.jsonl."""
    if len(names) != 1:
        raise typer.BadParameter(f"name one data set, not {len(names)}")

    from herald_jax.cli.progress import progress
    from herald_jax.data.imports.tfds import import_questions

    with progress(quiet) as report:
        done = import_questions(
            names[0].as_posix(), out, split=split, data_dir=data_dir, progress=report
        )
    say(f"wrote {out}: {counted(done.questions, 'question')}, without support")
    if done.repeated:
        say(f"noted, repeated: {done.repeated:,}")
    say("next: put corpus.jsonl and trajectories.jsonl of yours beside them")
