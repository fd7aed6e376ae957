import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.cells import success
from reference.settings import Settings

from herald_jax.kernels.sums import (
    LOW_BITS,
    MARGIN_BITS,
    MAX_ROLLOUTS,
    margin_scale,
    margin_totals,
    question_sums,
)

WIDTH = 12
TOLERANCE = np.float32(Settings().tie_tolerance)
MARGIN = (
    st.floats(-4, 4, width=32, allow_subnormal=False)
    | st.sampled_from([0.0, -0.0, 1e-6, -1e-6, 0.81375, -0.38625, 4.0, -4.0])
    | st.sampled_from([math.nan, math.inf, -math.inf])
)
ROLLOUTS = st.lists(st.tuples(MARGIN, st.booleans()), max_size=WIDTH)

compiled = jax.jit(question_sums)


def sums(rollouts, scale=margin_scale(4.0), width=WIDTH):  # noqa: B008
    """Of one question under one contract; what is missing to the width is garbage in no row."""
    filled = [*rollouts, *[(123.0, False)] * (width - len(rollouts))]
    margins = np.array([[margin for margin, _ in filled]], np.float32)
    rows = np.array([row for _, row in filled])
    found = compiled(margins, rows, scale=np.float32(scale), tie_tolerance=TOLERANCE)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], found)


def total(found):
    return int(margin_totals(found.high, found.low))


def counted(rollouts):
    return [np.float32(m).item() for m, row in rollouts if row and math.isfinite(m)]


@given(ROLLOUTS)
def test_against_exact_fractions(rollouts):
    found, scale = sums(rollouts), int(margin_scale(4.0))
    margins = counted(rollouts)
    # Python's round of a fraction is to nearest, ties to even.
    assert total(found) == sum(round(Fraction(m) * scale) for m in margins)
    assert found.rows == len(margins)
    assert found.successes == sum(success(m, Settings(tie_tolerance=TOLERANCE)) for m in margins)
    assert found.largest == max(margins, default=-math.inf)


@given(ROLLOUTS, st.randoms(use_true_random=False), st.integers(0, WIDTH))
def test_order_and_parts_change_nothing(rollouts, random, cut):
    whole = sums(rollouts)
    shuffled = rollouts.copy()
    random.shuffle(shuffled)
    for other in (sums(shuffled), sums([r for r in rollouts if r[1]])):
        assert jax.tree.all(jax.tree.map(np.array_equal, whole, other))
    parts = [sums(shuffled[:cut]), sums(shuffled[cut:])]
    assert total(whole) == sum(total(part) for part in parts)
    assert whole.rows == sum(part.rows for part in parts)
    assert whole.successes == sum(part.successes for part in parts)
    assert whole.largest == max(part.largest for part in parts)


def test_ties_count_and_the_tolerance_is_the_last_success():
    below = float(np.nextafter(-TOLERANCE, np.float32(-1)))
    for margin, succeeds in (
        (0.0, True),
        (-0.0, True),
        (-5e-7, True),
        (float(-TOLERANCE), True),
        (below, False),
        (-2e-6, False),
        (math.nan, False),
        (math.inf, False),
    ):
        assert bool(sums([(margin, True)]).successes) == succeeds, margin


@given(
    st.floats(0, 1e308)
    | st.sampled_from([0.0, 1.0, 4.0, 3.9999999, 2.0**-80, 2.0**-200, 3e38, 1e300])
)
def test_the_scale_is_a_power_of_two_that_float32_holds(bound):
    scale = margin_scale(bound)
    assert math.frexp(scale)[0] == 0.5
    assert np.float32(scale) == scale > 0
    reach = min(bound, float(np.finfo(np.float32).max))
    assert scale * reach < 2 ** (MARGIN_BITS - 1)
    # The largest such, but for margins too small to tell apart in float32's normal range.
    assert scale == 2.0**100 or 2 * scale * reach >= 2 ** (MARGIN_BITS - 1)


@pytest.mark.parametrize("bound", [math.nan, math.inf, -math.inf, -1.0])
def test_a_bound_that_bounds_nothing(bound):
    with pytest.raises(ValueError, match="bound of margins"):
        margin_scale(bound)


