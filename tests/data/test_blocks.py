"""Blocks: shapes are few, padding is neutral, no question is divided, no row is lost."""

import dataclasses

import numpy as np
import pytest
from data_strategies import oracle_rows, passages, trajectories
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.blocks import (
    Widths,
    block_widths,
    bucket,
    group_blocks,
    oracle_block,
    visible_block,
)
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory
from herald_jax.pool.load import pool_from_records
from herald_jax.types import NO_ANSWER, PAD, Oracle, Visible


@given(st.integers(0, 10**6), st.lists(st.integers(1, 100), min_size=1))
def test_bucket(n, buckets):
    size = bucket(n, buckets)
    assert size >= n
    if n <= max(buckets):
        assert size == min(b for b in buckets if b >= n)
    else:
        assert size & (size - 1) == 0
        assert size < 2 * n


@pytest.mark.parametrize(("n", "buckets"), [(-1, [4]), (3, [])])
def test_no_bucket(n, buckets):
    with pytest.raises(ValueError, match="size"):
        bucket(n, buckets)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 20)), max_size=12),
    st.sampled_from([1, 2, 4, 8]),
)
def test_group_blocks(runs, block_rows):
    # Question numbers need not be dense.
    question = np.repeat(np.cumsum([gap for gap, _ in runs]), [n for _, n in runs]).astype(np.int32)
    blocks = group_blocks(question, block_rows)
    rows = np.concatenate([block.rows for block in blocks]) if blocks else np.empty(0, np.int32)
    assert sorted(rows[rows != PAD]) == list(range(len(question)))
    for block in blocks:
        assert block.rows.dtype == block.groups.dtype == np.int32
        assert len(block.rows) == max(block_rows, block.width) == len(block.groups) * block.width
        real = block.groups[block.groups != PAD]
        assert real.tolist() == sorted(set(real.tolist()))
        assert (block.groups[len(real) :] == PAD).all()
        for group, number in enumerate(block.groups):
            inside = block.rows[group * block.width : (group + 1) * block.width]
            members = np.flatnonzero(question == number) if number != PAD else []
            assert inside.tolist() == list(members) + [PAD] * (block.width - len(members))
            assert number == PAD or block.width < 2 * len(members)
    shapes = {(len(block.rows), block.width) for block in blocks}
    assert len(shapes) <= 6  # widths 1 to 32, whatever the data


def test_group_blocks_refuses_what_it_cannot_cut():
    with pytest.raises(ValueError, match="sorted"):
        group_blocks(np.array([1, 0], np.int32), 4)
    with pytest.raises(ValueError, match="at least one row"):
        group_blocks(np.array([0], np.int32), 0)


def small_pool():
    return pool_from_records(
        [
            Trajectory("a", "q1", "?", [Step("s", ["p1", "x"]), Step("")], "two words", ["p2"]),
            Trajectory("b", "q2", "??", [], None, [], malformed_citations=3),
        ],
        [Passage("p2", ""), Passage("p1", "")],
        [OracleRow("q1", ["words", "two words"], ["p2", "p2", "y"]), OracleRow("q2", [], [])],
    )


def test_blocks_by_hand():
    pool = small_pool()
    rows = np.array([1, PAD, 0], np.int32)
    widths = block_widths(pool)
    assert widths == Widths(retrieved=2, citations=1, support=2)
    visible = visible_block(pool, rows, widths)
    x = pool.ids.encode(["x"])[0]
    assert visible.retrieved.tolist() == [[PAD, PAD, 0], [PAD, PAD, x]]
    assert visible.citations.tolist() == [[PAD, PAD, 1]]
    assert visible.searches.tolist() == [0, 0, 1]
    assert visible.invalid.tolist() == [0, 0, 1]
    assert visible.repeated.tolist() == [False, False, False]
    assert visible.answer_tokens.tolist() == [NO_ANSWER, NO_ANSWER, 2]
    assert visible.malformed.tolist() == [3, 0, 0]
    oracle = oracle_block(pool, rows, widths)
    y = pool.ids.encode(["y"])[0]
    assert oracle.support.tolist() == [[PAD, PAD, 1], [PAD, PAD, y]]
    assert oracle.em.tolist() == [0, 0, 1]
    assert oracle.f1.tolist() == [0, 0, 1]
    # The first gold is "words"; against itself it scores 1.
    np.testing.assert_array_equal(oracle.gold_em, [np.nan, np.nan, 1])
    np.testing.assert_array_equal(oracle.gold_f1, [np.nan, np.nan, 1])
    assert oracle.gold_tokens.tolist() == [NO_ANSWER, NO_ANSWER, 1]
    assert oracle.is_gold.tolist() == [False, False, False]


def test_types_are_those_of_the_kernels():
    pool = small_pool()
    rows = np.array([0], np.int32)
    for side in (visible_block, oracle_block):
        block = side(pool, rows, block_widths(pool))
        assert isinstance(block, Visible | Oracle)
        for field in dataclasses.fields(block):
            kinds = (np.int32, np.bool_, np.float32)
            assert getattr(block, field.name).dtype in kinds, field.name


def test_gold_never_enters_the_visible_side():
    pool = small_pool()
    rows = np.array([0, 1], np.int32)
    other = pool_from_records(
        pool.rows.records, pool.passages, [OracleRow("q1", ["z"], ["p1"]), OracleRow("q2", [], [])]
    )
    ours = visible_block(pool, rows, block_widths(pool))
    theirs = visible_block(other, rows, block_widths(pool))
    for field in dataclasses.fields(Visible):
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        if field.name in ("retrieved", "citations"):  # codes outside the corpus depend on the table
            a, b = np.minimum(a, 2), np.minimum(b, 2)
        np.testing.assert_array_equal(a, b)


def test_rows_out_of_range_are_refused():
    pool = small_pool()
    for row in (-2, 2):
        for side in (visible_block, oracle_block):
            with pytest.raises(IndexError):
                side(pool, np.array([row], np.int32), block_widths(pool))


@given(
    st.lists(trajectories(), max_size=8, unique_by=lambda t: t.trajectory_id),
    st.lists(passages(), max_size=6, unique_by=lambda p: p.passage_id),
    st.lists(oracle_rows(), max_size=6, unique_by=lambda o: o.question_id),
    st.sampled_from([1, 2, 4]),
)
def test_padded_blocks_hold_what_the_rows_hold(records, corpus, labels, block_rows):
    for record in records:
        record.question = record.question_id
    for row in labels:
        row.nodes = []
    pool = pool_from_records(records, corpus, labels)
    seen = []
    for block in group_blocks(pool.rows.question, block_rows):
        visible = visible_block(pool, block.rows, block_widths(pool, block.rows))
        oracle = oracle_block(pool, block.rows, block_widths(pool, block.rows))
        for column, row in enumerate(block.rows):
            cited = [pool.ids.decode(c) for c in visible.citations[:, column] if c != PAD]
            support = [pool.ids.decode(c) for c in oracle.support[:, column] if c != PAD]
            if row == PAD:
                assert not cited and not support
            else:
                record = pool.rows.records[row]
                seen.append(record.trajectory_id)
                assert cited == record.citations
                label = pool.oracle[pool.rows.question[row]]
                assert label.question_id == record.question_id
                assert support == list(dict.fromkeys(label.support_ids))
                assert oracle.is_gold[column] == (record.answer in label.answers[:1])
    assert sorted(seen) == sorted(record.trajectory_id for record in pool.rows.records)
