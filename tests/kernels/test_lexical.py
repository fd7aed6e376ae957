import dataclasses
import functools
from unittest import mock

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.retrieval import lexical_scores, ranking

from herald_jax.kernels import postings
from herald_jax.kernels.lexical import LexicalIndex, build_lexical, lexical_topk
from herald_jax.kernels.topk import NO_SCORE
from herald_jax.types import PAD

TERMS = 12  # of which the last two occur in no passage


def index_of(passages, terms=TERMS):
    tokens = np.array([term for passage in passages for term in passage], np.int32)
    offsets = np.cumsum([0, *map(len, passages)], dtype=np.int64)
    return build_lexical(postings.term_frequency(tokens, offsets, terms))


def padded(rows, width):
    out = np.full((len(rows), width), PAD, np.int32)
    for target, row in zip(out, rows, strict=True):
        target[: len(row)] = row
    return jnp.asarray(out)


def one_shape(index: LexicalIndex) -> LexicalIndex:
    """The same index with room to spare, so that small corpora share one compiled program."""
    p = index.postings
    tail = (0, 512 - p.passage.shape[0])
    return LexicalIndex(
        postings=dataclasses.replace(
            p,
            passage=jnp.pad(p.passage, tail),
            value=jnp.pad(p.value, tail),
            dense=jnp.pad(p.dense, ((0, TERMS + 1 - p.dense.shape[0]), (0, 0))),
        )
    )


def search(index, queries, exclude=None, **settings):
    """Most tests ask in one shape, which compiles once: 4 queries of 12 tokens."""
    rows = [*queries, *[[]] * (4 - len(queries))]
    out = [*(exclude or []), *[[]] * (4 - len(exclude or []))]
    settings.setdefault("k", 20)
    codes, scores = lexical_topk(index, padded(rows, 12), padded(out, 8), **settings)
    return np.asarray(codes)[: len(queries)], np.asarray(scores)[: len(queries)]


def check(passages, queries, exclude, found, least):
    for row, (codes, scores) in enumerate(zip(*found, strict=True)):
        all_scores = lexical_scores(passages, queries[row])
        unmatched = [i for i, score in enumerate(all_scores) if score < least]
        expected = ranking(all_scores, exclude[row] + unmatched, 20)
        missing = 20 - len(expected)
        assert codes.tolist() == expected + [PAD] * missing
        expected_scores = [all_scores[code] for code in expected]
        assert scores.tolist() == expected_scores + [NO_SCORE] * missing


@settings(deadline=None, max_examples=150)
@given(
    passages=st.lists(st.lists(st.integers(0, TERMS - 3), max_size=12), max_size=24),
    queries=st.lists(st.lists(st.integers(-1, TERMS + 3), max_size=12), min_size=4, max_size=4),
    exclude=st.lists(st.lists(st.integers(-1, 30), max_size=8), min_size=4, max_size=4),
    least=st.sampled_from([0, 1, 2]),
    dense_bytes=st.sampled_from([postings.DENSE_BYTES, 0, 3 * 128]),  # all, no or 3 dense rows
)
def test_equals_the_slow_reference(passages, queries, exclude, least, dense_bytes):
    with mock.patch.object(postings, "DENSE_BYTES", dense_bytes):
        index = one_shape(index_of(passages))
    found = search(index, queries, exclude, least=least)
    check(passages, queries, exclude, found, least)


def test_common_and_rare_terms_together_equal_the_reference():
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, 801)
    passages = rng.choice(800, (3000, 30), p=weights / weights.sum()).tolist()
    queries = [rng.choice(passage, 12).tolist() for passage in passages[:4]]
    index = index_of(passages, 800)
    assert index.postings.dense.shape[0] > 2 * postings.ROWS
    assert np.diff(index.postings.start).max() > postings.CHUNK
    exclude = [[row, 7] for row in range(4)]
    check(passages, queries, exclude, search(index, queries, exclude), 1)


def test_hand_count():
    corpus = [[0, 0, 1], [1], [2], [2, 1, 0]]
    codes, scores = search(index_of(corpus), [[0, 1, 0], [2, 9, 9]], k=4)
    # {0, 1}: passages 0 and 3 hold both, passage 1 holds one, passage 2 none and is no candidate.
    assert (codes[0].tolist(), scores[0].tolist()) == ([0, 3, 1, PAD], [2, 2, 1, NO_SCORE])
    assert (codes[1].tolist(), scores[1].tolist()) == ([2, 3, PAD, PAD], [1, 1, NO_SCORE, NO_SCORE])


def test_repeats_order_and_padding_of_the_query_change_nothing():
    index = index_of([[0, 1], [1, 2], [2], [0, 1, 2]])
    codes, scores = search(index, [[0, 1, 2], [2, 1, 0, 1, 1, 0], [PAD, 0, PAD, 2, 1, PAD]])
    assert (codes == codes[0]).all() and (scores == scores[0]).all()
    wide = lexical_topk(index, padded([[0, 1, 2]], 40), padded([[]], 3), k=20)
    assert np.array_equal(wide[0][0], codes[0]) and np.array_equal(wide[1][0], scores[0])


def test_jit_equals_eager():
    index = index_of([[0, 1], [1, 1, 2], [3]])
    jitted = search(index, [[1, 2], [3, 3]])
    with jax.disable_jit():
        eager = search(index, [[1, 2], [3, 3]])
    assert all(np.array_equal(a, b) for a, b in zip(jitted, eager, strict=True))


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_lowers_everywhere_with_the_index_as_an_argument(platform):
    index = index_of([[0, 1], [2]])
    program = jax.export.export(
        jax.jit(functools.partial(lexical_topk, k=8)), platforms=[platform]
    )(index, padded([[1]] * 8, 64), padded([[1]] * 8, 64))
    assert program.platforms == (platform,)
    assert len(program.in_avals) == len(jax.tree.leaves(index)) + 2
