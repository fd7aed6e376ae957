"""The report as Markdown: the verdict, what it rests on and the short tables, for a pull request.

It says the same as the page, of which it leaves out pictures and the long tables.
"""

from collections.abc import Mapping
from typing import Any

from herald_jax.audit.page import context
from herald_jax.pages.templates import render


def render_markdown(report: Mapping[str, Any]) -> str:
    """The Markdown of a report; what the user wrote is escaped, in tables too.

    Args:
        report: the contents of `report.json` (SPEC section 12); keys beyond those are optional.
    """
    return render("report.md.j2", **context(report))
