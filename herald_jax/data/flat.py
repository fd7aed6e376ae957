"""Trajectories of one stretch of a file as flat columns, strings still strings.

This is what a Parquet file holds anyway: a regular stretch of it never becomes Python objects.
Axis letters: n rows, T steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from herald_jax.data import arrow_values as values_of
from herald_jax.data.arrow_values import IrregularError
from herald_jax.data.records import Trajectory
from herald_jax.data.strict import given
from herald_jax.data.string_lists import StringLists, ids_of, join_offsets, spread, starts
from herald_jax.types import Fault

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_INT64 = (-(2**63), 2**63 - 1)
_COUNT = (0, 2**31 - 1)


@dataclass(frozen=True, eq=False)
class Flat:
    """n trajectories with T steps in all.

    Columns of strings are Arrow arrays of type `string`, or dictionary encoded with such values.

    Attributes:
        line: int64 [n] line or row in the file, from 1, ascending.
        trajectory_id: strings [n].
        question_id: strings [n].
        question: strings [n].
        answer: strings [n], null for no answer.
        model: strings [n].
        pool: strings [n].
        rollout: int64 [n].
        selected: bool [n].
        malformed: int32 [n] citation markers that could not be read.
        steps: int64 [n + 1] where the steps of each row begin.
        query: strings [T].
        valid: bool [T].
        retrieved: T lists.
        citations: n lists.
        candidates: n lists.
    """

    line: Int64
    trajectory_id: pa.Array
    question_id: pa.Array
    question: pa.Array
    answer: pa.Array
    model: pa.Array
    pool: pa.Array
    rollout: Int64
    selected: Bool
    malformed: Int32
    steps: Int64
    query: pa.Array
    valid: Bool
    retrieved: StringLists
    citations: StringLists
    candidates: StringLists

    def __len__(self) -> int:
        return len(self.line)

    @classmethod
    def of_records(cls, records: Sequence[Trajectory], lines: Sequence[int]) -> "Flat":
        """Records, or what `StrictLines` makes of lines, with the line of each."""
        n = len(records)
        steps = list(chain.from_iterable([record.steps for record in records]))
        rollout = [given(record.rollout, 0) for record in records]
        selected = [given(record.selected, False) for record in records]
        malformed = [given(record.malformed_citations, 0) for record in records]
        return cls(
            line=np.fromiter(lines, np.int64, n),
            trajectory_id=ids_of([record.trajectory_id for record in records]),
            question_id=ids_of([record.question_id for record in records]),
            question=pa.array([record.question for record in records], pa.string()),
            answer=pa.array([record.answer for record in records], pa.string()),
            model=pa.array([given(record.model, "") for record in records], pa.string()),
            pool=pa.array([given(record.pool, "") for record in records], pa.string()),
            rollout=np.array(rollout, np.int64),
            selected=np.array(selected, bool),
            malformed=np.array(malformed, np.int32),
            steps=starts(np.array([len(record.steps) for record in records], np.int64)),
            query=pa.array([step.query for step in steps], pa.string()),
            valid=np.array([given(step.valid, True) for step in steps], bool),
            retrieved=StringLists.of([given(step.retrieved, None) for step in steps]),
            citations=StringLists.of([given(record.citations, None) for record in records]),
            candidates=StringLists.of([given(record.candidates, None) for record in records]),
        )

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch, first: int) -> "Flat | None":
        """A batch of a Parquet file, `first` being the number of its first row.

        Returns:
            The columns, sharing memory with the batch; None for a batch that may hold a fault or
            that is written in an unusual way. Its records tell.
        """
        try:
            batch.validate(full=True)  # UTF-8 among others
            return _of_columns(
                values_of.distinctly(batch.schema.names, batch.columns), first, batch.num_rows
            )
        except (IrregularError, pa.ArrowInvalid):
            return None

    @classmethod
    def joined(cls, parts: Sequence["Flat"]) -> "Flat":
        """The rows of one part after the other; at least one part."""
        if len(parts) == 1:
            return parts[0]

        def strings(name: str) -> pa.Array:
            return values_of.joined([getattr(part, name) for part in parts])

        return cls(
            line=np.concatenate([part.line for part in parts]),
            trajectory_id=strings("trajectory_id"),
            question_id=strings("question_id"),
            question=strings("question"),
            answer=strings("answer"),
            model=strings("model"),
            pool=strings("pool"),
            rollout=np.concatenate([part.rollout for part in parts]),
            selected=np.concatenate([part.selected for part in parts]),
            malformed=np.concatenate([part.malformed for part in parts]),
            steps=join_offsets([part.steps for part in parts]),
            query=strings("query"),
            valid=np.concatenate([part.valid for part in parts]),
            retrieved=StringLists.joined([part.retrieved for part in parts]),
            citations=StringLists.joined([part.citations for part in parts]),
            candidates=StringLists.joined([part.candidates for part in parts]),
        )

    def take(self, rows: Int64) -> "Flat":
        """Some rows, in the order given."""
        lengths = np.diff(self.steps)[rows]
        steps = spread(self.steps[:-1][rows], lengths)
        chosen = {
            name: getattr(self, name)[rows] for name in ("line", "rollout", "selected", "malformed")
        }
        strings = ("trajectory_id", "question_id", "question", "answer", "model", "pool")
        return Flat(
            **chosen,
            **{name: values_of.taken(getattr(self, name), rows) for name in strings},
            steps=starts(lengths),
            query=values_of.taken(self.query, steps),
            valid=self.valid[steps],
            retrieved=self.retrieved.take(steps),
            citations=self.citations.take(rows),
            candidates=self.candidates.take(rows),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the strings, about."""
        lists = (self.retrieved, self.citations, self.candidates)
        strings = (self.trajectory_id, self.question_id, self.question, self.answer, self.query)
        return sum(part.nbytes for part in (*strings, *(column.values for column in lists)))


