"""What a chunk must hold, read plainly off the records."""

import dataclasses

import numpy as np
from reference import metrics
from reference.text import is_blank, query_key

from herald_jax.data.chunk import REASONS
from herald_jax.data.encode import Encoder
from herald_jax.data.ids import IdTable
from herald_jax.data.questions import questions_of
from herald_jax.data.ragged import Ragged
from herald_jax.types import NO_ANSWER


class Audit:
    """An encoder with the corpus and the oracle that it was made from."""

    def __init__(self, corpus, oracle, rules="unicode", assume_no_citations=False):
        self.ids = IdTable(corpus)
        self.questions = questions_of(oracle, self.ids, rules)
        self.oracle = {row.question_id: row for row in oracle}
        self.rules = rules
        self.assume_no_citations = assume_no_citations
        self.encoder = Encoder(
            self.ids, self.questions, rules=rules, assume_no_citations=assume_no_citations
        )

    def reason(self, record):
        citations = record.citations
        if self.assume_no_citations and citations is None:
            citations = []
        lost = any(step.retrieved is None for step in searches(record))
        if citations is None or lost:
            return "not_logged"
        return None if record.question_id in self.oracle else "no_oracle"

    def row(self, record, line):
        """The fields of one judged row, ids as names."""
        done = searches(record)
        keys = [query_key(step.query) for step in done]
        golds = self.oracle[record.question_id].answers
        return {
            "line": line,
            "name": record.trajectory_id,
            "question": record.question_id,
            "rollout": record.rollout,
            "model": record.model,
            "pool": record.pool,
            "selected": record.selected,
            "retrieved": [name for step in done for name in step.retrieved],
            "citations": record.citations or [],
            "candidates": record.candidates or [],
            "candidates_logged": record.candidates is not None,
            "searches": len(done),
            "invalid": len(record.steps) - len(done),
            "repeated": len(set(keys)) < len(keys),
            "answer_tokens": NO_ANSWER if record.answer is None else len(record.answer.split()),
            "malformed": record.malformed_citations,
            "em": metrics.exact_match(record.answer, golds, self.rules),
            "f1": metrics.f1(record.answer, golds, self.rules),
            "is_gold": record.answer in golds[:1],
        }

    def rows(self, records, lines):
        """The fields of all judged rows."""
        pairs = zip(records, lines, strict=True)
        return [self.row(record, line) for record, line in pairs if self.reason(record) is None]

    def reasons(self, records):
        """Of each row, as numbers."""
        found = map(self.reason, records)
        return [0 if reason is None else 1 + REASONS.index(reason) for reason in found]

    def strangers(self, records, lines):
        """(name, line, field) of passages and of questions that nobody knows."""
        passages, questions = {}, {}
        for record, line in zip(records, lines, strict=True):
            for step in record.steps:
                for name in step.retrieved or ():
                    passages.setdefault(name, (name, line, "steps.retrieved"))
            for field in ("citations", "candidates"):
                for name in getattr(record, field) or ():
                    passages.setdefault(name, (name, line, field))
            questions.setdefault(record.question_id, (record.question_id, line, "question_id"))
        return (
            [mention for name, mention in passages.items() if name not in self.ids],
            [mention for name, mention in questions.items() if name not in self.oracle],
        )


def searches(record):
    return [step for step in record.steps if step.valid and not is_blank(step.query)]


def rows_of(chunk, audit, names):
    """The fields of a chunk's rows; ids beyond the table by `names`: code -> name."""
    texts = chunk.name_bytes.tobytes()
    ends = [0, *chunk.name_ends.tolist()]

    def named(codes):
        return [names[code] if code in names else audit.ids.decode(code) for code in codes.tolist()]

    out = []
    for row in range(len(chunk)):
        found = {
            field.name: getattr(chunk, field.name)[row]
            for field in dataclasses.fields(chunk)
            if field.name not in {"name_bytes", "name_ends", "models", "pools", "identities"}
        }
        found |= {
            key: named(value) for key, value in found.items() if isinstance(value, np.ndarray)
        }
        found = {
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in found.items()
        }
        found["name"] = texts[ends[row] : ends[row + 1]].decode()
        found["question"] = audit.questions.ids[found["question"]]
        found["model"] = chunk.models[found["model"]]
        found["pool"] = chunk.pools[found["pool"]]
        out.append(found)
    return out


def names_beyond(chunk, audit, rows):
    """Code -> name of ids that are not in the table, by what the rows must be; one name a code."""
    names = {}
    for field in ("retrieved", "citations", "candidates"):
        codes = getattr(chunk, field).values.tolist()
        expected = [name for row in rows for name in row[field]]
        assert len(codes) == len(expected)
        for code, name in zip(codes, expected, strict=True):
            if code >= len(audit.ids):
                assert names.setdefault(code, name) == name
    assert len(set(names.values())) == len(names)
    assert not any(name in audit.ids for name in names.values())
    return names


def check(flat, audit, records, lines):
    """Assert that the chunk of `flat` is what the records say."""
    chunk, strangers = audit.encoder.encode(flat)
    rows = audit.rows(records, lines)
    assert len(chunk) == len(rows)
    assert rows_of(chunk, audit, names_beyond(chunk, audit, rows)) == rows
    assert chunk.models == sorted({row["model"] for row in rows})
    assert chunk.pools == sorted({row["pool"] for row in rows})
    assert chunk.identities.line.tolist() == list(lines)
    assert chunk.identities.reason.tolist() == audit.reasons(records)
    assert tuple(map(list, strangers)) == audit.strangers(records, lines)
    for field in dataclasses.fields(chunk):
        value = getattr(chunk, field.name)
        if isinstance(value, Ragged):
            assert (value.values.dtype, value.offsets.dtype) == (np.int32, np.int64)
    return chunk


def assert_same(ours, theirs):
    """Assert that two chunks are equal, types included."""
    for field in dataclasses.fields(ours):
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        if dataclasses.is_dataclass(a):
            assert_same(a, b)
        elif isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field.name
            np.testing.assert_array_equal(a, b, err_msg=field.name)
        else:
            assert a == b
