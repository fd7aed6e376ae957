import dataclasses
import functools
import math
from unittest import mock

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi
from reference.retrieval import bm25_scores, ranking

from herald_jax.kernels import postings
from herald_jax.kernels.bm25 import (
    SCALE,
    VARIANTS,
    Bm25Index,
    bm25_topk,
    build_bm25,
    contributions,
)
from herald_jax.kernels.postings import term_frequency
from herald_jax.kernels.topk import NO_SCORE
from herald_jax.types import PAD

TERMS = 12  # of which the last two occur in no passage


def ragged(passages):
    tokens = np.array([term for passage in passages for term in passage], np.int32)
    offsets = np.cumsum([0, *map(len, passages)], dtype=np.int64)
    return tokens, offsets


def index_of(passages, terms=TERMS, **settings):
    return build_bm25(term_frequency(*ragged(passages), terms), **settings)


def padded(rows, width):
    out = np.full((len(rows), width), PAD, np.int32)
    for target, row in zip(out, rows, strict=True):
        target[: len(row)] = row
    return jnp.asarray(out)


def one_shape(index: Bm25Index) -> Bm25Index:
    """The same index with room to spare, so that small corpora share one compiled program."""
    p = index.postings
    tail = (0, 512 - p.passage.shape[0])
    return dataclasses.replace(
        index,
        postings=dataclasses.replace(
            p,
            passage=jnp.pad(p.passage, tail),
            value=jnp.pad(p.value, tail),
            dense=jnp.pad(p.dense, ((0, TERMS + 1 - p.dense.shape[0]), (0, 0))),
        ),
    )


def search(index, queries, exclude=None, k=16):
    """Most tests ask in one shape, which compiles once: 6 queries of 32 tokens."""
    rows = [*queries, *[[]] * (6 - len(queries))]
    out = padded([*(exclude or []), *[[]] * (6 - len(exclude or []))], 8)
    codes, scores = bm25_topk(index, padded(rows, 32), out, k=k)
    return np.asarray(codes)[: len(queries)], np.asarray(scores)[: len(queries)]


def same(results, others):
    return all(np.array_equal(a, b) for a, b in zip(results, others, strict=True))


def zipf_corpus(n_passages, n_terms, seed=0):
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, n_terms + 1)
    lengths = rng.poisson(30, n_passages)
    flat = rng.choice(n_terms, lengths.sum(), p=weights / weights.sum())
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]


passage_lists = st.lists(st.lists(st.integers(0, TERMS - 3), max_size=12), max_size=24)
query_lists = st.lists(st.lists(st.integers(-1, TERMS + 3), max_size=12), min_size=3, max_size=3)
exclude_lists = st.lists(st.lists(st.integers(-1, 30), max_size=8), min_size=3, max_size=3)


@settings(deadline=None, max_examples=150)
@given(
    passages=passage_lists,
    queries=query_lists,
    exclude=exclude_lists,
    variant=st.sampled_from(VARIANTS),
    k1=st.sampled_from([1.5, 0.0, 0.9]),
    b=st.sampled_from([0.75, 0.0, 1.0]),
    dense_bytes=st.sampled_from([postings.DENSE_BYTES, 0, 3 * 512]),  # all, no or 3 dense rows
)
def test_equals_the_slow_reference(passages, queries, exclude, variant, k1, b, dense_bytes):
    with mock.patch.object(postings, "DENSE_BYTES", dense_bytes):
        index = one_shape(index_of(passages, variant=variant, k1=k1, b=b))
    codes, scores = bm25_topk(index, padded(queries, 12), padded(exclude, 8), k=20)
    for row in range(3):
        all_scores = bm25_scores(passages, queries[row], k1, b, variant=variant)
        expected = ranking(all_scores, exclude[row], 20)
        missing = 20 - len(expected)
        assert codes[row].tolist() == expected + [PAD] * missing
        expected_scores = [all_scores[code] for code in expected]
        assert scores[row].tolist() == expected_scores + [NO_SCORE] * missing


@pytest.fixture(scope="module")
def passages():
    return zipf_corpus(3000, 800)


@pytest.fixture(scope="module")
def index(passages):
    return index_of(passages, 800)


@pytest.fixture(scope="module")
def queries(passages):
    """Of 24 tokens each, common and rare, from a passage of the corpus."""
    rng = np.random.default_rng(1)
    return [rng.choice(passages[i], 24).tolist() for i in range(0, 60, 10)]


