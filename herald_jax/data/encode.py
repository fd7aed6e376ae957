"""From flat columns of strings to a chunk of integers (SPEC sections 1 to 3).

What does not change from chunk to chunk, the values that ids are looked up in and the gold answers,
is made ready once in an `Encoder`.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from herald_jax.data.arrow_values import joined, taken
from herald_jax.data.chunk import Chunk, Identities
from herald_jax.data.flat import Flat
from herald_jax.data.golds import Golds
from herald_jax.data.hashes import hash_strings
from herald_jax.data.ids import IdTable
from herald_jax.data.questions import Questions
from herald_jax.data.ragged import Int32, Ragged
from herald_jax.data.repeats import repeated
from herald_jax.data.string_lists import StringLists
from herald_jax.data.strings import encoded, found_in, plain, utf8
from herald_jax.data.words import word_counts
from herald_jax.types import NO_ANSWER

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

_BLANK = "".join(filter(str.isspace, map(chr, range(0x110000))))


class Mention(NamedTuple):
    """Where a chunk mentions an id for the first time."""

    name: str
    line: int
    field: str


class Strangers(NamedTuple):
    """Distinct ids of all rows of a chunk that neither corpus nor oracle knows, by first mention.

    Attributes:
        passages: of `steps.retrieved`, `citations` and `candidates`.
        questions: of `question_id`.
    """

    passages: list[Mention]
    questions: list[Mention]


class Encoder:
    """Encodes the rows of one audit.

    Args:
        ids: codes of the corpus and of the support ids of the oracle; nothing enters the table.
        questions: the questions of the oracle.
        rules: answer rules, `unicode` or `squad`.
        assume_no_citations: read citations that were not logged as none.
    """

    def __init__(
        self, ids: IdTable, questions: Questions, *, rules: str, assume_no_citations: bool
    ):
        self._names = pa.array(ids.names, pa.string())
        self._question_ids = pa.array(questions.ids, pa.string())
        self._first_golds = pa.array(
            [golds[0] if golds else None for golds in questions.golds], pa.string()
        )
        self._golds = Golds(questions.golds, rules)
        self._assume_no_citations = assume_no_citations

    def encode(self, flat: Flat) -> tuple[Chunk, Strangers]:
        """The chunk of these rows, and the ids in any of them, set aside or not, nobody knows."""
        retrieved, citations, candidates, strangers = self._codes(flat)
        question = found_in(flat.question_id, self._question_ids)
        asked = pc.binary_length(pc.utf8_trim(plain(flat.query), characters=_BLANK))
        executed = flat.valid & (asked.to_numpy() > 0)
        lost = _per_row(executed & ~flat.retrieved.logged, flat.steps) > 0
        logged = ~lost if self._assume_no_citations else ~lost & flat.citations.logged
        known: Bool = question >= 0
        rows = np.flatnonzero(logged & known)

        def strings(column: pa.Array) -> pa.Array:
            return column if len(rows) == len(flat) else taken(column, rows)

        def lists(column: Ragged) -> Ragged:
            return column if len(rows) == len(flat) else column.take(rows)

        question = question[rows]
        answer = strings(flat.answer)
        name_ends, name_bytes = utf8(plain(strings(flat.trajectory_id)))
        model, models = _numbered(strings(flat.model))
        pool, pools = _numbered(strings(flat.pool))
        searches = _per_row(executed, flat.steps)
        answered, answers = encoded(answer)
        em, f1 = self._golds.scores(answers, answered, question)
        firsts = self._first_golds.take(pa.array(question))
        chunk = Chunk(
            line=flat.line[rows],
            name_bytes=name_bytes,
            name_ends=name_ends[1:],
            question=question,
            rollout=flat.rollout[rows],
            model=model,
            pool=pool,
            selected=flat.selected[rows],
            retrieved=lists(_returned(retrieved, executed, flat.steps)),
            citations=lists(citations),
            candidates=lists(candidates),
            candidates_logged=flat.candidates.logged[rows],
            searches=searches[rows],
            invalid=(np.diff(flat.steps) - searches).astype(np.int32)[rows],
            repeated=repeated(plain(flat.query), executed, flat.steps)[rows],
            answer_tokens=np.append(word_counts(answers), np.int32(NO_ANSWER))[answered],
            malformed=flat.malformed[rows],
            em=em,
            f1=f1,
            is_gold=_true(pc.equal(plain(answer), firsts)),
            models=models,
            pools=pools,
            identities=Identities(
                line=flat.line,
                trajectory=hash_strings(flat.trajectory_id),
                question=hash_strings(flat.question_id),
                text=hash_strings(flat.question),
                reason=np.where(~logged, 1, np.where(~known, 2, 0)).astype(np.uint8),
            ),
        )
        return chunk, Strangers(strangers, _question_strangers(flat, ~known))

    def _codes(self, flat: Flat) -> tuple[Ragged, Ragged, Ragged, list[Mention]]:
        """Codes of the three kinds of lists; ids that are not in the table follow it."""
        lists = (flat.retrieved, flat.citations, flat.candidates)
        codes = [found_in(column.values, self._names) for column in lists]
        unknown = [code < 0 for code in codes]
        strange, names = encoded(
            plain(joined([taken(c.values, u) for c, u in zip(lists, unknown, strict=True)]))
        )
        ends = np.cumsum([0, *map(np.sum, unknown)])
        found: list[Ragged] = []
        for code, gap, column, span in zip(codes, unknown, lists, pairwise(ends), strict=True):
            if gap.any():
                code = code.copy()
                code[gap] = len(self._names) + strange[slice(*span)]
            found.append(Ragged(code, column.offsets))
        mentions = _passage_strangers(flat, unknown, strange, names.to_pylist())
        return found[0], found[1], found[2], mentions


def encode(
    flat: Flat, ids: IdTable, questions: Questions, *, rules: str, assume_no_citations: bool
) -> Chunk:
    """One stretch of rows; see `Encoder`."""
    encoder = Encoder(ids, questions, rules=rules, assume_no_citations=assume_no_citations)
    return encoder.encode(flat)[0]


def _per_row(chosen: Bool, steps: Int64) -> Int32:
    """int32 [n]: how many steps of each row are chosen."""
    total = np.concatenate([[0], np.cumsum(chosen, dtype=np.int64)])
    return np.diff(total[steps]).astype(np.int32)


def _returned(retrieved: Ragged, executed: Bool, steps: Int64) -> Ragged:
    """n lists: what the executed searches of each row returned, in order."""
    if not executed.all():
        lengths = retrieved.lengths
        retrieved = Ragged.of_lengths(
            retrieved.values[np.repeat(executed, lengths)], np.where(executed, lengths, 0)
        )
    return retrieved.concatenated(steps)


def _numbered(strings: pa.Array) -> tuple[Int32, list[str]]:
    """Index of each string among the distinct ones, and these, sorted."""
    codes, values = encoded(strings)
    used, back = np.unique(codes, return_inverse=True)
    names = [values[int(code)].as_py() for code in used]
    ranked = sorted(set(names))
    rank = {name: at for at, name in enumerate(ranked)}
    return np.array([rank[name] for name in names], np.int32)[back], ranked


def _true(flags: pa.Array) -> Bool:
    return np.asarray(flags.fill_null(False).to_numpy(zero_copy_only=False), bool)


def _passage_strangers(
    flat: Flat, unknown: list[Bool], strange: Int32, names: list[str]
) -> list[Mention]:
    """First mention of each unknown passage id: by row, and there in the order of the fields."""
    if not names:
        return []
    by_step = StringLists(
        flat.retrieved.values, flat.retrieved.offsets[flat.steps], flat.citations.logged
    )
    places = [
        np.searchsorted(column.offsets, np.flatnonzero(gap), side="right") - 1
        for column, gap in zip((by_step, flat.citations, flat.candidates), unknown, strict=True)
    ]
    row = np.concatenate(places)
    field = np.repeat(np.arange(3), [len(place) for place in places])
    order = np.lexsort((field, row))
    _, first = np.unique(strange[order], return_index=True)
    fields = ("steps.retrieved", "citations", "candidates")
    return [
        Mention(names[strange[at]], int(flat.line[row[at]]), fields[field[at]])
        for at in order[np.sort(first)].tolist()
    ]


def _question_strangers(flat: Flat, chosen: Bool) -> list[Mention]:
    codes, values = encoded(taken(flat.question_id, chosen))
    lines = flat.line[chosen]
    _, first = np.unique(codes, return_index=True)
    names = values.to_pylist()
    return [
        Mention(names[codes[at]], int(lines[at]), "question_id") for at in np.sort(first).tolist()
    ]
