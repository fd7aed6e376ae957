from functools import partial

import jax
import numpy as np
import pytest
import trajectory_strategies as strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.detectors import retrieved_ids
from trajectory_arrays import Row, Rows, Widths, encode

from herald_jax.kernels import offers, programs
from herald_jax.types import PAD

ROWS = 4
WIDTH = 8


@pytest.mark.parametrize("width", [0, 1, 3, 8, 11])
@given(ids=strategies.codes(8), data=st.data())
def test_compact_keeps_the_order(width, ids, data):
    ids = ids + [PAD] * (8 - len(ids))
    kept = data.draw(st.lists(st.booleans(), min_size=8, max_size=8))
    found = compact(np.array(ids, np.int32), np.array(kept), width=width).tolist()
    expected = [code for code, keep in zip(ids, kept, strict=True) if keep][:width]
    assert found == expected + [PAD] * (width - len(expected))


compact = jax.jit(offers.compact, static_argnames="width")


def offered(kernel, block, widths, width=WIDTH):
    """The names on offer to each trajectory, and what stands behind them."""
    visible, oracle, codes = encode(block, widths)
    found = np.asarray(
        programs.oracle_offers(visible, oracle, codes.passages, offers=kernel, width=width)
    )
    names = {codes.of(name): name for name in (*block.corpus, *strategies.FOREIGN)}
    names |= {codes.of(name): name for row in block.rows for name in row.gold["support_ids"]}
    names |= {codes.of(name): name for name in strategies.PASSAGES}
    lists = [[names[code] for code in column if code != PAD] for column in found.T.tolist()]
    for column, listed in zip(found.T, lists, strict=True):
        assert (column[len(listed) :] == PAD).all(), "PAD between ids on offer"
    return lists


def seen(row):
    return {*retrieved_ids(row.trajectory), *row.trajectory["citations"]}


def support(row, corpus):
    return row.gold["support_ids"]


def unretrieved_support(row, corpus):
    return [s for s in row.gold["support_ids"] if s in corpus and s not in seen(row)]


def unsupported(row, corpus):
    known = {*row.gold["support_ids"], *row.trajectory["citations"]}
    distinct = dict.fromkeys(retrieved_ids(row.trajectory))
    return [p for p in distinct if p in corpus and p not in known][:WIDTH]


def one_of_each_class(row, corpus):
    fresh = [p for p in sorted(corpus) if p not in seen(row)]
    gold = [p for p in fresh if p in row.gold["support_ids"]][:1]
    other = [p for p in fresh if p not in row.gold["support_ids"]][:1]
    return sorted(gold + other)


PLAIN = (support, unretrieved_support, unsupported, one_of_each_class)


@pytest.mark.parametrize("plain", PLAIN, ids=lambda plain: plain.__name__)
@given(block=strategies.blocks(ROWS))
def test_against_a_plain_reading(plain, block):
    found = offered(getattr(offers, plain.__name__), block, Widths())
    assert found == [plain(row, block.corpus) for row in block.rows]


@pytest.mark.parametrize("plain", [unsupported, one_of_each_class], ids=lambda p: p.__name__)
@settings(max_examples=40)
@given(block=strategies.blocks(ROWS, wide=True))
def test_where_much_was_retrieved(plain, block):
    found = offered(getattr(offers, plain.__name__), block, Widths(retrieved=96))
    assert found == [plain(row, block.corpus) for row in block.rows]


@pytest.mark.parametrize("plain", PLAIN, ids=lambda plain: plain.__name__)
@settings(max_examples=40)
@given(block=strategies.blocks(1))
def test_padding_is_offered_to_no_one(plain, block):
    kernel = getattr(offers, plain.__name__)
    wide = Widths(retrieved=29, citations=13, support=9)
    assert offered(kernel, block, Widths()) == offered(kernel, block, wide)


def test_a_corpus_used_up_has_nothing_on_offer():
    corpus = ("a", "b", "c")
    step = {"query": "x", "retrieved": ["a", "c", "zz"], "valid": True}
    trajectory = {
        "steps": [step],
        "citations": ["b"],
        "answer": "x",
        "malformed_citations": 0,
    }
    row = Row(trajectory, {"answers": [], "support_ids": ["b", "elsewhere"]})
    empty = partial(offered, block=Rows(corpus, (row,)), widths=Widths())
    assert empty(offers.one_of_each_class) == [[]]
    assert empty(offers.unretrieved_support) == [[]]
