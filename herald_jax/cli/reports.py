"""The three files of a report."""

from pathlib import Path

from herald_jax.audit import Report
from herald_jax.audit.markdown import render_markdown
from herald_jax.audit.page import render_html
from herald_jax.cli.files import write_all


def write_reports(out: Path, report: Report) -> list[Path]:
    """Write report.html, report.md and report.json, all or none.

    Raises:
        HeraldError: the folder or a file cannot be written.
    """
    contents = {
        "report.html": render_html(report.data).encode(),
        "report.md": render_markdown(report.data).encode(),
        "report.json": report.to_json(),
    }
    return write_all(out, contents)
