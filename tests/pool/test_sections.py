"""Sections: every row once, in order, whatever the files, the chunks and the cuts."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool_rows import PLAIN, Row, draw, made, read

from herald_jax.pool.ingest import FileRows, FileSummary, Longest
from herald_jax.pool.peers import Alone
from herald_jax.pool.sections import Names, Sections, cut
from herald_jax.pool.store import Folder, Memory

COUNTS = st.lists(st.integers(0, 3) | st.integers(0, 40), max_size=30)


def places_of(count: int) -> int:
    """Rows of a question as its group is padded: the next power of two, none for none."""
    size = 1
    while size < count:
        size *= 2
    return size if count else 0


@given(COUNTS, st.integers(1, 70))
def test_no_question_is_lost_and_none_is_divided(counts, rows):
    bounds = cut(np.array(counts, np.int64), rows).tolist()
    assert bounds[0] == 0 and bounds[-1] == len(counts)
    sizes = [sum(map(places_of, counts[a:b])) for a, b in pairwise(bounds)]
    for (first, last), size in zip(pairwise(bounds), sizes, strict=True):
        assert first < last
        # A section fits, or is a single question that does not.
        assert size <= rows or last == first + 1  # a question that does not fit is alone
        # It could not have taken the next question in.
        assert last == len(counts) or size + places_of(counts[last]) > rows


@pytest.mark.parametrize(
    ("counts", "rows", "bounds"),
    [
        ([], 8, [0]),
        ([0], 8, [0, 1]),
        ([0, 0, 0], 1, [0, 3]),
        ([8, 8], 8, [0, 1, 2]),
        ([9, 1], 8, [0, 1, 2]),  # nine take sixteen places
        ([1, 9, 0, 1], 8, [0, 1, 2, 4]),
        ([3, 3, 3], 8, [0, 2, 3]),
        ([1] * 8, 8, [0, 8]),
    ],
)
def test_where_it_is_cut(counts, rows, bounds):
    assert cut(np.array(counts, np.int64), rows).tolist() == bounds


MODELS = ("", "M", "m", "\U0001f427", "\uffee")


def stored(store, chunks: list[list[Row]], number: int, rng: random.Random) -> FileRows:
    """A file whose chunks hold these rows; names of models and pools are each chunk's own."""
    entries, models, pools = [], [], []
    for at, chunk in enumerate(chunks):
        rows = made(sorted(chunk, key=lambda row: row["question"]))
        for field, of_chunks in (("model", models), ("pool", pools)):
            known = rng.sample(MODELS, len(MODELS))
            # `draw` has numbers: they are those of MODELS, whatever a chunk calls them.
            numbers = [known.index(MODELS[n % len(MODELS)]) for n in rows.table[field].tolist()]
            rows.table[field] = numbers
            of_chunks.append(known)
        rows.table["file"] = number
        arrays = rows.packed() | {"question": np.ascontiguousarray(rows.question)}
        store.put(f"rows-{number}-{at}", "", arrays, {})
        entries.append(store.get(f"rows-{number}-{at}", ""))
    summary = FileSummary(
        f"{number}", None, 0, 0, [], len(chunks), models, pools, Longest(), {}, []
    )
    return FileRows(number, summary, entries)


def key(row: Row):
    return row["question"], row["rollout"], row.name


@pytest.mark.parametrize("seed", range(20))
def test_sections_give_back_all_rows_once(seed, tmp_path):
    rng = random.Random(seed)
    questions = rng.choice((1, 6, 20))
    store = Folder(tmp_path, pytest.fail) if seed % 2 else Memory()
    files, expected, left_out = [], [], set()
    line = 0
    for number in range(rng.randrange(4)):
        chunks = []
        for _ in range(rng.randrange(4)):
            chunk = []
            for row in draw(rng, rng.choice((0, 1, 12)), questions):
                line += 1
                fields = dict(zip(PLAIN, row.fields, strict=True))
                fields |= {"line": line, "file": number}
                row = Row(tuple(fields.values()), f"{row.name}-{line}", row.lists)
                chunk.append(row)
                if seed % 3 == 0 and rng.random() < 0.2:
                    left_out.add((number, line))
                else:
                    expected.append(row)
            chunks.append(chunk)
        files.append(stored(store, chunks, number, rng))
    expected.sort(key=key)
    counts = np.zeros(questions, np.int64)
    for row in expected:
        counts[row["question"]] += 1

    names = Names.union([MODELS, MODELS[:2]])
    assert names.all == tuple(sorted(MODELS))
    for rows in (1, 7, 64, 10**6):
        bounds = cut(counts, rows)
        sections = Sections(files, bounds, counts, names, names, frozenset(left_out), Alone())
        assert len(sections) == len(bounds) - 1
        found, numbers = [], []
        for at in range(len(sections)):
            section = sections.load(at)
            assert (section.first, section.last) == tuple(bounds[at : at + 2].tolist())
            assert len(section.rows) == len(section.numbers) == sections.rows(at)
            assert all(section.first <= q < section.last for q in section.rows.question)
            found += read(section.rows)
            numbers += section.numbers.tolist()
        assert numbers == list(range(len(expected)))
        assert [row.name for row in found] == [row.name for row in expected]
        for row, wanted in zip(found, expected, strict=True):
            assert row.lists == wanted.lists
            for field in PLAIN:
                if field in ("model", "pool"):
                    assert names.all[row[field]] == MODELS[wanted[field] % len(MODELS)]
                else:
                    assert row[field] == wanted[field], field
