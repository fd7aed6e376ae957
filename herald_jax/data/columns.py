"""Trajectories as integer columns that keep every state of SPEC section 1.

A value, an empty list and "not logged" stay apart for the citations and for the results of each
step, valid and invalid steps stay apart, and so do a null, a blank and a real answer. What an audit
needs of a row is computed from these columns, and they survive Parquet without loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from herald_jax.data.ids import IdTable
from herald_jax.data.ragged import Int32, Ragged
from herald_jax.data.records import Trajectory
from herald_jax.data.text import answer_tokens, query_key
from herald_jax.types import NO_ANSWER, PAD

Bool = NDArray[np.bool_]

_STEP = pa.struct(
    [
        pa.field("query", pa.int32(), nullable=False),
        pa.field("valid", pa.bool_(), nullable=False),
        pa.field("retrieved", pa.large_list(pa.int32())),
    ]
)
SCHEMA = pa.schema(
    [
        pa.field("steps", pa.large_list(_STEP), nullable=False),
        pa.field("citations", pa.large_list(pa.int32())),
        pa.field("answer_tokens", pa.int32()),
        pa.field("malformed", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True, eq=False)
class Columns:
    """n trajectories with T steps in all.

    Attributes:
        steps: int64 [n + 1] where the steps of each trajectory begin.
        query: int32 [T] code of the query's key, `PAD` for a blank query.
        valid: bool [T] whether the step was a valid action.
        retrieved: T lists of id codes, empty where not logged.
        retrieved_logged: bool [T].
        citations: n lists of id codes, empty where not logged.
        citations_logged: bool [n].
        answer_tokens: int32 [n] white-space tokens; 0 for a blank answer, `NO_ANSWER` for null.
        malformed: int32 [n] citation markers that could not be read.
    """

    steps: NDArray[np.int64]
    query: Int32
    valid: Bool
    retrieved: Ragged
    retrieved_logged: Bool
    citations: Ragged
    citations_logged: Bool
    answer_tokens: Int32
    malformed: Int32

    @classmethod
    def of_records(cls, records: Sequence[Trajectory], ids: IdTable, queries: IdTable) -> "Columns":
        """Encode records; ids and query keys not seen before enter the tables."""
        n = len(records)
        steps = [step for record in records for step in record.steps]
        step_counts = np.fromiter((len(record.steps) for record in records), np.int64, n)
        keys = [query_key(step.query) for step in steps]
        query = np.full(len(steps), PAD, np.int32)
        asked = np.fromiter((key != "" for key in keys), bool, len(keys))
        query[asked] = queries.encode([key for key in keys if key])
        return cls(
            steps=np.concatenate([[0], np.cumsum(step_counts)]).astype(np.int64),
            query=query,
            valid=np.fromiter((step.valid for step in steps), bool, len(steps)),
            retrieved=_encoded([step.retrieved for step in steps], ids),
            retrieved_logged=np.fromiter(
                (step.retrieved is not None for step in steps), bool, len(steps)
            ),
            citations=_encoded([record.citations for record in records], ids),
            citations_logged=np.fromiter(
                (record.citations is not None for record in records), bool, n
            ),
            answer_tokens=np.fromiter(
                (
                    NO_ANSWER if record.answer is None else answer_tokens(record.answer)
                    for record in records
                ),
                np.int32,
                n,
            ),
            malformed=np.fromiter((r.malformed_citations for r in records), np.int32, n),
        )

    def __len__(self) -> int:
        return len(self.steps) - 1

    @property
    def executed(self) -> Bool:
        """bool [T]: the step is an executed search; every other step is an invalid action."""
        asked: Bool = self.query != PAD
        return self.valid & asked

    @property
    def logged(self) -> Bool:
        """bool [n]: citations and the results of all executed searches were recorded."""
        known: Bool = self._count_steps(self.executed & ~self.retrieved_logged) == 0
        return self.citations_logged & known

    @property
    def searches(self) -> Int32:
        """int32 [n] executed searches."""
        return self._count_steps(self.executed)

    @property
    def invalid(self) -> Int32:
        """int32 [n] steps that are no executed search."""
        return self._count_steps(~self.executed)

    @property
    def repeated(self) -> Bool:
        """bool [n]: two executed searches of the trajectory have the same query key."""
        row = np.repeat(np.arange(len(self)), np.diff(self.steps))[self.executed]
        query = self.query[self.executed]
        order = np.lexsort((query, row))
        row, query = row[order], query[order]
        again = (row[1:] == row[:-1]) & (query[1:] == query[:-1])
        out = np.zeros(len(self), bool)
        out[row[1:][again]] = True
        return out

    @property
    def returned(self) -> Ragged:
        """n lists: what the executed searches of each trajectory returned, in order."""
        counts = np.where(self.executed, self.retrieved.lengths, 0)
        kept = np.repeat(self.executed, self.retrieved.lengths)
        by_step = Ragged.of_lengths(self.retrieved.values[kept], counts)
        return by_step.concatenated(self.steps)

    def _count_steps(self, chosen: Bool) -> Int32:
        total = np.concatenate([[0], np.cumsum(chosen, dtype=np.int64)])
        return np.diff(total[self.steps]).astype(np.int32)

    def to_table(self) -> pa.Table:
        """An Arrow table of schema `SCHEMA`, ready for Parquet; not logged is null in it."""
        steps = pa.StructArray.from_arrays(
            [
                pa.array(self.query),
                pa.array(self.valid),
                _list_array(self.retrieved, self.retrieved_logged),
            ],
            fields=list(_STEP),
        )
        columns = [
            pa.LargeListArray.from_arrays(pa.array(self.steps), steps),
            _list_array(self.citations, self.citations_logged),
            pa.array(self.answer_tokens, mask=self.answer_tokens == NO_ANSWER),
            pa.array(self.malformed),
        ]
        return pa.table(columns, schema=SCHEMA)

    @classmethod
    def of_table(cls, table: pa.Table) -> "Columns":
        """The columns that `to_table` wrote.

        Raises:
            pa.ArrowInvalid: the table has another schema.
        """
        table = table.cast(SCHEMA).combine_chunks()
        lists = _one_chunk(table["steps"])
        steps = lists.flatten()
        citations = _one_chunk(table["citations"])
        retrieved = steps.field("retrieved")
        return cls(
            steps=_offsets(lists),
            query=steps.field("query").to_numpy(),
            valid=steps.field("valid").to_numpy(zero_copy_only=False),
            retrieved=_ragged(retrieved),
            retrieved_logged=retrieved.is_valid().to_numpy(zero_copy_only=False),
            citations=_ragged(citations),
            citations_logged=citations.is_valid().to_numpy(zero_copy_only=False),
            answer_tokens=_one_chunk(table["answer_tokens"])
            .fill_null(NO_ANSWER)
            .to_numpy(zero_copy_only=False),
            malformed=_one_chunk(table["malformed"]).to_numpy(),
        )


def _encoded(lists: Sequence[Sequence[str] | None], ids: IdTable) -> Ragged:
    values = ids.encode(list(chain.from_iterable(items for items in lists if items)))
    return Ragged.of_lengths(values, [len(items or ()) for items in lists])


def _list_array(lists: Ragged, logged: Bool) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(
        pa.array(lists.offsets), pa.array(lists.values), mask=pa.array(~logged)
    )


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _offsets(lists: pa.LargeListArray) -> NDArray[np.int64]:
    offsets = lists.offsets.to_numpy()
    return np.asarray(offsets - offsets[0], np.int64)


def _ragged(lists: pa.LargeListArray) -> Ragged:
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return Ragged.of_lengths(lists.flatten().to_numpy(), lengths)
