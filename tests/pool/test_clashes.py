"""Clashes between rows of any files and chunks, against a reading that keeps every string."""

import random
from functools import partial

import numpy as np
import pyarrow.compute as pc
import pytest

from herald_jax.data import encode
from herald_jax.data.checks import shown
from herald_jax.data.hashes import hash_strings
from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.parquet import write_parquet
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory
from herald_jax.data.strings import plain as plain_strings
from herald_jax.pool import clashes, load, logs
from herald_jax.pool.load import load_pool, pool_from_records
from herald_jax.types import InputError

# Different ids, however much they look alike.
IDS = ("t", "T", "t ", "t\x00", "é", "e\u0301", "7", "07", "", "\U0001f427")
QUESTIONS = ("q", "Q", "q ", "nobody knows it")
PASSAGES = [Passage("p", "")]
ORACLE = [OracleRow(name, ["x"], ["p"]) for name in QUESTIONS[:3]]


def record(rng: random.Random, ids: int, texts: int) -> Trajectory:
    question = rng.choice(QUESTIONS)
    steps = [Step("s", None if rng.random() < 0.1 else ["p"])]
    return Trajectory(
        rng.choice(IDS) + str(rng.randrange(ids)),
        question,
        f"text {question} {rng.randrange(texts) and rng.randrange(texts)}",
        steps,
        "x",
        None if rng.random() < 0.1 else [],
        rollout=rng.randrange(3),
    )


def plain(files):
    """Faults of all files, rows that are left, and how many are set aside by reason.

    Args:
        files: names with their records.
    """
    first_of_id, first_of_question, faults, left = {}, {}, [], []
    set_aside = {}
    known = {row.question_id for row in ORACLE}
    for file, records in files:
        for line, row in enumerate(records, 1):
            place = f"{file}:{line}"
            found = []
            first, _ = first_of_id.setdefault(row.trajectory_id, (place, row))
            if first != place:
                found.append(
                    ("trajectory_id", "duplicate_id", "an id of its own",
                     f"{shown(row.trajectory_id)} again, first at {first}")
                )  # fmt: skip
            first, other = first_of_question.setdefault(row.question_id, (place, row))
            if other.question != row.question:
                expected = f"the text of this question at {first}, {shown(other.question)}"
                found.append(("question", "question_disagrees", expected, shown(row.question)))
            faults += [(file, line, *fault) for fault in found]
            reason = None
            if found:
                reason = "bad_row"
            elif row.citations is None or any(step.retrieved is None for step in row.steps):
                reason = "not_logged"
            elif row.question_id not in known:
                reason = "no_oracle"
            if reason is None:
                left.append(row)
            else:
                set_aside[reason] = set_aside.get(reason, 0) + 1
    left.sort(key=lambda row: (row.question_id, row.rollout, row.trajectory_id))
    return faults, left, set_aside


def told(faults):
    return [(f.file, f.line, f.field, f.code, f.expected, f.got) for f in faults]


def write(folder, kind, records):
    """A file of either format."""
    path = folder / kind
    if path.suffix == ".parquet":
        write_parquet(path, records, type(records[0]) if records else Trajectory)
    else:
        write_jsonl(path, records)
    return str(path)


@pytest.fixture
def check(tmp_path):
    corpus, oracle = (
        write(tmp_path, name, items) for name, items in (("c.jsonl", PASSAGES), ("o.jsonl", ORACLE))
    )

    def checked(files):
        """Load files of records and compare with the plain reading."""
        paths = [write(tmp_path, name, records) for name, records in files]
        named = [(path, records) for path, (_, records) in zip(paths, files, strict=True)]
        faults, left, set_aside = plain(named)
        pool = load_pool(paths, [corpus], [oracle], skip_bad_rows=True)
        assert told(pool.skipped) == faults
        assert all(fault.remedy for fault in pool.skipped)
        assert pool.set_aside == set_aside
        assert pool.records_of(pool.rows) == left
        asked = [pool.questions.ids.index(row.question_id) for row in left]
        assert pool.counts.tolist() == np.bincount(asked, minlength=len(ORACLE)).tolist()
        if faults:
            with pytest.raises(InputError) as caught:
                load_pool(paths, [corpus], [oracle])
            assert told(caught.value.faults) == faults
        return faults

    return checked


