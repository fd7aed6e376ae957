"""The host side of an audit: operators, generators, the information boundary, the report."""

if __name__ != "herald_jax.audit":
    raise ImportError("import herald_jax.audit, not audit")

from herald_jax.audit.report import Report
from herald_jax.audit.run import run

__all__ = ["Report", "run"]
