"""Warnings of ids that are different but look the same.

Ids compare exactly (SPEC section 1): " 7", "7", "007" and "7.0" are four ids. Where two ids of one
kind differ only by white space at the ends, case, Unicode form or numeric reading, one of the
writers probably meant the other, and a citation counts as fake for a space. That is legal and worth
a warning.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain

import msgspec

from herald_jax.data.checks import shown
from herald_jax.data.encode import Strangers
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.data.tables import Table
from herald_jax.types import Fault

_NUMBER = re.compile(r"([+-]?)0*([0-9]+)(?:\.0*)?")

Mention = tuple[str, str, int, str]  # id, file, line, field


def near_id_warnings(
    trajectories: Table[Trajectory], corpus: Table[Passage], oracle: Table[OracleRow]
) -> list[Fault]:
    """One warning for each id that looks like one met before it, at its first mention.

    The passages of the corpus come first, then what the oracle and the trajectories mention.
    """
    return [
        *_near(
            _passage_ids(trajectories, corpus, oracle),
            chain(_of_corpus(corpus), _of_support(oracle), _of_passages(trajectories)),
        ),
        *_near(
            {
                *(record.question_id for record in oracle.records),
                *(record.question_id for record in trajectories.records),
            },
            chain(_of_questions(oracle), _of_questions(trajectories)),
        ),
        *_near({record.trajectory_id for record in trajectories.records}, _of_rows(trajectories)),
    ]


class Stranger(msgspec.Struct, frozen=True, array_like=True):
    """An id that looks like a known one, where a file mentions it first.

    Attributes:
        name: the id.
        line: line of the mention.
        field: field of the mention.
        known: the id that it looks like.
    """

    name: str
    line: int
    field: str
    known: str


class Known:
    """The ids of a corpus and of an oracle, by what they look like.

    Args:
        passages: passage ids of the corpus and of the oracle.
        questions: question ids of the oracle.
    """

    def __init__(self, passages: Sequence[str], questions: Sequence[str]) -> None:
        self._passages = passages
        self._questions = questions

    def alike(self, strangers: Strangers) -> list[Stranger]:
        """Those of some unknown ids that look like a known one."""
        found = []
        for mentions, looks in (
            (strangers.passages, "_passage_looks"),
            (strangers.questions, "_question_looks"),
        ):
            for mention in mentions:
                known = getattr(self, looks).get(look(mention.name))
                if known is not None:
                    found.append(Stranger(mention.name, mention.line, mention.field, known))
        return found

    @cached_property
    def _passage_looks(self) -> dict[str, str]:
        return {look(name): name for name in reversed(self._passages)}

    @cached_property
    def _question_looks(self) -> dict[str, str]:
        return {look(name): name for name in reversed(self._questions)}


def stranger_warnings(files: Sequence[tuple[str, Sequence[Stranger]]]) -> list[Fault]:
    """One warning for each id of trajectory files that looks like one of corpus or oracle."""
    seen: set[tuple[str, bool]] = set()
    found = []
    for file, strangers in files:
        for stranger in strangers:
            kind = (stranger.name, stranger.field == "question_id")
            if kind in seen:
                continue
            seen.add(kind)
            where = "the oracle" if kind[1] else "the corpus or the oracle"
            found.append(
                Fault(
                    file=file,
                    line=stranger.line,
                    field=stranger.field,
                    code="near_id",
                    expected=f"an id unlike {shown(stranger.known)}, which {where} has",
                    got=shown(stranger.name),
                    remedy="write it the same way if the same is meant; as it is, they are two ids",
                    warning=True,
                )
            )
    return found


def look(name: str) -> str:
    """What an id looks like when it is read carelessly."""
    if name.isascii():
        folded = name.strip().lower()
    else:
        folded = unicodedata.normalize("NFKC", name).casefold().strip()
    number = _NUMBER.fullmatch(folded)
    if number is None:
        return folded
    sign, digits = number.groups()
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def _near(names: set[str], mentions: Iterator[Mention]) -> Iterator[Fault]:
    by_look: dict[str, list[str]] = {}
    for name in names:
        by_look.setdefault(look(name), []).append(name)
    alike = {name: key for key, group in by_look.items() if len(group) > 1 for name in group}
    first_of_look: dict[str, Mention] = {}
    while alike:  # mentions are many: they are gone through only as far as there is one to place
        mention = next(mentions)
        name, file, line, field = mention
        key = alike.pop(name, None)
        if key is None:
            continue
        first = first_of_look.setdefault(key, mention)
        if first is not mention:
            yield Fault(
                file=file,
                line=line,
                field=field,
                code="near_id",
                expected=f"an id unlike {shown(first[0])}, which stands at {first[1]}:{first[2]}",
                got=shown(name),
                remedy="write it the same way if the same is meant; as it is, they are two ids",
                warning=True,
            )


def _passage_ids(
    trajectories: Table[Trajectory], corpus: Table[Passage], oracle: Table[OracleRow]
) -> set[str]:
    names = {passage.passage_id for passage in corpus.records}
    for row in oracle.records:
        names.update(row.support_ids, *(node.support_ids for node in row.nodes))
    for record in trajectories.records:
        names.update(*(step.retrieved or () for step in record.steps))
        names.update(record.citations or (), record.candidates or ())
    return names


def _of_corpus(table: Table[Passage]) -> Iterator[Mention]:
    for record, file, line in table:
        yield record.passage_id, file, line, "passage_id"


def _of_support(table: Table[OracleRow]) -> Iterator[Mention]:
    for record, file, line in table:
        for name in record.support_ids:
            yield name, file, line, "support_ids"
        for node in record.nodes:
            for name in node.support_ids:
                yield name, file, line, "nodes.support_ids"


def _of_passages(table: Table[Trajectory]) -> Iterator[Mention]:
    for record, file, line in table:
        for step in record.steps:
            for name in step.retrieved or ():
                yield name, file, line, "steps.retrieved"
        for name in record.citations or ():
            yield name, file, line, "citations"
        for name in record.candidates or ():
            yield name, file, line, "candidates"


def _of_questions(table: Table[OracleRow] | Table[Trajectory]) -> Iterator[Mention]:
    for record, file, line in table:
        yield record.question_id, file, line, "question_id"


def _of_rows(table: Table[Trajectory]) -> Iterator[Mention]:
    for record, file, line in table:
        yield record.trajectory_id, file, line, "trajectory_id"
