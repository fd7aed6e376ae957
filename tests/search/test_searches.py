"""Searches of many rows, each once, against the rows one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herald_jax.data.ragged import Ragged
from herald_jax.search.searches import distinct_searches

N = 5


@st.composite
def rows(draw):
    terms = st.lists(st.integers(0, 2), max_size=3)
    codes = st.lists(st.integers(-2, N + 2), max_size=4)
    return draw(st.lists(st.tuples(terms, codes), max_size=12))


def expected_of(terms, codes):
    return tuple(terms), tuple(sorted({code for code in codes if 0 <= code < N}))


@settings(deadline=None, max_examples=300)
@given(rows())
def test_every_row_finds_its_search_and_no_search_is_twice(rows):
    terms = Ragged.of_lists([terms for terms, _ in rows])
    exclude = Ragged.of_lists([codes for _, codes in rows])
    searches, which = distinct_searches(terms, exclude, N)
    found = [tuple(tuple(part.tolist()) for part in searches[i]) for i in range(len(searches))]
    expected = [expected_of(*row) for row in rows]
    assert [found[i] for i in which.tolist()] == expected
    assert sorted(found) == sorted(set(expected))


@settings(deadline=None, max_examples=100)
@given(rows())
def test_nothing_excluded(rows):
    lists = [terms for terms, _ in rows]
    searches, which = distinct_searches(Ragged.of_lists(lists), None, N)
    found = [searches[i] for i in which.tolist()]
    assert [(terms.tolist(), codes.tolist()) for terms, codes in found] == [(t, []) for t in lists]
    assert len(searches) == len({tuple(terms) for terms in lists})


def test_a_corpus_without_passages_excludes_nothing():
    searches, which = distinct_searches(Ragged.of_lists([[], []]), Ragged.of_lists([[0], [1]]), 0)
    assert (len(searches), which.tolist()) == (1, [0, 0])
    assert searches[0][1].tolist() == []


def test_a_part_of_the_searches():
    terms = Ragged.of_lists([[1], [2], [1]])
    searches, which = distinct_searches(terms, Ragged.of_lists([[0], [1], [2]]), N)
    part = searches.take(which[[2, 0]])
    assert [tuple(x.tolist() for x in part[i]) for i in (0, 1)] == [([1], [2]), ([1], [0])]


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="2 queries but 1"):
        distinct_searches(Ragged.of_lists([[1], [2]]), Ragged.of_lists([[0]]), N)


def test_many_rows_with_large_codes():
    """Rows and codes are told apart in 64 bits."""
    n = 200_000
    exclude = Ragged.of_lengths(np.arange(n, dtype=np.int32)[::-1].copy(), np.ones(n, np.int64))
    searches, which = distinct_searches(
        Ragged.of_lengths(np.zeros(n, np.int32), [1] * n), exclude, n
    )
    assert len(searches) == n
    for row in (0, 1, n // 2, n - 1):
        assert searches[int(which[row])][1].tolist() == [n - 1 - row]
