"""Question sets of TensorFlow Datasets as questions with gold answers (`herald import tfds`).

The sets have no passages and no support: corpus and trajectories are the user's. What is prepared
on the disk is read as it lies there, TensorFlow or not; what is not is downloaded by TensorFlow
Datasets.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from herald_jax.data.extras import require_tfds
from herald_jax.data.imports.tfrecord import read_records
from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.records import OracleRow
from herald_jax.data.together import write_together
from herald_jax.types import Fault, HeraldError, InputError

Progress = Callable[[str, int, int], None]
_TOLD = 1024  # questions between two reports of progress


class Question(msgspec.Struct, gc=False):
    """A question's text beside its gold labels.

    Attributes:
        question_id: as in the oracle.
        question: its text.
    """

    question_id: str
    question: str


@dataclass(frozen=True)
class ImportedQuestions:
    """What an import wrote.

    Attributes:
        questions: rows of the oracle.
        repeated: entries of a question that was there already; their answers were added to it.
    """

    questions: int
    repeated: int


def import_questions(
    name: str,
    out: Path,
    *,
    split: str = "validation",
    data_dir: Path | None = None,
    progress: Progress | None = None,
) -> ImportedQuestions:
    """Write the questions of a TFDS data set as `oracle.jsonl` and `questions.jsonl`.

    Args:
        name: `trivia_qa` or `natural_questions_open`, with a configuration and a version if need
            be: `trivia_qa/unfiltered.nocontext:1.1.0`.
        out: folder, made when absent.
        split: of the data set, `validation[:100]` and the like included.
        data_dir: where data sets lie; TFDS's own folder when None.
        progress: called with stage, done and total.

    Raises:
        InputError: faults of the data, or a split without answers; nothing was written.
        HeraldError: there is no such data set or split, it is neither on the disk nor to be
            downloaded, TensorFlow Datasets is not installed, or `out` cannot be written.
    """
    base = name.split("/")[0].split(":")[0]
    if base not in READERS:
        raise HeraldError(f"expected one of {', '.join(READERS)}, got {name}")
    tfds = require_tfds()
    builder = _builder(tfds, name, data_dir)
    rows: dict[str, tuple[str, list[str]]] = {}
    faults: list[Fault] = []
    repeated = 0
    for at, example in enumerate(_told(builder, split, progress), 1):
        question_id, question, answers = READERS[base](example)
        text, golds = rows.setdefault(question_id, (question, []))
        if text != question:
            faults.append(
                Fault(
                    file=f"{builder.info.full_name} {split}",
                    line=at,
                    field="question",
                    code="question_disagrees",
                    expected=f"the text of {question_id} before it, {text!r}",
                    got=repr(question),
                    remedy="the data set is not what its name says; prepare it again",
                )
            )
        repeated += bool(golds)
        golds += [answer for answer in answers if answer not in golds]
    if not any(golds for _, golds in rows.values()):
        faults.append(_no_answers(builder.info.full_name, split, len(rows)))
    if faults:
        raise InputError(faults)
    ids = sorted(rows)
    write_together(
        out,
        {
            "oracle.jsonl": partial(
                write_jsonl, records=(OracleRow(one, rows[one][1], []) for one in ids)
            ),
            "questions.jsonl": partial(
                write_jsonl, records=(Question(one, rows[one][0]) for one in ids)
            ),
        },
        remedy="name another folder",
    )
    return ImportedQuestions(questions=len(ids), repeated=repeated)


def _trivia_qa(example: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    answer = example["answer"]
    golds = map(_text, [answer["value"], *answer["aliases"]])
    named = [gold for gold in golds if gold and gold != "<unk>"]
    return _text(example["question_id"]), _text(example["question"]), list(dict.fromkeys(named))


def _natural_questions_open(example: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    # The set has no ids. One that the text gives is the same in any split, order and file.
    question = _text(example["question"])
    question_id = f"nq-{hashlib.sha256(question.encode()).hexdigest()[:12]}"
    return question_id, question, [_text(gold) for gold in example["answer"]]


# Makes of an example the id, the text and the gold answers of its question.
READERS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, str, list[str]]]] = {
    "trivia_qa": _trivia_qa,
    "natural_questions_open": _natural_questions_open,
}


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _builder(tfds: ModuleType, name: str, data_dir: Path | None) -> Any:
    """A builder whose data lies on the disk."""
    place = None if data_dir is None else str(data_dir)
    try:
        builder = tfds.builder(name, data_dir=place)
        if not builder.is_prepared():
            with redirect_stdout(sys.stderr):  # what TFDS says of its work is no result of ours
                builder.download_and_prepare(file_format="array_record")
    except Exception as error:  # of many libraries: networks, disks, configurations, archives
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise HeraldError(
            f"{name}: not prepared in {place or 'the folder of TensorFlow Datasets'}, and it could "
            f"not be downloaded ({reason}); name the folder with --data-dir, or prepare it where "
            "there is a network: tfds build, or tfds.builder(...).download_and_prepare()"
        ) from error
    return builder


def _examples(builder: Any, split: str) -> Iterator[Mapping[str, Any]]:
    """The examples of a split, in the order of its files."""
    info = builder.info
    try:
        files = info.splits[split].file_instructions
    except (KeyError, ValueError) as error:
        raise HeraldError(
            f"{info.full_name}: has no split {split}; it has {', '.join(info.splits)}"
        ) from error
    form = info.file_format.value
    if form == "tfrecord":
        for file in files:
            for record in read_records(Path(file.filename), file.skip, file.take):
                yield info.features.deserialize_example_np(record)
    elif form in ("array_record", "parquet"):
        yield from builder.as_data_source(split)
    else:
        raise HeraldError(
            f"{info.full_name}: lies in {builder.data_dir} as {form}; prepare it as array_record"
        )


def _told(builder: Any, split: str, progress: Progress | None) -> Iterator[Mapping[str, Any]]:
    done = 0
    for done, example in enumerate(_examples(builder, split), 1):
        yield example
        if progress is not None and done % _TOLD == 0:
            progress("read questions", done, 0)
    if progress is not None:
        progress("read questions", done, done)


def _no_answers(name: str, split: str, questions: int) -> Fault:
    return Fault(
        file=f"{name} {split}",
        line=0,
        field="answer",
        code="no_answers",
        expected="questions with gold answers",
        got=f"none in {questions}, as in a test split" if questions else "no question",
        remedy="use the train or validation split: gold labels of test splits are not published",
    )
