"""Questions of HotpotQA, and of 2WikiMultihopQA, which follows its format.

A context is a list of `[title, [sentence, …]]`, a supporting fact `[title, index of a sentence]`;
mirrors also write them by columns, `{"title": […], "sentences": […]}`. A fact supports the whole
paragraph that it stands in.

The published files are odd in two ways that are counted and not refused. In the fullwiki setting
the context is what a retriever found, and may lack the paragraph of a fact: the support id is then
its title, to which another question's context may have the passage, or nobody. And some facts point
past the last sentence of their paragraph.
"""

from typing import Any

import msgspec

from herald_jax.data.checks import Report, convert_all, read_object, shown
from herald_jax.data.imports.draft import Draft, Found
from herald_jax.data.records import Count, Id


class _Paragraph(msgspec.Struct, gc=False):
    title: str
    sentences: list[str]


class _Fact(msgspec.Struct, gc=False):
    title: str
    sentence: Count


class _Question(msgspec.Struct, gc=False):
    id: Id = msgspec.field(name="_id")
    answer: str
    context: list[_Paragraph]
    supporting_facts: list[_Fact]
    answer_id: Id | None = None


# Names of the columns in the mirrors, by name of the field.
Columns = dict[str, tuple[str, ...]]
_COLUMNS: dict[str, Columns] = {
    "context": {"title": ("title",), "sentences": ("sentences", "content")},
    "supporting_facts": {"title": ("title",), "sentence": ("sent_id",)},
}


def read_question(value: dict[str, Any], report: Report, found: Found) -> Draft | None:
    """One labelled question; its paragraphs go to the passages."""
    plain = dict(value)
    if "_id" not in plain and "id" in plain:
        plain["_id"] = plain.pop("id")
    sound = True
    for name, columns in _COLUMNS.items():
        if name in plain:
            entries = _by_name(plain[name], name, columns, report)
            sound &= entries is not None
            plain[name] = entries or []  # the other fields are checked all the same
    converted = convert_all([plain], _Question)
    question = converted[0] if converted else read_object(plain, _Question, report)
    return _draft(question, found) if question is not None and sound else None


def _by_name(
    value: Any, name: str, columns: Columns, report: Report
) -> list[dict[str, Any]] | None:
    """Pairs or columns as a list of objects; None when a fault was reported."""
    form = f"[{', '.join(columns)}]"
    remedy = "write it as the published file has it"
    if isinstance(value, dict):
        found = [
            next((value[key] for key in keys if key in value), None) for keys in columns.values()
        ]
        picked = [column for column in found if isinstance(column, list)]
        if len(picked) < len(columns):
            report(name, "wrong_type", f"a list of {form}", shown(value), remedy)
            return None
        lengths = [len(column) for column in picked]
        if len(set(lengths)) > 1:
            got = " and ".join(map(str, lengths))
            report(name, "unequal_columns", "columns of one length", got, remedy)
            return None
        return [dict(zip(columns, row, strict=True)) for row in zip(*picked, strict=True)]
    if not isinstance(value, list):
        report(name, "wrong_type", f"a list of {form}", shown(value), remedy)
        return None
    odd = [
        at
        for at, pair in enumerate(value)
        if not isinstance(pair, list) or len(pair) != len(columns)
    ]
    for at in odd:
        report(f"{name}[{at}]", "wrong_type", form, shown(value[at]), remedy)
    return None if odd else [dict(zip(columns, pair, strict=True)) for pair in value]


def _draft(question: _Question, found: Found) -> Draft | None:
    numbers: dict[str, dict[int, int]] = {}  # title -> passage -> how many sentences it has
    for paragraph in question.context:
        number = found.passages.number(paragraph.title, joined(paragraph.sentences))
        numbers.setdefault(paragraph.title, {})[number] = len(paragraph.sentences)
    support: dict[int | str, None] = {}
    for fact in question.supporting_facts:
        own = numbers.get(fact.title, {})
        if len(own) > 1:
            found.left_out["support_ambiguous"] += 1
            return None
        support[next(iter(own), fact.title)] = None
        found.noted["fact_past_last_sentence"] += any(
            fact.sentence >= many for many in own.values()
        )
    return Draft(
        question_id=question.id,
        answers=[question.answer],
        support=list(support),
        answer_id=question.answer_id or "",
    )


def joined(sentences: list[str]) -> str:
    """The text of a paragraph.

    HotpotQA's sentences bring the space between them along and 2WikiMultihopQA's do not: one is
    put where there is none.
    """
    text = ""
    for sentence in sentences:
        apart = not text or not sentence or text[-1].isspace() or sentence[0].isspace()
        text += sentence if apart else f" {sentence}"
    return text
