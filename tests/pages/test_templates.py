"""Templates fail on names that nobody gave, and Markdown from users stays text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markdown_it import MarkdownIt

from herald_jax.pages.templates import code_span, environment, escape_markdown


def test_a_name_nobody_gave_is_an_error_even_in_a_test() -> None:
    for source in ("{{ nothing }}", "{% if nothing %}{% endif %}"):
        with pytest.raises(UndefinedError):
            environment().from_string(source).render()


def test_a_key_that_data_lacks_is_false_and_cannot_be_printed() -> None:
    made = environment()
    assert made.from_string("{% if data.key %}yes{% else %}no{% endif %}").render(data={}) == "no"
    with pytest.raises(UndefinedError):
        made.from_string("{{ data.key }}").render(data={})


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), max_size=40))
def test_escaped_markdown_holds_no_markup(text: str) -> None:
    rendered = MarkdownIt("commonmark").renderInline(escape_markdown(text))
    # What is left of tags in the output is only what the renderer itself writes for entities.
    assert "<" not in rendered


@given(st.text(alphabet="`|a <b>\n", max_size=20))
def test_a_code_span_is_one_span_whatever_is_in_it(text: str) -> None:
    rendered = MarkdownIt("commonmark").renderInline(code_span(text).replace(r"\|", "|"))
    if text.split():
        assert rendered.startswith("<code>")
        assert rendered.endswith("</code>")
        assert rendered.count("<code>") == 1
    else:
        assert rendered == "(empty)"
