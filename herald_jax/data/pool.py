"""A pool: the trajectories that can be judged, their corpus and their gold labels, as arrays.

Rows are sorted by question, rollout and trajectory id, passages and questions by id in code-point
order, so that no figure depends on the order of a file. A row that cannot be judged is set aside
and counted by its reason (SPEC sections 1 and 13.11); a file with faults is refused with all of
them, unless bad rows are to be skipped, and then they are counted too.

All that tells of gold labels is `oracle`, `support`, `gold_*` and the `em`, `f1` and `is_gold` of
the rows; the rest is visible.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from herald_jax.data.columns import Bool, Columns
from herald_jax.data.ids import IdTable
from herald_jax.data.metrics import answer_metrics
from herald_jax.data.near import near_id_warnings
from herald_jax.data.ragged import Int32, Ragged
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.data.tables import Progress, Table, read_table, without_clashes
from herald_jax.data.text import answer_tokens
from herald_jax.types import NO_ANSWER, Fault, InputError

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """n trajectories sorted by (question_id, rollout, trajectory_id).

    Attributes:
        records: the trajectories themselves, for their strings.
        question: int32 [n] index into `Pool.question_ids`, ascending.
        retrieved: n lists of id codes that the executed searches returned, repeats kept.
        citations: n lists of id codes, repeats kept.
        searches: int32 [n] executed searches.
        invalid: int32 [n] steps that are no executed search.
        repeated: bool [n] two executed searches have the same query key.
        answer_tokens: int32 [n] white-space tokens of the answer, `NO_ANSWER` when null.
        malformed: int32 [n] citation markers that could not be read.
        em: float64 [n] exact match of the answer (oracle).
        f1: float64 [n] token F1 of the answer (oracle).
        is_gold: bool [n] the answer is the first gold answer, character by character (oracle).
    """

    records: list[Trajectory]
    question: Int32
    retrieved: Ragged
    citations: Ragged
    searches: Int32
    invalid: Int32
    repeated: Bool
    answer_tokens: Int32
    malformed: Int32
    em: Float64
    f1: Float64
    is_gold: Bool

    def __len__(self) -> int:
        return len(self.records)


@dataclass(frozen=True, eq=False)
class Pool:
    """Everything that an audit reads, for Q questions with at least one row and N passages.

    Attributes:
        ids: codes of all ids; passage i has code i.
        passages: N passages sorted by id.
        question_ids: Q ids, sorted.
        questions: their texts.
        oracle: their gold labels.
        support: Q lists of distinct support codes in the order of the file (oracle).
        gold_em: float64 [Q] exact match of the first gold answer against all; NaN without gold.
        gold_f1: float64 [Q] the same for F1.
        gold_tokens: int32 [Q] white-space tokens of the first gold answer, or `NO_ANSWER`.
        rows: the trajectories.
        set_aside: reason -> rows: `not_logged`, `no_oracle`, `bad_row`; only those that occur.
        skipped: faults of the rows counted as `bad_row`.
        warnings: what is legal but suspicious.
        inputs: file -> {"sha256": hex digest, "rows": rows in the file}.
        trajectory_files: those of the inputs that trajectories came from, for messages.
    """

    ids: IdTable
    passages: list[Passage]
    question_ids: list[str]
    questions: list[str]
    oracle: list[OracleRow]
    support: Ragged
    gold_em: Float64
    gold_f1: Float64
    gold_tokens: Int32
    rows: Rows
    set_aside: dict[str, int]
    skipped: list[Fault]
    warnings: list[Fault]
    inputs: dict[str, dict[str, str | int]]
    trajectory_files: list[str]


def load_pool(
    trajectories: Sequence[Path | str],
    corpus: Sequence[Path | str],
    oracle: Sequence[Path | str],
    *,
    rules: str = "unicode",
    assume_no_citations: bool = False,
    skip_bad_rows: bool = False,
    progress: Progress | None = None,
) -> Pool:
    """Read a pool from JSON Lines or Parquet files.

    Args:
        trajectories: files of trajectories.
        corpus: files of passages.
        oracle: files of gold labels.
        rules: answer rules, `unicode` or `squad`.
        assume_no_citations: read citations that were not logged as none.
        skip_bad_rows: load the other rows when some have faults.
        progress: called with a file's name and the number of its rows read so far.

    Raises:
        InputError: faults, all of them. A file that cannot be read is never skipped.
    """
    return _pool(
        read_table(trajectories, Trajectory, progress),
        read_table(corpus, Passage, progress),
        read_table(oracle, OracleRow, progress),
        rules,
        assume_no_citations,
        skip_bad_rows,
    )


def find_pool_files(directory: Path | str) -> tuple[list[Path], list[Path], list[Path]]:
    """The files of a pool directory: trajectories*, corpus* and oracle*, JSON Lines or Parquet.

    Returns:
        Trajectories, corpus and oracle files, each sorted by name.

    Raises:
        InputError: the directory is missing, or has no file of a kind.
    """
    folder = Path(directory)
    if not folder.is_dir():
        got, remedy = "no such directory", "check the path"
        if folder.exists():
            got = "a file"
            remedy = "name its folder, or each file with --trajectories, --corpus and --oracle"
        raise InputError(
            [
                Fault(
                    file=str(directory),
                    line=0,
                    field="",
                    code="not_a_directory",
                    expected="a folder with trajectories*, corpus* and oracle* files",
                    got=got,
                    remedy=remedy,
                )
            ]
        )
    found = {
        kind: sorted(
            path for ending in ("jsonl", "parquet") for path in folder.glob(f"{kind}*.{ending}")
        )
        for kind in ("trajectories", "corpus", "oracle")
    }
    present = ", ".join(sorted(path.name for path in folder.glob("*"))[:8]) or "nothing"
    faults = [
        Fault(
            file=str(directory),
            line=0,
            field="",
            code="missing_file",
            expected=f"a file {kind}*.jsonl or {kind}*.parquet",
            got=present,
            remedy=f"name the {kind} file in the command, or put it there",
        )
        for kind, paths in found.items()
        if not paths
    ]
    if faults:
        raise InputError(faults)
    return found["trajectories"], found["corpus"], found["oracle"]


def pool_from_records(
    trajectories: Sequence[Trajectory],
    passages: Sequence[Passage],
    oracle: Sequence[OracleRow],
    *,
    rules: str = "unicode",
    assume_no_citations: bool = False,
) -> Pool:
    """The same from records; faults name the list and count its items from 1.

    Raises:
        InputError: records clash, all clashes.
    """
    return _pool(
        Table.of_records(trajectories, "trajectories"),
        Table.of_records(passages, "corpus"),
        Table.of_records(oracle, "oracle"),
        rules,
        assume_no_citations,
        skip_bad_rows=False,
    )


def _pool(
    trajectories: Table[Trajectory],
    corpus: Table[Passage],
    oracle: Table[OracleRow],
    rules: str,
    assume_no_citations: bool,
    skip_bad_rows: bool,
) -> Pool:
    trajectories = without_clashes(trajectories, Trajectory)
    corpus = without_clashes(corpus, Passage)
    oracle = without_clashes(oracle, OracleRow)
    faults = [*trajectories.faults, *corpus.faults, *oracle.faults]
    if faults and not (skip_bad_rows and all(fault.line for fault in faults)):
        raise InputError(faults)
    set_aside = Counter(bad_row=trajectories.bad_rows + corpus.bad_rows + oracle.bad_rows)

    records = trajectories.records
    if assume_no_citations:
        records = [
            msgspec.structs.replace(record, citations=record.citations or []) for record in records
        ]
    labels = {row.question_id: row for row in oracle.records}
    judged = []
    for record in records:
        if not record.logged:
            set_aside["not_logged"] += 1
        elif record.question_id not in labels:
            set_aside["no_oracle"] += 1
        else:
            judged.append(record)
    judged.sort(key=lambda record: (record.question_id, record.rollout, record.trajectory_id))

    passages = sorted(corpus.records, key=lambda passage: passage.passage_id)
    ids = IdTable(passage.passage_id for passage in passages)
    texts = {record.question_id: record.question for record in reversed(judged)}
    question_ids = sorted(texts)
    answered = [labels[name] for name in question_ids]
    golds = [row.answers for row in answered]
    firsts = [answers[0] if answers else None for answers in golds]
    gold_em, gold_f1 = answer_metrics(firsts, golds, rules)
    without = np.array([first is None for first in firsts], bool)
    gold_em[without] = gold_f1[without] = np.nan
    support = [list(dict.fromkeys(row.support_ids)) for row in answered]
    return Pool(
        ids=ids,
        passages=passages,
        question_ids=question_ids,
        questions=[texts[name] for name in question_ids],
        oracle=answered,
        support=Ragged.of_lengths(
            ids.encode([name for names in support for name in names]), [len(s) for s in support]
        ),
        gold_em=gold_em,
        gold_f1=gold_f1,
        gold_tokens=np.array(
            [NO_ANSWER if first is None else answer_tokens(first) for first in firsts], np.int32
        ),
        rows=_rows(judged, question_ids, ids, labels, rules),
        set_aside={reason: rows for reason, rows in sorted(set_aside.items()) if rows},
        skipped=faults,
        warnings=near_id_warnings(trajectories, corpus, oracle),
        inputs={**trajectories.inputs, **corpus.inputs, **oracle.inputs},
        trajectory_files=list(dict.fromkeys(trajectories.files)),
    )


def _rows(
    records: list[Trajectory],
    question_ids: list[str],
    ids: IdTable,
    labels: dict[str, OracleRow],
    rules: str,
) -> Rows:
    number = {name: at for at, name in enumerate(question_ids)}
    columns = Columns.of_records(records, ids, IdTable([]))
    answers = [record.answer for record in records]
    golds = [labels[record.question_id].answers for record in records]
    em, f1 = answer_metrics(answers, golds, rules)
    return Rows(
        records=records,
        question=np.array([number[record.question_id] for record in records], np.int32),
        retrieved=columns.returned,
        citations=columns.citations,
        searches=columns.searches,
        invalid=columns.invalid,
        repeated=columns.repeated,
        answer_tokens=columns.answer_tokens,
        malformed=columns.malformed,
        em=em,
        f1=f1,
        is_gold=np.array(
            [answer in gold[:1] for answer, gold in zip(answers, golds, strict=True)], bool
        ),
    )
