"""Benchmark files in, `corpus.jsonl` and `oracle.jsonl` out (SPEC section 1).

All files of one import share one corpus, whose passages and ids depend on what the files hold and
on no order. Any fault refuses the whole import, with all of them; the two files are replaced only
when both are on disk.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from herald_jax.data.checks import reporter, shown
from herald_jax.data.imports import hotpotqa, musique
from herald_jax.data.imports.aliases import read_aliases
from herald_jax.data.imports.draft import Draft, Found, ReadQuestion
from herald_jax.data.imports.passages import passage_ids
from herald_jax.data.imports.source import Progress, read_objects
from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.records import Node, OracleRow
from herald_jax.data.tables import unreadable
from herald_jax.data.together import write_together
from herald_jax.types import Fault, InputError

FORMATS: Mapping[str, ReadQuestion] = {
    "hotpotqa": hotpotqa.read_question,
    "2wiki": hotpotqa.read_question,
    "musique": musique.read_question,
}
_TOLD = 4096  # records between two reports of progress

R = TypeVar("R", bound=msgspec.Struct)


@dataclass(frozen=True)
class Imported:
    """What an import wrote.

    Attributes:
        passages: rows of the corpus.
        questions: rows of the oracle.
        left_out: reason -> questions that have no row: `unanswerable` (MuSiQue says so),
            `support_ambiguous` (a fact's title names several texts).
        noted: oddities of the files, and how many; no row is left out for them.
            `support_outside_corpus`: support ids to which no context has a passage.
            `fact_past_last_sentence`: facts whose paragraph has no such sentence.
            `hops_outside_support`: hops whose paragraph is not marked as supporting.
            `number_sign_without_hop`: number signs in sub-questions that name no earlier hop.
            `without_support`: questions with no supporting fact.
    """

    passages: int
    questions: int
    left_out: dict[str, int]
    noted: dict[str, int]


def import_benchmark(
    name: str,
    paths: Sequence[Path | str],
    out: Path,
    *,
    aliases: Path | str | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Write the corpus and the oracle of benchmark files into `out`.

    Args:
        name: a key of `FORMATS`.
        paths: its files, JSON arrays or JSON Lines; questions must differ over all of them.
        out: folder, made when absent.
        aliases: 2WikiMultihopQA's `id_aliases.json`, for more gold answers.
        progress: called with stage, done and total.

    Raises:
        InputError: faults, all of them; nothing was written.
        HeraldError: `out` cannot be written; what it held is as it was.
        ValueError: no such format, or aliases of another one than 2wiki.
    """
    if name not in FORMATS:
        raise ValueError(f"expected one of {', '.join(FORMATS)}, got {name}")
    if aliases is not None and name != "2wiki":
        raise ValueError(f"only 2wiki has a file of aliases, not {name}")
    faults: list[Fault] = []
    found = Found()
    drafts = _read_all(paths, FORMATS[name], found, faults, progress)
    if aliases is not None:
        _add_aliases(drafts, aliases, faults)
    if not faults and not drafts:
        faults.append(_no_questions(paths, found))
    if faults:
        raise InputError(faults)

    by_title = found.passages.by_title()
    rows = {draft.question_id: _support(draft, by_title, found) for draft in drafts}
    titles = {each for support in rows.values() for each in support or () if type(each) is str}
    ids = passage_ids(by_title, titles)
    drafts.sort(key=lambda draft: draft.question_id)
    oracle = [
        _oracle_row(draft, support, ids)
        for draft in drafts
        if (support := rows[draft.question_id]) is not None
    ]
    if not oracle:
        raise InputError([_no_questions(paths, found)])
    passages = _told(found.passages.records(ids), "write corpus", len(ids), progress)
    labels = _told(oracle, "write oracle", len(oracle), progress)
    write_together(
        out,
        {
            "corpus.jsonl": partial(write_jsonl, records=passages),
            "oracle.jsonl": partial(write_jsonl, records=labels),
        },
        remedy="name another folder",
    )
    return Imported(
        passages=len(ids),
        questions=len(oracle),
        left_out={reason: count for reason, count in sorted(found.left_out.items()) if count},
        noted={oddity: count for oddity, count in sorted(found.noted.items()) if count},
    )


def _read_all(
    paths: Sequence[Path | str],
    read: ReadQuestion,
    found: Found,
    faults: list[Fault],
    progress: Progress | None,
) -> list[Draft]:
    drafts: list[Draft] = []
    places: dict[str, str] = {}
    for path in paths:
        here: list[Fault] = []
        unlabelled: list[Fault] = []
        entries = 0
        try:
            for line, value in read_objects(path, here, progress):
                entries += 1
                report = reporter(str(path), line, here)
                if not isinstance(value, dict):
                    remedy = "write one object for each question"
                    report("", "wrong_type", "an object", shown(value), remedy)
                elif not _has_answer(value):
                    got = shown(value["answer"]) if "answer" in value else "no such key"
                    report = reporter(str(path), line, unlabelled)
                    remedy = "add the gold answer, or remove the question"
                    report("answer", "no_answer", "a gold answer", got, remedy)
                elif (draft := read(value, report, found)) is not None:
                    place = f"{path}:{line}"
                    first = places.setdefault(draft.question_id, place)
                    if first != place:
                        got = f"{shown(draft.question_id)} again, first at {first}"
                        remedy = "import a question once; two settings of it are two imports"
                        report("id", "duplicate_id", "a question of its own", got, remedy)
                    drafts.append(draft)
        except OSError as error:
            fault = unreadable(str(path), error)
            here.append(dataclasses.replace(fault, expected="a JSON array or JSON Lines"))
        here += [_test_split(path, entries)] if entries == len(unlabelled) > 0 else unlabelled
        faults += sorted(here, key=lambda fault: fault.line)
    return drafts


def _has_answer(value: dict[str, Any]) -> bool:
    answer = value.get("answer")
    return answer is not None and not (isinstance(answer, str) and not answer.strip())


def _test_split(path: Path | str, entries: int) -> Fault:
    return Fault(
        file=str(path),
        line=0,
        field="answer",
        code="no_answers",
        expected="questions with gold answers",
        got=f"none in {entries}, as in a test split",
        remedy="use the train or dev split: gold labels of test splits are not published",
    )


def _no_questions(paths: Sequence[Path | str], found: Found) -> Fault:
    reasons = ", ".join(f"{many} {reason}" for reason, many in found.left_out.items())
    return Fault(
        file=", ".join(map(str, paths)),
        line=0,
        field="",
        code="no_questions",
        expected="at least one question that can be judged",
        got=f"none; left out: {reasons}" if reasons else "none",
        remedy="check that these are the files of this benchmark",
    )


def _add_aliases(drafts: list[Draft], path: Path | str, faults: list[Fault]) -> None:
    wanted = {draft.answer_id for draft in drafts if draft.answer_id}
    try:
        names = read_aliases(path, wanted, faults)
    except OSError as error:
        faults.append(unreadable(str(path), error))
        return
    if drafts and not wanted:
        remedy = "use the benchmark's files with ids (data_ids), or leave the aliases out"
        report = reporter(str(path), 0, faults)
        report("Q_id", "no_answer_ids", "questions with answer_id", "none has one", remedy)
    for draft in drafts:
        more = names.get(draft.answer_id, [])
        draft.answers = list(dict.fromkeys([*draft.answers, *more]))


def _support(draft: Draft, by_title: dict[str, list[int]], found: Found) -> list[int | str] | None:
    """The support with titles resolved to the only passage that has them.

    A title that no passage has stays: an id outside the corpus. None, and the question is counted
    as left out, when several have it.
    """
    support: list[int | str] = []
    outside = 0
    for each in draft.support:
        numbers = by_title.get(each, []) if isinstance(each, str) else [each]
        if len(numbers) > 1:
            found.left_out["support_ambiguous"] += 1
            return None
        outside += not numbers
        support += numbers or [each]
    found.noted["support_outside_corpus"] += outside
    found.noted["without_support"] += not support
    return list(dict.fromkeys(support))


def _oracle_row(draft: Draft, support: list[int | str], ids: list[str]) -> OracleRow:
    return OracleRow(
        question_id=draft.question_id,
        answers=draft.answers,
        support_ids=[each if isinstance(each, str) else ids[each] for each in support],
        nodes=[
            Node(
                node_id=str(number),
                depends_on=[str(hop_before) for hop_before in hop.depends_on],
                support_ids=[ids[hop.support]],
                answers=[hop.answer],
            )
            for number, hop in enumerate(draft.hops, 1)
        ],
    )


def _told(records: Iterable[R], stage: str, total: int, progress: Progress | None) -> Iterator[R]:
    for done, record in enumerate(records):
        if progress is not None and done % _TOLD == 0:
            progress(stage, done, total)
        yield record
    if progress is not None:
        progress(stage, total, total)
