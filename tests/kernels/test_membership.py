import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trajectory_strategies as strategies
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.kernels import membership
from herald_jax.types import PAD, Oracle, Visible

member = jax.jit(membership.member)
look = jax.jit(membership.look)
looked_up = jax.jit(membership.looked_up, static_argnames="count")
first_occurrence = jax.jit(membership.first_occurrence)


def padded(ids, width):
    return np.array([*ids, *[PAD] * (width - len(ids))], np.int32)


def scattered(places, width):
    """Ids at some positions of a list, PAD at all others."""
    out = np.full(width, PAD, np.int32)
    for place, code in places.items():
        out[place] = code
    return out


# 64 places are straight code; more go through the scan, with and without a piece left over.
@pytest.mark.parametrize("width", [0, 1, 9, 64, 65, 128, 150])
@given(data=st.data(), ids=strategies.codes(6))
def test_member_is_in(width, data, ids):
    places = st.dictionaries(
        st.integers(0, max(width - 1, 0)), st.integers(-1, 12), max_size=min(width, 9)
    )
    among = scattered(data.draw(places), width)
    found = member(padded(ids, 6), among)
    known = set(among.tolist()) - {PAD}
    assert found.tolist() == [code in known for code in padded(ids, 6).tolist()]


# So many ids go four, two or one to a word.
@pytest.mark.parametrize("width", [0, 1, 9, 64, 65, 150])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 6, 8, 14])
@given(data=st.data())
def test_words_hold_what_member_finds(count, width, data):
    places = st.dictionaries(
        st.integers(0, max(width - 1, 0)), st.integers(-1, 12), max_size=min(width, 9)
    )
    among = scattered(data.draw(places), width)
    ids = np.array(data.draw(st.lists(st.integers(-1, 12), min_size=count, max_size=count)), "i4")
    words = look(ids, among)
    assert words.dtype == np.uint8
    assert looked_up(words, count=count).tolist() == member(ids, among).tolist()


def test_the_largest_code_is_a_code_like_any_other():
    top = 2**31 - 1
    assert member(padded([top, 0], 3), padded([5, top], 3)).tolist() == [True, False, False]


@given(strategies.codes(8))
def test_the_first_of_equal_ids(ids):
    found = first_occurrence(padded(ids, 8)).tolist()
    expected = [code >= 0 and code not in ids[:place] for place, code in enumerate(ids)]
    assert found == expected + [False] * (8 - len(ids))


def test_lists_without_a_place():
    nothing = np.zeros(0, np.int32)
    assert member(nothing, padded([1], 2)).shape == (0,)
    assert looked_up(look(nothing, padded([1], 2)), count=0).shape == (0,)
    assert member(padded([1], 2), nothing).tolist() == [False, False]
    assert first_occurrence(nothing).shape == (0,)


def test_real_ids_are_those_of_the_corpus():
    codes = jnp.array([PAD, 0, 2, 3, 2**31 - 1], jnp.int32)
    assert membership.is_real(codes, jnp.int32(3)).tolist() == [False, True, True, False, False]
    assert not membership.is_real(codes, jnp.int32(0)).any()


@pytest.mark.parametrize(
    ("ids", "among"),
    [
        (np.zeros((2, 2), np.int32), np.zeros(2, np.int32)),
        (np.zeros(2, np.int32), np.zeros((2, 2), np.int32)),
        (np.zeros(2, np.float32), np.zeros(2, np.int32)),
    ],
)
def test_what_is_no_list_of_ids_is_refused(ids, among):
    with pytest.raises(AssertionError):
        membership.member(ids, among)
    with pytest.raises(AssertionError):
        membership.look(ids, among)


def described(retrieved, citations, offered, support, passages):
    zero = jnp.int32(0)
    visible = Visible(
        retrieved=jnp.asarray(retrieved),
        citations=jnp.asarray(citations),
        searches=zero,
        invalid=zero,
        repeated=jnp.bool_(False),
        answer_tokens=zero,
        malformed=zero,
    )
    gold = jnp.float32(0)
    oracle = Oracle(
        support=jnp.asarray(support),
        em=gold,
        f1=gold,
        gold_em=gold,
        gold_f1=gold,
        gold_tokens=zero,
        is_gold=jnp.bool_(False),
    )
    return (
        membership.describe_state(visible, passages),
        membership.describe_offer(jnp.asarray(offered), visible, passages),
        membership.describe_labels(jnp.asarray(citations), jnp.asarray(offered), oracle),
    )


described = jax.jit(described)


@given(
    strategies.codes(9),
    strategies.codes(6),
    strategies.codes(4),
    st.lists(st.integers(0, 12), max_size=4, unique=True),
    st.integers(0, 12),
)
def test_what_is_known_of_each_id(retrieved, citations, offered, support, passages):
    state, offer, labels = described(
        padded(retrieved, 9),
        padded(citations, 6),
        padded(offered, 4),
        padded(support, 4),
        jnp.int32(passages),
    )
    seen = set(retrieved) - {PAD}
    for known, codes in ((state, padded(citations, 6)), (offer, padded(offered, 4))):
        assert known.ids.tolist() == codes.tolist()
        assert known.present.tolist() == [code >= 0 for code in codes]
        assert known.real.tolist() == [0 <= code < passages for code in codes]
        assert known.retrieved.tolist() == [code in seen for code in codes]
    assert labels.support.tolist() == [code in support for code in padded(citations, 6)]
    assert labels.offered_support.tolist() == [code in support for code in padded(offered, 4)]
    assert labels.n_support == len(support)
