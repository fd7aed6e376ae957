"""Id tables: ranks, first sight, exactness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.ids import IdTable

IDS = st.text(max_size=4)


@given(st.lists(IDS, unique=True), st.lists(IDS))
def test_codes(corpus, names):
    table = IdTable(corpus)
    codes = table.encode(names)
    assert codes.dtype == np.int32
    ranks = {name: rank for rank, name in enumerate(sorted(corpus))}
    others = list(dict.fromkeys(name for name in names if name not in ranks))
    expected = [
        ranks[name] if name in ranks else len(corpus) + others.index(name) for name in names
    ]
    assert codes.tolist() == expected
    assert [table.decode(code) for code in codes] == names
    assert len(table) == len(corpus) + len(others)
    assert table.corpus_size == len(corpus)


def test_code_points_order_the_corpus_whatever_the_order_of_the_file():
    # U+1F30A is after U+FFFD as a code point, before it in UTF-16.
    names = ["\ufffd", "\U0001f30a", "a", "Z", "10", "9"]
    assert IdTable(names).encode(["10", "9", "Z", "a", "\ufffd", "\U0001f30a"]).tolist() == [
        0,
        1,
        2,
        3,
        4,
        5,
    ]
    assert IdTable(reversed(names)).encode(names).tolist() == IdTable(names).encode(names).tolist()


def test_ids_compare_exactly():
    table = IdTable(["7", "p2"])
    assert (table.encode(["007", " 7", "P2", "7.0", "p2\u200b"]) >= 2).all()
    assert "7" in table
    assert "70" not in table


def test_no_code_no_id():
    table = IdTable(["a"])
    for code in (-1, 1):
        with pytest.raises(IndexError):
            table.decode(code)


def test_codes_stay_after_decoding():
    table = IdTable(["a"])
    assert table.encode(["x"]).tolist() == [1]
    assert table.decode(1) == "x"
    assert table.encode(["y", "x"]).tolist() == [2, 1]
    assert table.decode(2) == "y"


def test_repeated_passages_are_refused():
    with pytest.raises(ValueError, match="distinct"):
        IdTable(["a", "a"])
