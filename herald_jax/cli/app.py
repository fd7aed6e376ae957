"""The `herald` command and its exit codes.

0: the command ran. 1: a condition of `--fail-on` tripped. 2: the input or the command line is
wrong. 130: interrupted. Commands import the engine only when they run, so that `--help` and
`--version` answer at once.
"""

import sys
from typing import Annotated

import typer

import herald_jax.cli.audit as audit
import herald_jax.cli.bench as bench
import herald_jax.cli.encode as encode
import herald_jax.cli.import_ as import_
import herald_jax.cli.manifest as manifest
import herald_jax.cli.partial as partial
import herald_jax.cli.report as report
import herald_jax.cli.rollout as rollout
import herald_jax.cli.sample as sample
import herald_jax.cli.sweep as sweep
import herald_jax.cli.train as train
import herald_jax.cli.validate as validate
from herald_jax import __version__
from herald_jax.cli.console import say, show

BAD_INPUT = 2
EXAMPLES = """
\b
Try it on built-in logs:
  herald sample herald-sample
  herald audit herald-sample
"""

app = typer.Typer(
    name="herald",
    help="Audit the rewards of search agents with paired adversarial edits of their logs.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("audit", epilog=audit.EXAMPLES)(audit.audit)
app.command("encode", epilog=encode.EXAMPLES)(encode.encode)
app.command("sample", epilog=sample.EXAMPLES)(sample.sample)
app.command("validate", epilog=validate.EXAMPLES)(validate.validate)
app.command("import", epilog=import_.EXAMPLES)(import_.import_)
app.command("manifest", epilog=manifest.EXAMPLES)(manifest.manifest)
app.command("partial", epilog=partial.EXAMPLES)(partial.partial)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("train", epilog=train.EXAMPLES)(train.train)
app.command("rollout", epilog=rollout.ROLLOUT_EXAMPLES)(rollout.rollout)
app.command("eval", epilog=rollout.EVAL_EXAMPLES)(rollout.eval_)
app.command("sweep", epilog=sweep.EXAMPLES)(sweep.sweep)
app.command("bench", epilog=bench.EXAMPLES)(bench.bench)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        show(f"herald-jax {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Audit the rewards of search agents with paired adversarial edits of their logs."""


def run() -> None:
    """Run the command line; errors in the input are printed without a traceback, exit code 2.

    So are files that the system does not let be read or written.
    """
    try:
        app(prog_name="herald")
    except Exception as error:
        # Only now: the shared types import JAX, which `--help` should not wait for.
        from herald_jax.types import HeraldError

        if isinstance(error, HeraldError):
            text = str(error)
        elif isinstance(error, OSError):
            reason = error.strerror or str(error)
            text = f"{error.filename}: {reason}" if error.filename else reason
        else:
            raise
        say(f"errors:\n{text}" if "\n" in text else f"error: {text}")
        sys.exit(BAD_INPUT)
