"""Hashes of strings: what they depend on, what they do not, and that they stay what they are."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.hashes import hash_strings

TEXTS = st.lists(
    st.one_of(st.none(), st.text(max_size=12), st.text("a\x00", min_size=250, max_size=260)),
    max_size=20,
)


@given(TEXTS, st.integers(0, 3), st.integers(0, 3))
def test_only_the_characters_count(texts, before, behind):
    whole = hash_strings(pa.array(texts, pa.string()))
    assert whole.dtype == np.uint64 and whole.shape == (len(texts),)
    one_by_one = [hash_strings(pa.array([text], pa.string()))[0] for text in texts]
    assert whole.tolist() == one_by_one
    padded = pa.array(["x"] * before + texts + ["yz"] * behind, pa.string())
    for strings in (
        pa.array(texts, pa.large_string()),
        padded.slice(before, len(texts)),
        padded.dictionary_encode().slice(before, len(texts)),
    ):
        assert hash_strings(strings).tolist() == whole.tolist()
    known = {}
    for text, value in zip(texts, whole.tolist(), strict=True):
        assert known.setdefault(text, value) == value
    assert len(set(known.values())) == len(known)


def test_near_strings_are_told_apart():
    near = ["", "\x00", "\x00\x00", "a", "a\x00", "\x00a", "a" * 8, "a" * 9, "a" * 16, None]
    near += [f"{'a' * n}{c}" for n in range(6, 20) for c in "bc"]
    near += ["a" * n for n in range(250, 270)]
    assert len(set(hash_strings(pa.array(near)).tolist())) == len(near)


def test_no_two_of_a_million_agree_in_any_half():
    # 2**20 random 32-bit values make 2**39 / 2**32 = 128 pairs that agree, give or take 11.
    hashes = hash_strings(pa.array([f"row-{n}" for n in range(1 << 20)]))
    assert len(np.unique(hashes)) == 1 << 20
    for half in (hashes >> np.uint64(32), hashes & np.uint64(0xFFFFFFFF)):
        assert 70 < (1 << 20) - len(np.unique(half)) < 200


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 11157551458937294499),
        (None, 6910000651531978113),
        ("a", 3732571137425899658),
        ("a\x00", 12098998996278458942),
        ("trajectory-7", 15660592541511809777),
        ("\u00e9\U0001f427", 133230850112414981),
        ("x" * 256, 6463156033576760876),
        ("x" * 257, 8557773044231383636),
    ],
)
def test_hashes_stay_what_they_are(text, value):
    assert hash_strings(pa.array([text], pa.string())).tolist() == [value]
