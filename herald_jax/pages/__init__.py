"""Pages that need no network: numbers in words, inline SVG plots, the templates of reports."""

from herald_jax.pages.templates import render

__all__ = ["render"]