def test_common_and_rare_terms_together_equal_the_reference(passages, index, queries):
    p = index.postings
    assert p.dense.shape[0] > 2 * postings.ROWS  # several groups of dense rows
    assert np.diff(p.start).max() > postings.CHUNK  # lists of several chunks
    best = [ranking(bm25_scores(passages, query), [], 4) for query in queries]
    codes, scores = search(index, queries, exclude=best)
    for row, query in enumerate(queries):
        all_scores = bm25_scores(passages, query)
        expected = ranking(all_scores, best[row], 16)
        assert codes[row].tolist() == expected
        assert scores[row].tolist() == [all_scores[code] for code in expected]


def test_contributions_are_those_of_rank_bm25(passages, index, queries):
    peer = BM25Okapi([list(map(str, passage)) for passage in passages])
    codes, scores = search(index, queries)
    for row, query in enumerate(queries):
        theirs = peer.get_scores(list(map(str, query)))[codes[row]]
        # Each of the 24 contributions was rounded by at most half a unit.
        assert np.abs(scores[row] / SCALE - theirs).max() <= 24 * 0.5 / SCALE + 1e-9


def test_hand_arithmetic():
    # Four passages of 3, 1, 2 and 2 tokens: avgdl = 2.
    corpus = [[0, 0, 1], [2], [1, 2], [1, 2]]
    # Term 0 is in one of four: idf = ln(3.5 / 1.5). In passage 0, tf = 2 and
    # k1 (1 - b + b |p| / avgdl) = 1.5 (0.25 + 0.75 * 3 / 2) = 2.0625.
    rare = math.log(3.5 / 1.5)
    first = round(SCALE * rare * 2 * 2.5 / (2 + 2.0625))
    # Terms 1 and 2 are in three of four: idf = ln(1.5 / 3.5) = -rare, and the average of the three
    # is -rare / 3, so that both get a quarter of that, which is negative still. Passage 1, tf = 1:
    # 1.5 (0.25 + 0.75 / 2) = 0.9375.
    floor = 0.25 * -rare / 3
    second = round(SCALE * floor * 2.5 / (1 + 0.9375))
    index = index_of(corpus, 3)
    codes, scores = search(index, [[0], [2]], k=4)
    assert (codes[0].tolist(), scores[0].tolist()) == ([0, 1, 2, 3], [first, 0, 0, 0])
    # Passages 2 and 3 have |p| = avgdl: contribution idf * 2.5 / 2.5. Passage 0 has no such token.
    middle = round(SCALE * floor)
    assert codes[1].tolist() == [0, 2, 3, 1]
    assert scores[1].tolist() == [0, middle, middle, second]


def test_a_repeated_token_counts_again(index):
    (once_codes, thrice_codes), (once, thrice) = search(index, [[5], [5, 5, 5]])
    assert once_codes.tolist() == thrice_codes.tolist()
    assert (3 * once).tolist() == thrice.tolist()
    assert once.min() > 0


def test_half_units_round_to_even():
    # k1 = 0 leaves idf alone as the contribution; make it a known half: with a logarithm of
    # 2.5 / SCALE and 3.5 / SCALE the integers are 2 and 4.
    corpus = [[0], [0, 1], [1], []]
    for half, expected in ((2.5, 2), (3.5, 4), (2.500001, 3)):
        with mock.patch("herald_jax.kernels.bm25.math.log", return_value=half / SCALE):
            index = index_of(corpus, 2, k1=0.0, variant="lucene")
        assert search(index, [[0]], k=4)[1][0, 0] == expected


