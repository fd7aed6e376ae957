"""Rows: whatever is done with them, every row keeps its fields, its name and its lists."""

import random

import numpy as np
import pytest
from pool_rows import draw, made, read

from herald_jax.pool.rows import ROW, joined, unpacked
from herald_jax.pool.store import Folder, Memory
from herald_jax.pool.wire import from_bytes, to_bytes


def packed_in(store, rows):
    store.put("rows", "key", rows.packed(), {})
    return store.get("rows", "key")


def test_rows_hold_what_they_were_made_of():
    rows = draw(random.Random(0), 30)
    assert read(made(rows)) == rows
    assert made(rows).question.tolist() == [row["question"] for row in rows]


@pytest.mark.parametrize("seed", range(10))
def test_take(seed):
    rng = random.Random(seed)
    rows = draw(rng, rng.randrange(1, 9))
    for kind in (np.int32, np.int64):
        chosen = [rng.randrange(len(rows)) for _ in range(rng.randrange(12))]
        taken = made(rows).take(np.array(chosen, kind))
        assert read(taken) == [rows[at] for at in chosen]
        # What was taken can be taken from again.
        again = taken.take(np.arange(len(chosen))[::-1])
        assert read(again) == [rows[at] for at in reversed(chosen)]


@pytest.mark.parametrize("seed", range(10))
def test_joined(seed):
    rng = random.Random(seed)
    parts = [draw(rng, rng.choice((0, 0, 1, 4))) for _ in range(rng.randrange(5))]
    assert read(joined([made(part) for part in parts])) == [row for part in parts for row in part]


@pytest.mark.parametrize("seed", range(10))
def test_packed_rows_come_back_in_any_stretch(seed, tmp_path):
    rng = random.Random(seed)
    rows = draw(rng, rng.choice((0, 1, 2, 9)))
    # Packed after having been joined and taken from, so that no buffer begins at its beginning.
    whole = joined([made(draw(rng, 3)), made(rows), made(draw(rng, 2))])
    whole = whole.take(np.arange(3, 3 + len(rows)))
    before = read(whole)
    for store in (Memory(), Folder(tmp_path, pytest.fail)):
        entry = packed_in(store, whole)
        for first in range(len(rows) + 1):
            for last in range(first, len(rows) + 1):
                assert read(unpacked(entry, first, last)) == rows[first:last]
                again = packed_in(Memory(), unpacked(entry, first, last))
                assert read(unpacked(again, 0, last - first)) == rows[first:last]
    assert read(whole) == before  # packing leaves the rows alone


@pytest.mark.parametrize(
    "stretches", [[(0, 5), (0, 0), (0, 1), (0, 7)], [(5, 5), (0, 0), (1, 1), (3, 7)]]
)
def test_stretches_of_several_chunks_are_joined(stretches):
    rng = random.Random(3)
    chunks = [draw(rng, n) for n in (5, 0, 1, 7)]
    parts, expected = [], []
    for chunk, (first, last) in zip(chunks, stretches, strict=True):
        parts.append(unpacked(packed_in(Memory(), made(chunk)), first, last))
        expected += chunk[first:last]
    assert read(joined(parts)) == expected


def test_packed_rows_travel_as_bytes():
    rows = draw(random.Random(4), 6)
    for sent in (rows, []):
        store = Memory()
        store.put("rows", "", from_bytes(to_bytes(made(sent).packed())), {})
        entry = store.get("rows", "")
        assert read(unpacked(entry, 0, len(entry.read("rows").view(ROW)))) == sent
    assert from_bytes(b"") == {}


@pytest.mark.parametrize("seed", range(30))
def test_sorted_is_pythons_order(seed):
    rng = random.Random(seed)
    rows = draw(rng, rng.choice((0, 1, 2, 5, 60)), questions=rng.choice((1, 3, 50)), rollouts=3)
    if seed % 3 == 0:
        rows.sort(key=lambda row: (row["question"], row["rollout"], row.name))

    def key(row):
        return row["question"], row["rollout"], row.name  # strings compare by code points

    found = read(made(rows).sorted())
    assert found == sorted(rows, key=key)  # rows of one key, too, stay in their order


def test_rows_without_ties_need_no_names():
    rng = random.Random(5)
    rows = draw(rng, 9, questions=3)
    rows = list({(row["question"], row["rollout"]): row for row in rows}.values())
    found = read(made(rows).sorted())
    assert found == sorted(rows, key=lambda row: (row["question"], row["rollout"]))
