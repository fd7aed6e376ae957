"""`herald report`: the HTML page and the Markdown again, from `report.json` alone."""

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from herald_jax.cli.console import say

EXAMPLES = """
\b
Examples:
  herald report herald-report/report.json
  herald report nightly/report.json --out public/
"""
# What every report of this schema has; others may come.
KEYS = (
    "herald_jax",
    "manifest",
    "manifest_digest",
    "inputs",
    "rows",
    "questions",
    "set_aside",
    "natural",
    "mean_reward",
    "operators",
    "common",
    "primary",
    "lattice",
    "certificate",
    "cancellation",
    "scales",
    "budgets",
    "pools",
    "models",
    "utility",
)


def report(
    file: Annotated[Path, typer.Argument(metavar="REPORT_JSON", help="Written by `herald audit`.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder to write to; that of REPORT_JSON by default."),
    ] = None,
) -> None:
    """Draw the pages of a report.json again."""
    from jinja2 import TemplateError

    from herald_jax.audit.markdown import render_markdown
    from herald_jax.audit.page import render_html
    from herald_jax.cli.files import write_all

    data = read_report(file)
    try:
        pages = {
            "report.html": render_html(data).encode(),
            "report.md": render_markdown(data).encode(),
        }
    except (LookupError, TypeError, AttributeError, ValueError, TemplateError) as error:
        raise_malformed(file, f"{type(error).__name__}: {error}", error)
    for path in write_all(out or file.parent, pages):
        say(f"wrote {path}")


def read_report(file: Path) -> dict[str, Any]:
    """The report as a dictionary.

    Raises:
        HeraldError: unreadable, not JSON, or no whole report of a schema that this version knows.
    """
    from herald_jax.audit.report import SCHEMA

    try:
        data = json.loads(file.read_bytes(), parse_constant=refuse_constant)
    except OSError as error:
        raise_malformed(file, error.strerror or "cannot be read", error)
    except (ValueError, RecursionError) as error:
        raise_malformed(file, f"not JSON: {error}", error)
    if not isinstance(data, dict) or "schema" not in data:
        raise_malformed(file, "no `schema` key")
    if data["schema"] != SCHEMA:
        raise_malformed(file, f"schema {data['schema']!r}, this version reads {SCHEMA}")
    if missing := [key for key in KEYS if key not in data]:
        raise_malformed(file, f"no {', '.join(missing)}")
    return data


def refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity are no JSON, and no figure of a report."""
    raise ValueError(f"{name} is not a JSON number")


def raise_malformed(file: Path, reason: str, cause: Exception | None = None) -> NoReturn:
    """Refuse a file with the reason and what to do."""
    from herald_jax.types import HeraldError

    raise HeraldError(
        f"{file}: expected a report.json of `herald audit`, got {reason}; run the audit again"
    ) from cause
