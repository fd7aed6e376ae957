"""Repeated queries by whole columns against one row at a time."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from reference.text import query_key

from herald_jax.data.repeats import repeated

QUERIES = st.sampled_from(
    ["a b", "A  b ", "\ta\nb", "ab", "b a", "ba", "\uff41\u3000b", "a\u2028b", "a\x1cb", "é",
     "e\u0301", "É ", "ß", "ss", "SS", "", " ", "\u0130", "i\u0307"]
)  # fmt: skip
ROWS = st.lists(st.lists(st.tuples(QUERIES, st.booleans()), max_size=5), max_size=6)


@given(ROWS)
def test_repeats_are_those_of_the_keys(rows):
    queries = [query for row in rows for query, _ in row]
    asked = np.array([chosen for row in rows for _, chosen in row], bool)
    steps = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    keys = [[query_key(query) for query, chosen in row if chosen] for row in rows]
    found = repeated(pa.array(queries, pa.string()), asked, steps)
    assert found.tolist() == [len(set(row)) < len(row) for row in keys]


def test_an_anagram_is_no_repeat():
    steps = np.array([0, 2, 4])
    queries = pa.array(["listen", "silent", "no one", "On e no"])
    assert not repeated(queries, np.ones(4, bool), steps).any()
