"""The corpus and the gold labels of an encoded pool: what audits need of them, as Parquet."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from herald_jax.data.ids import IdTable
from herald_jax.data.parquet import arrow_schema, write_parquet
from herald_jax.data.questions import Questions
from herald_jax.data.ragged import Ragged
from herald_jax.data.records import Passage

_STRINGS = pa.list_(pa.field("item", pa.string(), nullable=False))
_ORACLE = pa.schema(
    [
        pa.field("question_id", pa.string(), nullable=False),
        pa.field("answers", _STRINGS, nullable=False),
        pa.field("support_ids", _STRINGS, nullable=False),
        pa.field("gold_em", pa.float64(), nullable=False),
        pa.field("gold_f1", pa.float64(), nullable=False),
        pa.field("gold_tokens", pa.int32(), nullable=False),
    ]
)


def write_corpus(path: Path, passages: Sequence[Passage]) -> None:
    """Write passages in the order of their codes.

    Raises:
        OSError: the file cannot be written.
    """
    write_parquet(path, passages, Passage)


def read_corpus(path: Path) -> list[Passage]:
    """The passages that `write_corpus` wrote.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is not a Parquet file.
    """
    names = arrow_schema(Passage).names
    table = pq.read_table(path, columns=names)
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return [Passage(**dict(zip(names, row, strict=True))) for row in rows]


def write_questions(path: Path, questions: Questions, ids: IdTable) -> None:
    """Write questions with their gold labels, support by name.

    Raises:
        OSError: the file cannot be written.
    """
    support = [ids.decode(code) for code in questions.support.values.tolist()]
    table = pa.table(
        [
            pa.array(questions.ids, pa.string()),
            pa.array(questions.golds, _STRINGS),
            pa.ListArray.from_arrays(
                pa.array(questions.support.offsets.astype(np.int32)),
                pa.array(support, pa.string()),
                type=_STRINGS,
            ),
            pa.array(questions.gold_em),
            pa.array(questions.gold_f1),
            pa.array(questions.gold_tokens),
        ],
        schema=_ORACLE,
    )
    pq.write_table(table, path, compression="zstd")


def read_questions(path: Path, ids: IdTable) -> Questions:
    """The questions that `write_questions` wrote; support ids enter the table of ids as they did.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is not a Parquet file.
    """
    table = pq.read_table(path, schema=_ORACLE)
    support = table["support_ids"].combine_chunks()
    answers = table["answers"].combine_chunks()
    golds: list[str] = answers.flatten().to_pylist()
    ends = np.cumsum(answers.value_lengths().to_numpy()).tolist()
    return Questions(
        ids=table["question_id"].to_pylist(),
        golds=[golds[first:end] for first, end in pairwise([0, *ends])],
        support=Ragged.of_lengths(
            ids.encode(support.flatten().to_pylist()), support.value_lengths().to_numpy()
        ),
        gold_em=table["gold_em"].to_numpy(),
        gold_f1=table["gold_f1"].to_numpy(),
        gold_tokens=table["gold_tokens"].to_numpy(),
    )
