"""Questions of MuSiQue, with their decomposition as evidence nodes.

A question's decomposition is a list of single-hop questions in which `#1`, `#2`, … stand for the
answers of the first, the second, …: hop n depends on the earlier hops that it names so. A number
sign that names no earlier hop is text. MuSiQue-Full pairs each question with one of the same id
whose paragraphs do not hold the answer; those are left out, paragraphs and all, so that its
import is that of the answerable half.
"""

import re
from typing import Any

import msgspec

from herald_jax.data.checks import Report, convert_all, read_object, shown
from herald_jax.data.imports.draft import Draft, Found, Hop
from herald_jax.data.records import Count, Id

_REFERENCE = re.compile(r"#([0-9]+)")


class _Paragraph(msgspec.Struct, gc=False):
    idx: Count
    title: str
    paragraph_text: str
    is_supporting: bool


class _Hop(msgspec.Struct, gc=False):
    question: str
    answer: str
    paragraph_support_idx: Count


class _Question(msgspec.Struct, gc=False):
    id: Id
    answer: str
    paragraphs: list[_Paragraph]
    question_decomposition: list[_Hop]
    answer_aliases: list[str] = []
    answerable: bool = True


def read_question(value: dict[str, Any], report: Report, found: Found) -> Draft | None:
    """One labelled question; its paragraphs go to the passages."""
    if value.get("answerable") is False:
        found.left_out["unanswerable"] += 1
        return None
    converted = convert_all([value], _Question)
    question = converted[0] if converted else read_object(value, _Question, report)
    if question is None or not _is_sound(question, report):
        return None
    numbers = {
        paragraph.idx: found.passages.number(paragraph.title, paragraph.paragraph_text)
        for paragraph in question.paragraphs
    }
    supporting = dict.fromkeys(
        numbers[paragraph.idx] for paragraph in question.paragraphs if paragraph.is_supporting
    )
    hops = [
        Hop(_earlier_hops(hop.question, at, found), hop.answer, numbers[hop.paragraph_support_idx])
        for at, hop in enumerate(question.question_decomposition)
    ]
    found.noted["hops_outside_support"] += sum(hop.support not in supporting for hop in hops)
    return Draft(
        question_id=question.id,
        answers=list(dict.fromkeys([question.answer, *question.answer_aliases])),
        support=list(supporting),
        hops=hops,
    )


def _is_sound(question: _Question, report: Report) -> bool:
    """Report paragraphs that share an index, and hops that point to none."""
    sound = True
    known: set[int] = set()
    for at, paragraph in enumerate(question.paragraphs):
        if paragraph.idx in known:
            remedy = "number the paragraphs of a question differently"
            got = f"{paragraph.idx} again"
            report(f"paragraphs[{at}].idx", "duplicate_id", "an index of its own", got, remedy)
            sound = False
        known.add(paragraph.idx)
    for at, hop in enumerate(question.question_decomposition):
        if hop.paragraph_support_idx not in known:
            place = f"question_decomposition[{at}].paragraph_support_idx"
            expected = "the idx of one of the paragraphs"
            remedy = "correct the index"
            report(place, "unknown_paragraph", expected, shown(hop.paragraph_support_idx), remedy)
            sound = False
    return sound


def _earlier_hops(question: str, earlier: int, found: Found) -> list[int]:
    """Distinct hops that a question names, in order; `earlier` of them come before it."""
    named = [int(digits) for digits in _REFERENCE.findall(question)]
    found.noted["number_sign_without_hop"] += sum(not 1 <= hop <= earlier for hop in named)
    return sorted({hop for hop in named if 1 <= hop <= earlier})
