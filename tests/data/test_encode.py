"""Chunks against the plain reading of records, whatever the rows came from."""

import json

import pytest
from chunks import Audit, assert_same, check
from data_strategies import IDS, oracle_rows, trajectories
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import hostile

from herald_jax.data.encode import encode
from herald_jax.data.flat import Flat
from herald_jax.data.flat_files import read_flat
from herald_jax.data.jsonl import read_jsonl, write_jsonl
from herald_jax.data.parquet import write_parquet
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory

AUDITS = st.builds(
    Audit,
    st.lists(IDS, unique=True),
    st.lists(oracle_rows(), unique_by=lambda row: row.question_id, max_size=6),
    st.sampled_from(["unicode", "squad"]),
    st.booleans(),
)
ORACLE = [OracleRow("q", ["Oslo"], ["p2", "elsewhere"])]


def files(folder, records):
    """The records as JSON Lines and as Parquet."""
    write_jsonl(folder / "rows.jsonl", records)
    write_parquet(folder / "rows.parquet", records, Trajectory)
    return [folder / "rows.jsonl", folder / "rows.parquet"]


@given(st.lists(trajectories(), max_size=8), AUDITS, st.integers(1, 5))
@settings(max_examples=200)
def test_chunks_are_the_plain_reading(tmp_path_factory, records, audit, batch_rows):
    lines = list(range(1, len(records) + 1))
    whole = check(Flat.of_records(records, lines), audit, records, lines)
    for path in files(tmp_path_factory.mktemp("rows"), records):
        (batch,) = read_flat(path) if records else [None]
        if batch is not None:
            assert_same(audit.encoder.encode(batch.flat)[0], whole)
        done = 0
        for batch in read_flat(path, batch_rows=batch_rows):
            assert batch.faults == []
            part = slice(done, done + batch.rows)
            check(batch.flat, audit, records[part], lines[part])
            done = part.stop
        assert done == len(records)


@pytest.mark.parametrize("seed", range(len(hostile.SHAPES)))
def test_hostile_pools(tmp_path, seed):
    made = hostile.pool(seed)
    loaded = []
    for rows, kind in zip(made, (Trajectory, Passage, OracleRow), strict=True):
        path = tmp_path / f"{kind.__name__}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        loaded.append([r for batch in read_jsonl(path, kind) for r in batch.records])
    records, passages, oracle = loaded
    for rules in ("unicode", "squad"):
        audit = Audit([passage.passage_id for passage in passages], oracle, rules)
        for path in (tmp_path / "Trajectory.jsonl", *files(tmp_path, records)):
            flats = [batch.flat for batch in read_flat(path, batch_rows=7)]
            assert sum(map(len, flats)) == len(records)
            for flat in flats:
                part = slice(flat.line[0] - 1, flat.line[-1])
                check(flat, audit, records[part], flat.line.tolist())


def test_nothing_at_all():
    audit = Audit([], [])
    chunk = check(Flat.of_records([], []), audit, [], [])
    assert len(chunk) == 0
    assert_same(
        encode(
            Flat.of_records([], []),
            audit.ids,
            audit.questions,
            rules="unicode",
            assume_no_citations=False,
        ),
        chunk,
    )


def test_odd_characters_in_ids():
    names = ["p\x00", "p", "\x00p", "\U0001f427", "é", "e\u0301", "", " "]
    records = [
        Trajectory(f"t\x00{at}", "q", "?", [Step("a", names)], "Oslo\x00", [name, name + "\x00"])
        for at, name in enumerate(names)
    ]
    audit = Audit(names[:5], ORACLE)
    check(Flat.of_records(records, range(5, 13)), audit, records, range(5, 13))


def test_the_table_of_ids_does_not_grow():
    audit = Audit(["p1"], ORACLE)
    before = audit.ids.names
    record = Trajectory("t", "q", "?", [Step("a", ["x", "elsewhere"])], "", ["y", "x"])
    chunk = check(Flat.of_records([record], [9]), audit, [record], [9])
    assert audit.ids.names == before == ["p1", "p2", "elsewhere"]
    assert chunk.retrieved.values.tolist() == [3, 2]
    assert chunk.citations.values.tolist() == [4, 3]
