import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from reference import retrieval_credit as reference

from herald_jax.kernels.credit_checks import CLASSES, GAPS, SAME, order_reversals, reach

RNG = np.random.default_rng(31)

reversals = jax.jit(order_reversals)
reached = jax.jit(reach)


def floats(values):
    return np.array(values, np.float32)


def test_reversals_by_hand():
    # Scores 1, 0.75, 0.5, 0.5 with bonuses 0, 0.25, 0.75, 0: rewards 1, 1, 1.25, 0.5. Five of six
    # pairs are unequal. 1 and 0.75 are tied; 0.5 + 0.75 passes both, by gaps 0.5 and 0.25.
    found = reversals(floats([1, 0.75, 0.5, 0.5]), floats([0, 0.25, 0.75, 0]), np.ones(4, bool))
    assert [int(x) for x in (found.pairs, found.reversed, found.tied)] == [5, 2, 1]
    assert float(found.gap) == 0.75
    assert found.gaps.tolist() == [0, 0, 1, 0, 0, 1, 0, 0, 0, 0]


def test_a_gap_on_an_edge_belongs_above_it():
    for tenths in range(1, 11):
        scores = floats([1, 1 - np.float32(tenths) / 10])
        found = reversals(scores, floats([0, 1.5]), np.ones(2, bool))
        assert np.flatnonzero(found.gaps).tolist() == [min(tenths, GAPS - 1)]


def test_reversals_against_the_reference_masked_or_filtered():
    seen = np.zeros(3)
    for _ in range(60):
        scores = (RNG.integers(0, 5, 9) / 4).astype(np.float32)
        bonus = (RNG.integers(0, 5, 9) / 4).astype(np.float32)
        mask = RNG.random(9) < 0.8
        pairs, tied, gaps = reference.order_reversals(
            list(zip(scores[mask].tolist(), bonus[mask].tolist(), strict=True)), SAME
        )
        wrong = np.where(mask, np.float32(0), np.float32(math.nan))
        found = reversals(scores + wrong, bonus + wrong, mask)
        assert [int(x) for x in (found.pairs, found.reversed, found.tied)] == [
            pairs,
            len(gaps),
            tied,
        ]
        assert float(found.gap) == pytest.approx(sum(gaps))
        bins = np.bincount([min(int(gap * 10 + 1e-5), 9) for gap in gaps], minlength=GAPS)
        assert found.gaps.tolist() == bins.tolist()
        eager = order_reversals(scores + wrong, bonus + wrong, mask)
        jax.tree.map(np.testing.assert_array_equal, eager, found)
        seen += [pairs, len(gaps), tied]
    assert seen.all()


def test_equal_scores_and_rounding_make_no_pair():
    a = np.float32(0.1) + np.float32(0.2)
    found = reversals(floats([a, 0.3, 0.3]), floats([0, 1, 2]), np.ones(3, bool))
    assert int(found.pairs) == 0
    # 1 + 0 against 0.9 + 0.1: tied, whatever rounding says.
    found = reversals(floats([1, 0.9]), floats([0, 0.1]), np.ones(2, bool))
    assert (int(found.pairs), int(found.reversed), int(found.tied)) == (1, 0, 1)
    for mask in ([False] * 2, [True, False]):
        found = reversals(floats([1, 0]), floats([0, 9]), np.array(mask))
        assert [float(np.sum(leaf)) for leaf in jax.tree.leaves(found)] == [0.0] * 5


def one_question(rollouts, has_nodes=True, size=8):
    """The kernel on lists of (coverage, searches, F1 or None), padded with rubbish."""
    mask = np.arange(size) < len(rollouts)
    cov = np.full(size, math.nan, np.float32)
    f1, searches = cov.copy(), np.full(size, 99, np.int32)
    answered = np.ones(size, bool)
    for place, (covered, ran, score) in enumerate(rollouts):
        cov[place], searches[place] = covered, ran
        f1[place] = math.nan if score is None else score
        answered[place] = score is not None
    return reached(cov, searches, f1, answered, mask, np.bool_(has_nodes))


def test_reach_by_hand():
    # Coverage 1, 1/2, 0 and 0, mean 3/8; searches 2, 1, 0 and 3, mean 3/2. F1 given all 1, given
    # some 1/4, given none (0 of a missing answer and 1/2) over two rollouts.
    found = one_question([(1, 2, 1.0), (0.5, 1, 0.25), (0, 0, None), (0, 3, 0.5)])
    assert [int(x) for x in (found.questions, found.measured)] == [1, 1]
    assert (int(found.zero), int(found.complete)) == (0, 1)
    assert float(found.coverage) == 0.375
    assert float(found.searches) == 1.5
    assert dict(zip(CLASSES, found.rollouts.tolist(), strict=True)) == {
        "none": 2,
        "some": 1,
        "all": 1,
    }
    assert found.f1.tolist() == [0.5, 0.25, 1.0]


def test_reach_against_the_reference():
    choices = [Fraction(0), Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1)]
    questions = [
        [
            (
                choices[RNG.integers(0, 5)],
                int(RNG.integers(0, 5)),
                None if RNG.random() < 0.3 else Fraction(int(RNG.integers(0, 9)), 8),
            )
            for _ in range(RNG.integers(1, 7))
        ]
        for _ in range(60)
    ]
    found = [one_question(rollouts) for rollouts in questions]
    total = jax.tree.map(lambda *leaves: np.sum(leaves, axis=0), *found)
    right = reference.reach(questions)
    assert 0 < right["zero"] < 60 and 0 < right["complete"] < 60
    assert int(total.measured) == 60
    for name, value in right.items():
        np.testing.assert_allclose(getattr(total, name), np.array(value, float), rtol=1e-5)


def test_a_question_without_nodes_is_not_measured():
    found = one_question([(0, 2, 1.0)], has_nodes=False)
    assert int(found.questions) == 1
    assert [float(np.sum(leaf)) for leaf in jax.tree.leaves(found)] == [1.0] + [0.0] * 7
    nothing = one_question([])
    assert [float(np.sum(leaf)) for leaf in jax.tree.leaves(nothing)] == [0.0] * 8


def test_what_is_unknown_shows():
    assert np.isnan(one_question([(1, 2, math.nan)]).f1[2])
    assert np.isnan(one_question([(math.nan, 2, 1.0)]).coverage)


def test_jit_equals_eager():
    arguments = (
        RNG.random(6).astype(np.float32),
        RNG.integers(0, 4, 6).astype(np.int32),
        RNG.random(6).astype(np.float32),
        RNG.random(6) < 0.5,
        RNG.random(6) < 0.8,
        np.bool_(True),
    )
    jax.tree.map(np.testing.assert_array_equal, reached(*arguments), reach(*arguments))
