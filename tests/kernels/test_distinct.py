from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.kernels.distinct import SAMPLE, few_distinct, few_pairs

VALUES = st.lists(st.sampled_from([-1.5, -0.0, 0.0, 0.1, 2.0, 1e300]), min_size=1, max_size=40)


@given(VALUES)
def test_values_and_frequencies(values):
    found, times = few_distinct(np.array(values), 6)
    assert dict(zip(found.tolist(), times.tolist(), strict=True)) == Counter(values)
    assert found.tolist() == sorted(set(values))


@given(VALUES, st.data())
def test_pairs_and_frequencies(values, data):
    weights = data.draw(st.lists(st.sampled_from([1.0, 3.0]), min_size=len(values), max_size=40))
    values = values[: len(weights)]
    weights = weights[: len(values)]
    value, weight, times = few_pairs(np.array(values), np.array(weights), 12)
    pairs = list(zip(value.tolist(), weight.tolist(), strict=True))
    assert dict(zip(pairs, times.tolist(), strict=True)) == Counter(
        zip(values, weights, strict=True)
    )
    assert pairs == sorted(pairs)


@pytest.mark.parametrize("n", [20, SAMPLE, 5 * SAMPLE + 3])
def test_more_than_the_most_is_none(n):
    values = np.arange(n) % 9.0
    assert few_distinct(values, 8) is None
    assert len(few_distinct(values, 9)[0]) == 9
    values[1] = -1.0  # not in a sample of every fifth
    assert few_distinct(values, 9) is None
    weights = 1.0 + np.arange(n) % 2
    assert few_pairs(values, weights, 9) is None
    assert few_pairs(np.arange(n) % 4.0, 1.0 + np.arange(n) // 4 % 2, 7) is None
