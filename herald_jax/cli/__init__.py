"""The front door: the `herald` command. Thin; everything it does is a call of the Python API."""

from herald_jax.cli.app import main

__all__ = ["main"]
