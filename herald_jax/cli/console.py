"""Messages to stderr; results go to stdout or into files."""

import typer

from herald_jax import __version__

NAME = "herald"


def say(message: str) -> None:
    """One message to stderr."""
    typer.echo(f"{NAME}: {message}", err=True)


def show_version(wanted: bool) -> None:
    """Print the version and stop; for an eager option."""
    if wanted:
        typer.echo(f"herald-jax {__version__}")
        raise typer.Exit
