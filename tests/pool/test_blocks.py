"""Blocks of rows: padding is neutral, every row holds what its record holds."""

import dataclasses

import numpy as np
import pytest
from data_strategies import oracle_rows, passages, trajectories
from hypothesis import given
from hypothesis import strategies as st
from pool_blocks import oracle_of, visible_of, widths_of

from herald_jax.data.blocks import Widths, group_blocks
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory
from herald_jax.pool.load import pool_from_records
from herald_jax.types import NO_ANSWER, PAD, Oracle, Visible


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
    widths = widths_of(pool)
    assert widths == Widths(retrieved=2, citations=1, support=2)
    visible = visible_of(pool, rows, widths)
    x = pool.rows.retrieved[0][1]
    assert x >= len(pool.ids)  # no id that anybody knows
    assert visible.retrieved.tolist() == [[PAD, PAD, 0], [PAD, PAD, x]]
    assert visible.citations.tolist() == [[PAD, PAD, 1]]
    assert visible.searches.tolist() == [0, 0, 1]
    assert visible.invalid.tolist() == [0, 0, 1]
    assert visible.repeated.tolist() == [False, False, False]
    assert visible.answer_tokens.tolist() == [NO_ANSWER, NO_ANSWER, 2]
    assert visible.malformed.tolist() == [3, 0, 0]
    oracle = oracle_of(pool, rows, widths)
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
    for side in (visible_of, oracle_of):
        block = side(pool, rows)
        assert isinstance(block, Visible | Oracle)
        for field in dataclasses.fields(block):
            kinds = (np.int32, np.bool_, np.float32)
            assert getattr(block, field.name).dtype in kinds, field.name


def test_gold_never_enters_the_visible_side():
    pool = small_pool()
    rows = np.array([0, 1], np.int32)
    other = pool_from_records(
        pool.records_of(pool.rows),
        pool.passages,
        [OracleRow("q1", ["z"], ["p1"]), OracleRow("q2", [], [])],
    )
    ours = visible_of(pool, rows)
    theirs = visible_of(other, rows)
    for field in dataclasses.fields(Visible):
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        if field.name in ("retrieved", "citations"):  # codes outside the corpus depend on the table
            a, b = np.minimum(a, 2), np.minimum(b, 2)
        np.testing.assert_array_equal(a, b)


def test_rows_out_of_range_are_refused():
    pool = small_pool()
    for row in (-2, 2):
        for side in (visible_of, oracle_of):
            with pytest.raises(IndexError, match="rows must be"):
                side(pool, np.array([row], np.int32), widths_of(pool))


def test_lists_that_do_not_fit_are_refused():
    pool = small_pool()
    rows = np.array([0], np.int32)
    for name, side in (
        ("retrieved", visible_of),
        ("citations", visible_of),
        ("support", oracle_of),
    ):
        with pytest.raises(ValueError, match="does not fit"):
            side(pool, rows, dataclasses.replace(widths_of(pool), **{name: 0}))


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
    left = pool.records_of(pool.rows)
    golds = {row.question_id: row for row in labels}
    seen = []
    for block in group_blocks(pool.rows.question, block_rows):
        visible, oracle = visible_of(pool, block.rows), oracle_of(pool, block.rows)
        for column, row in enumerate(block.rows.tolist()):
            retrieved, cited, support = (
                [code for code in codes[:, column].tolist() if code != PAD]
                for codes in (visible.retrieved, visible.citations, oracle.support)
            )
            if row == PAD:
                assert not retrieved and not cited and not support
                continue
            record, label = left[row], golds[left[row].question_id]
            seen.append(record.trajectory_id)
            returned = [name for step in record.steps if step.executed for name in step.retrieved]
            same_ids(pool, retrieved + cited, returned + record.citations)
            assert len(cited) == len(record.citations)
            assert [pool.ids.decode(code) for code in support] == list(
                dict.fromkeys(label.support_ids)
            )
            assert oracle.is_gold[column] == (record.answer in label.answers[:1])
    assert sorted(seen) == sorted(record.trajectory_id for record in left)


def same_ids(pool, codes, names):
    """Codes stand for names: those of the table for their own, others for one name each."""
    assert len(codes) == len(names)
    strangers = {}
    for code, name in zip(codes, names, strict=True):
        if code < len(pool.ids):
            assert pool.ids.decode(code) == name
        else:
            assert name not in pool.ids
            assert strangers.setdefault(code, name) == name
    assert len(set(strangers.values())) == len(strangers)