@dataclass(frozen=True, eq=False)
class FlatBatch:
    """What one stretch of a file held.

    Attributes:
        flat: the rows that could be read.
        faults: of the others, and of the file as a whole.
        rows: rows read, rejected ones included.
    """

    flat: Flat
    faults: list[Fault]
    rows: int


def _of_columns(columns: dict[str, pa.Array], first: int, n: int) -> Flat:
    for name in ("trajectory_id", "question_id", "question", "steps", "answer"):
        if name not in columns:
            raise IrregularError(f"no column {name}")

    def optional(name: str, length: int = n, within: dict[str, pa.Array] = columns) -> pa.Array:
        return within[name] if name in within else pa.nulls(length)

    values_of.integers(optional("generated_tokens"), *_COUNT)
    items, steps, known = values_of.lists(columns["steps"])
    if not known.all():
        raise IrregularError("null for steps")
    if pa.types.is_null(items.type):
        items = pa.array([], pa.struct([("query", pa.string())]))
    step = values_of.fields(items)
    if "query" not in step:
        raise IrregularError("steps without a query")
    return Flat(
        line=np.arange(first, first + n, dtype=np.int64),
        trajectory_id=values_of.ids(columns["trajectory_id"]),
        question_id=values_of.ids(columns["question_id"]),
        question=values_of.texts(columns["question"]),
        answer=values_of.texts(columns["answer"], nullable=True),
        model=values_of.texts(optional("model"), null=""),
        pool=values_of.texts(optional("pool"), null=""),
        rollout=values_of.integers(optional("rollout"), *_INT64),
        selected=values_of.flags(optional("selected"), null=False),
        malformed=values_of.integers(optional("malformed_citations"), *_COUNT).astype(np.int32),
        steps=steps,
        query=values_of.texts(step["query"]),
        valid=values_of.flags(optional("valid", len(items), step), null=True),
        retrieved=StringLists.of_arrow(optional("retrieved", len(items), step)),
        citations=StringLists.of_arrow(optional("citations")),
        candidates=StringLists.of_arrow(optional("candidates")),
    )