def drawn(seed):
    """Files with few or many clashes."""
    rng = random.Random(seed)
    ids, texts = rng.choice(((3, 1), (100, 1), (100, 2), (2, 2)))
    return [
        (f"{number}.{ending}", [record(rng, ids, texts) for _ in range(rng.choice((0, 1, 9, 17)))])
        for number, ending in enumerate(rng.choices(("jsonl", "parquet"), k=rng.randrange(1, 5)))
    ]


@pytest.mark.parametrize("most_rows", [1, 2, 5, 1 << 22])
@pytest.mark.parametrize("seed", range(12))
def test_clashes_are_those_of_a_plain_reading(seed, most_rows, check, monkeypatch):
    monkeypatch.setattr(clashes, "MOST_ROWS", most_rows)
    chunked = partial(logs.read_flat, batch_rows=random.Random(seed).choice((1, 4, 100)))
    monkeypatch.setattr(logs, "read_flat", chunked)
    check(drawn(seed))


def test_what_is_drawn_clashes_in_every_way():
    codes = [{fault[3] for fault in plain(drawn(seed))[0]} for seed in range(12)]
    assert set() in codes
    assert {"duplicate_id"} in codes
    assert {"duplicate_id", "question_disagrees"} in codes


def test_a_row_may_clash_twice_and_the_first_keeps_id_and_text(check):
    def row(name, question, text):
        return Trajectory(name, question, text, [], "x", [])

    # The third has the id of the first, and is the first that says another text of "Q"; it is no
    # row of the pool, but it was there before the fourth.
    faults = check(
        [
            ("a.jsonl", [row("a", "q", "text 1"), row("b", "q", "text 1")]),
            ("b.jsonl", [row("a", "Q", "text 2"), row("c", "Q", "text 3"), row("b", "q", "text")]),
        ]
    )
    assert [(line, field) for _, line, field, *_ in faults] == [
        (1, "trajectory_id"),
        (2, "question"),
        (3, "trajectory_id"),
        (3, "question"),
    ]


@pytest.mark.parametrize("bits", [0, 1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_ids_whose_hashes_are_equal_are_told_apart(seed, bits, check, monkeypatch):
    def crowded(strings):
        """Hashes that leave the ids a few values only; texts have theirs."""
        hashes = hash_strings(strings)
        is_text = pc.starts_with(plain_strings(strings), "text").to_numpy(zero_copy_only=False)
        few = hashes >> np.uint64(63) << np.uint64(64 - bits) if bits else hashes * np.uint64(0)
        return np.where(is_text, hashes, few)

    monkeypatch.setattr(encode, "hash_strings", crowded)
    monkeypatch.setattr(clashes, "MOST_ROWS", 1 << (10 * seed))
    check(drawn(seed))


def test_only_what_may_clash_is_read_again(tmp_path, monkeypatch):
    read = []
    again = load.read_records

    def watched(of, places):
        read.extend(places)
        return again(of, places)

    monkeypatch.setattr(load, "read_records", watched)
    rows = [Trajectory(f"t{at}", f"q{at % 9}", f"text {at % 9}", [], "x", []) for at in range(90)]
    oracle = [OracleRow(f"q{at}", [], []) for at in range(9)]
    pool_from_records(rows, PASSAGES, oracle)
    assert read == []
    with pytest.raises(InputError, match="trajectories:89"):
        pool_from_records([*rows[:88], rows[5], rows[89]], PASSAGES, oracle)
    assert sorted(read) == [(0, 6), (0, 89)]


def test_records_at_hand_clash_as_files_do():
    for seed in range(12):
        rows = [row for _, records in drawn(seed) for row in records]
        faults, left, set_aside = plain([("trajectories", rows)])
        if not faults:
            pool = pool_from_records(rows, PASSAGES, ORACLE)
            assert pool.records_of(pool.rows) == left
            assert pool.set_aside == set_aside
            continue
        with pytest.raises(InputError) as caught:
            pool_from_records(rows, PASSAGES, ORACLE)
        assert told(caught.value.faults) == faults
