"""Draws must be the same on every platform and Python version, and fair."""

import hashlib
from collections import Counter

import pytest

from herald_jax.world.streams import Stream


def plain_splitmix64(state: int):
    """The published algorithm, one output at a time."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        yield z ^ (z >> 31)


def test_published_outputs_of_splitmix64():
    # First outputs for seed 1234567, as published with the algorithm's test vectors.
    stream = Stream()
    stream._state = 1234567
    assert [stream.bits() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_state_is_the_digest_of_the_labels():
    digest = hashlib.sha256(b'[7, "county"]').digest()
    expected = plain_splitmix64(int.from_bytes(digest[:8], "big"))
    stream = Stream(7, "county")
    assert [stream.bits() for _ in range(5)] == [next(expected) for _ in range(5)]


def test_labels_that_read_alike_name_different_streams():
    names = [(1, 2), (12,), ("1", "2"), ("1", 2), ("1, 2",), ('1", "2',)]
    assert len({Stream(*labels).bits() for labels in names}) == len(names)


def test_below_is_uniform():
    stream = Stream("uniform")
    counts = Counter(stream.below(7) for _ in range(14_000))
    assert sorted(counts) == list(range(7))
    # Six degrees of freedom: a chi-square above 22.5 has probability 0.001.
    assert sum((count - 2000) ** 2 / 2000 for count in counts.values()) < 22.5


def test_below_draws_again_past_the_last_whole_multiple():
    # With n = 2**63 + 1 only one multiple fits: every accepted draw is the 64 bits themselves.
    n = 2**63 + 1
    raw, stream = Stream("large"), Stream("large")
    accepted = next(bits for bits in iter(raw.bits, None) if bits < n)
    assert stream.below(n) == accepted


def test_sample_holds_distinct_positions_of_all_orders():
    stream = Stream("sample")
    orders = Counter(tuple(stream.sample("abc", 2)) for _ in range(6000))
    assert len(orders) == 6
    assert all(850 < count < 1150 for count in orders.values())
    assert sorted(stream.shuffled(range(50))) == list(range(50))


def test_weighted_follows_the_weights():
    stream = Stream("weights")
    counts = Counter(stream.weighted({"a": 1, "none": 0, "b": 3}) for _ in range(4000))
    assert set(counts) == {"a", "b"}
    assert 2850 < counts["b"] < 3150


def test_impossible_draws_are_refused():
    with pytest.raises(ValueError, match="positive bound"):
        Stream("x").below(0)
    with pytest.raises(ValueError, match="cannot sample 3 of 2"):
        Stream("x").sample("ab", 3)