@pytest.mark.parametrize("corpus", [[], [[]], [[], [], []]], ids=["no", "an empty", "three empty"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_to_count(corpus, variant):
    for terms in (0, 2):
        index = index_of(corpus, terms, variant=variant)
        codes, scores = search(index, [[0, 1, 9], []], exclude=[[], [0]], k=4)
        everything = list(range(len(corpus)))
        for row, expected in enumerate((everything, everything[1:])):
            missing = 4 - len(expected)
            assert codes[row].tolist() == expected + [PAD] * missing
            assert scores[row].tolist() == [0] * len(expected) + [NO_SCORE] * missing


def test_order_of_the_corpus_changes_codes_alone(passages, index, queries):
    n = len(passages)
    order = np.random.default_rng(2).permutation(n)
    shuffled = index_of([passages[i] for i in order], 800)
    codes, scores = search(index, queries, k=n)
    other_codes, other_scores = search(shuffled, queries, k=n)
    for row in range(len(queries)):
        by_passage = np.empty(n, np.int32)
        by_passage[order[other_codes[row]]] = other_scores[row]
        assert (by_passage[codes[row]] == scores[row]).all()


def test_order_of_terms_changes_nothing(passages, index, queries):
    renamed = np.random.default_rng(3).permutation(800)
    other = index_of([renamed[passage].tolist() for passage in passages], 800)
    assert same(search(index, queries), search(other, [renamed[query] for query in queries]))


def test_padding_changes_nothing(index, queries):
    exclude = [[3, 5, 8]] * len(queries)
    expected = search(index, queries, exclude)
    wide = bm25_topk(index, padded(queries, 100), padded(exclude, 9), k=16)
    assert same(expected, wide)
    # PAD need not be at the end.
    shifted = jnp.flip(padded(queries, 32), axis=1), jnp.flip(padded(exclude, 8), axis=1)
    assert same(expected, bm25_topk(index, *shifted, k=16))


def test_rows_of_a_batch_are_independent(index, queries):
    exclude = [[i, 2 * i] for i in range(len(queries))]
    codes, scores = search(index, queries, exclude)
    for row in range(len(queries)):
        alone = search(index, [queries[row]], [exclude[row]])
        assert same((codes[row], scores[row]), (alone[0][0], alone[1][0]))


def test_a_smaller_k_is_a_prefix(index, queries):
    codes, scores = search(index, queries)
    assert same((codes[:, :4], scores[:, :4]), search(index, queries, k=4))


def test_jit_equals_eager():
    small = index_of([[0, 1], [1, 1, 2], [3]], 4)
    queries = [[1, 2], [3, 3]]
    jitted = search(small, queries, k=4)
    with jax.disable_jit():
        assert same(jitted, search(small, queries, k=4))


def test_the_index_is_plain_arrays(index, queries):
    """What is saved leaf by leaf and loaded again searches alike."""
    leaves, structure = jax.tree.flatten(index)
    loaded = jax.tree.unflatten(structure, [np.array(leaf) for leaf in leaves])
    assert same(search(index, queries), search(loaded, queries))


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_lowers_everywhere_with_the_index_as_an_argument(index, platform):
    program = jax.export.export(jax.jit(functools.partial(bm25_topk, k=16)), platforms=[platform])(
        index, padded([[1]] * 8, 64), padded([[1]] * 8, 64)
    )
    assert program.platforms == (platform,)
    assert len(program.in_avals) == len(jax.tree.leaves(index)) + 2


@pytest.mark.parametrize(
    ("setting", "value"),
    [("k1", -0.1), ("k1", math.nan), ("b", 1.1), ("epsilon", -1.0), ("variant", "bm25+")],
)
def test_a_parameter_out_of_range_is_refused(setting, value):
    with pytest.raises(ValueError, match=setting):
        index_of([[0]], 1, **{setting: value})


@pytest.mark.parametrize(
    ("tokens", "offsets", "complaint"),
    [([0], [0], "offsets"), ([0], [0, 2], "offsets"), ([0], [0, 1, 0, 1], "decrease"),
     ([7], [0, 1], "term ids"), ([-1], [0, 1], "term ids")],
)  # fmt: skip
def test_tokens_and_offsets_that_do_not_agree_are_refused(tokens, offsets, complaint):
    with pytest.raises(ValueError, match=complaint):
        term_frequency(np.array(tokens, np.int32), np.array(offsets, np.int64), 2)


def test_a_contribution_beyond_integer_range_is_refused():
    # With b = 1 and k1 large a contribution tends to idf * avgdl * tf / |p|; here ln 2 * 50,000.
    with pytest.raises(ValueError, match="exceeds"):
        index_of([[0], [1] * 99_999], 2, k1=1e12, b=1.0, variant="lucene")


def test_peak_bounds_every_contribution(index, passages):
    frequency = term_frequency(*ragged(passages), 800)
    exact = np.abs(contributions(frequency)) * SCALE
    peak = np.repeat(np.asarray(index.peak), np.diff(frequency.indptr))
    assert (exact <= peak + 0.5).all()
