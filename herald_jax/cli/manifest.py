"""`herald manifest`: the defaults as a commented TOML file."""

from herald_jax.cli.console import show

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

    show(default_toml(), end="")
