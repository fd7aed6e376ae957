"""The Jinja2 environment of the pages: package templates, strict names, escaping by file kind."""

import functools
import re
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from herald_jax.pages import numbers

FILTERS = {
    "count": numbers.count,
    "percent": numbers.percent,
    "plain": numbers.plain,
    "quantity": numbers.quantity,
    "signed": numbers.signed,
    "upper_bound": numbers.upper_bound,
    "weight": numbers.weight,
}

MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~$&])")


def escape_markdown(text: object) -> str:
    """User text as plain Markdown: one line, nothing in it is markup, in tables neither."""
    return MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def code_span(text: object) -> str:
    """User text as a Markdown code span that no back-tick inside can end; safe in tables."""
    line = " ".join(str(text).split())
    if not line:
        return "(empty)"
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", r"\|")


class Absent(StrictUndefined):
    """What a template asked for and nobody gave: an error, unless it is a key that data may lack.

    A key that a mapping lacks can be tested (`{% if report.utility %}`), never printed.
    """

    __slots__ = ()

    def __bool__(self) -> bool:  # type: ignore[override]  # the base never returns
        if isinstance(self._undefined_obj, Mapping):
            return False
        return super().__bool__()


@functools.cache
def environment() -> Environment:
    """Templates of this package; HTML is escaped, Markdown escapes by its own filters.

    A name that a template uses and nobody gave is an error, never an empty string.
    """
    made = Environment(
        loader=PackageLoader("herald_jax.pages", "."),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=Absent,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(FILTERS)
    made.filters.update({"md": escape_markdown, "code": code_span})
    return made


def render(template: str, **context: Any) -> str:
    """The text of `template` filled with `context`."""
    return environment().get_template(template).render(**context)