def test_what_a_scaled_margin_can_reach_fits():
    # |margin * scale| <= 2^29, also when rounding lifts a margin onto its bound. The high part is
    # then within 2^29 / 2^15 = 2^14, and 2^16 of them within 2^30; the low part is below 2^15, and
    # 2^16 of them are at most 2^31 - 2^16. Both fit in an int32.
    largest = 2 ** (MARGIN_BITS - 1)
    assert (largest >> LOW_BITS) * MAX_ROLLOUTS == 2**30 < 2**31
    assert (-largest >> LOW_BITS) * MAX_ROLLOUTS == -(2**30) >= -(2**31)
    assert ((1 << LOW_BITS) - 1) * MAX_ROLLOUTS == 2**31 - 2**16 < 2**31


@pytest.mark.parametrize(
    "margin",
    [
        4.0,  # the bound itself
        -4.0,
        float(np.nextafter(np.float32(4), np.float32(0))),
        -float(np.nextafter(np.float32(4), np.float32(0))),
        (2**24 - 1) / 2**26,  # low part 2^15 - 1, the largest there is
        -1 / 2**26,  # high part -1, low part 2^15 - 1
    ],
)
def test_the_largest_question_does_not_overflow(margin):
    scale = margin_scale(float(np.nextafter(4.0, 0.0)))
    assert scale == 2.0**27  # 2^27 * 4 = 2^29
    found = sums([(margin, True)] * MAX_ROLLOUTS, scale, MAX_ROLLOUTS)
    assert total(found) == MAX_ROLLOUTS * int(margin * scale)
    assert found.rows == MAX_ROLLOUTS
    assert found.largest == margin


def test_counts_do_not_stick_where_float32_does():
    many = 2**24 + 3
    assert np.float32(2**24) + np.float32(1) == 2**24
    found = compiled(
        jnp.zeros((1, many), jnp.float32),
        jnp.ones(many, bool),
        scale=np.float32(1),
        tie_tolerance=TOLERANCE,
    )
    assert found.successes.tolist() == found.rows.tolist() == [many]


def test_contracts_do_not_touch_each_other():
    margins = np.array([[0.5, math.nan, 0.25], [-1.0, 2.0, math.inf]], np.float32)
    rows = np.array([True, True, True])
    both = compiled(margins, rows, scale=np.float32(2**20), tie_tolerance=TOLERANCE)
    for j in range(2):
        one = compiled(margins[j : j + 1], rows, scale=np.float32(2**20), tie_tolerance=TOLERANCE)
        same = jax.tree.map(lambda a, b, j=j: bool(a[j] == b[0]), both, one)
        assert jax.tree.all(same)


# Few rollouts are added as straight code, more by a reduction; none at all leave zeros.
@pytest.mark.parametrize("rollouts", [0, 1, 2, 8, 16, 17, 40])
def test_many_questions_are_each_by_itself(rollouts):
    rng = np.random.default_rng(rollouts)
    margins = rng.normal(size=(2, 5, rollouts)).astype(np.float32)
    margins[rng.random(margins.shape) < 0.2] = math.inf
    rows = rng.random((5, rollouts)) < 0.7
    numbers = {"scale": np.float32(2**20), "tie_tolerance": TOLERANCE}
    whole = compiled(margins, rows, **numbers)
    for q in range(5):
        alone = compiled(margins[:, q], rows[q], **numbers)
        assert jax.tree.all(
            jax.tree.map(lambda a, b, q=q: np.array_equal(a[:, q], b), whole, alone)
        )
        held = [[(m, r) for m, r in zip(of, rows[q], strict=True)] for of in margins[:, q].tolist()]
        assert alone.rows.tolist() == [len(counted(of)) for of in held]
        expected = [sum(round(Fraction(m) * 2**20) for m in counted(of)) for of in held]
        assert margin_totals(alone.high, alone.low).tolist() == expected
        assert alone.largest.tolist() == [max(counted(of), default=-math.inf) for of in held]


def test_compiled_or_not():
    rollouts = [(0.3, True), (math.nan, True), (-2.0, False), (-1e-6, True)]
    with jax.disable_jit():
        eager = sums(rollouts)
    assert jax.tree.all(jax.tree.map(np.array_equal, sums(rollouts), eager))
