"""`herald manifest`: the defaults as a commented TOML file."""

import typer

EXAMPLES = """
\b
Examples:
  herald manifest > audit.toml
  herald audit logs/ --manifest audit.toml
"""


def manifest() -> None:
    """Print the default settings, commented.

    The output is a TOML file to start a manifest from.
    """
    from herald_jax.manifest import default_toml

    typer.echo(default_toml(), nl=False)
