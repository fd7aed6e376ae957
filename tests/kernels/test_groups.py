import math
import statistics
from functools import partial

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import signal as reference

from herald_jax.kernels import groups
from herald_jax.kernels.groups import (
    advantages_by_question,
    batch_advantages,
    combine_rewards,
    group_advantages,
    is_flat,
    signal,
    signals,
    usable,
)

RNG = np.random.default_rng(4)
REWARD = st.sampled_from([0.0, 0.1, 0.3, 1.0, -0.4, 2.35]) | st.floats(-4, 4, width=32)
ROWS = st.lists(st.tuples(REWARD, st.booleans()), min_size=1, max_size=9)


_compiled = jax.jit(group_advantages, static_argnames="scale")


def one(rewards, mask=None, **options):
    rewards = np.asarray(rewards, np.float32)
    mask = np.ones(rewards.shape, bool) if mask is None else np.asarray(mask)
    return np.asarray(_compiled(rewards, mask, **options))


def test_by_hand():
    # Mean 1/4; squares 9/16 + 3 * 1/16 = 3/4, over n - 1 = 3: sd 1/2. A = 0.75 / 0.500001, ...
    expected = [0.75 / 0.500001] + [-0.25 / 0.500001] * 3
    np.testing.assert_allclose(one([1, 0, 0, 0]), expected, rtol=1e-6)
    assert one([1, 0, 0, 0], scale="none").tolist() == [0.75, -0.25, -0.25, -0.25]


def separated(rewards):
    """No span so near the threshold that float32 cannot tell, nor one that rounding drowns."""
    return not rewards or not 5e-7 < max(rewards) - min(rewards) < 1e-3


@settings(deadline=None)
@given(ROWS)
def test_against_the_reference_masked_or_filtered(rows):
    members = [reward for reward, member in rows if member]
    assume(separated(members))
    rows = rows + [(0.0, False)] * (9 - len(rows))
    mask = np.array([member for _, member in rows])
    found = one([reward if member else math.nan for reward, member in rows], mask)
    expected = reference.advantages([reward if member else None for reward, member in rows])
    # Rewards up to 4 that span 1e-3 leave an advantage 4 * 2^-24 / 4e-4 = 6e-4 of rounding.
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert (found[~mask] == 0).all()
    if members:
        np.testing.assert_allclose(found[mask], one(members), atol=1e-6)


@pytest.mark.parametrize(
    "rewards",
    [
        [0.1] * 8,
        [0.3] * 10,
        [0.1 + 0.2, 0.3, 0.2 + 0.1],
        [2.35, np.nextafter(np.float32(2.35), np.float32(9))],
        [8.1, np.nextafter(np.float32(8.1), np.float32(9))],
        [0.5],
    ],
)
def test_no_signal_is_exactly_zero(rewards):
    assert one(rewards).tolist() == [0.0] * len(rewards)
    for dtype in (np.float32, np.float64):
        log = np.array(rewards, np.float32).astype(dtype)
        found = advantages_by_question(np.zeros(len(rewards), int), log)
        assert found.tolist() == [0.0] * len(rewards)


def test_the_spread_allows_for_rounding_of_the_numbers_that_came():
    # Next to 20 float32 has steps of 1.9e-6: two neighbours may be one number, rounded twice.
    rewards = np.array([20.0, np.nextafter(np.float32(20), np.float32(21))], np.float32)
    question = np.zeros(2, int)
    assert advantages_by_question(question, rewards).tolist() == [0.0, 0.0]
    assert (advantages_by_question(question, rewards.astype(np.float64)) != 0).all()


def test_a_small_spread_is_a_signal():
    assert (one([0.5, 0.500004, 0.5]) != 0).all()
    assert (advantages_by_question(np.zeros(3, int), [0.5, 0.5000012, 0.5]) != 0).all()


def test_a_large_common_part_costs_no_digits():
    far = advantages_by_question(np.zeros(4, int), 1000.0 + np.array([0, 1e-4, 0, 0]))
    near = advantages_by_question(np.zeros(4, int), np.array([0, 1e-4, 0, 0]))
    np.testing.assert_allclose(far, near, atol=1e-5)


def test_nothing_outside_the_mask_reaches_value_or_gradient():
    def loss(rewards, mask):
        return jnp.sum(group_advantages(rewards, mask) * jnp.arange(1.0, 6.0))

    rewards = np.array([1.0, math.nan, 0.0, math.inf, 0.5], np.float32)
    mask = np.array([True, False, True, False, True])
    gradient = np.asarray(jax.grad(loss)(rewards, mask))
    assert np.isfinite(gradient).all()
    assert (gradient[~mask] == 0).all()
    assert (gradient[mask] != 0).all()
    # The advantages do not change when all rewards move together.
    assert abs(gradient.sum()) < 1e-5


@pytest.mark.parametrize("mask", [[False] * 3, [True, False, False], [True] * 3])
def test_gradient_is_zero_without_signal(mask):
    rewards = np.array([0.3, 0.3, 0.3], np.float32)
    gradient = jax.grad(lambda r: jnp.sum(group_advantages(r, np.array(mask)) ** 2))(rewards)
    assert np.asarray(gradient).tolist() == [0.0] * 3


def test_gradient_equals_finite_differences():
    rewards = np.array([0.2, 1.1, -0.3, 0.8], np.float32)
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    found = jax.grad(
        lambda r: jnp.sum(group_advantages(r, np.ones(4, bool)) * weights.astype(np.float32))
    )(rewards)
    for i in range(4):
        step = np.eye(4)[i] * 1e-5
        up, down = (reference.advantages((rewards + s).tolist()) for s in (step, -step))
        assert found[i] == pytest.approx(np.dot(weights, np.subtract(up, down)) / 2e-5, rel=1e-3)


def test_nan_of_a_member_is_not_taken_for_no_signal():
    assert np.isnan(one([1.0, math.nan, 0.0])).all()


def test_vmap_equals_loop_and_jit_equals_eager():
    rewards = RNG.normal(size=(7, 20)).astype(np.float32)
    mask = RNG.random((7, 20)) < 0.7
    batched = jax.vmap(group_advantages, in_axes=-1, out_axes=-1)
    found = np.asarray(jax.jit(batched)(rewards, mask))
    looped = np.stack([one(rewards[:, g], mask[:, g]) for g in range(20)], axis=1)
    np.testing.assert_allclose(found, looped, atol=1e-6)
    np.testing.assert_allclose(found, np.asarray(batched(rewards, mask)), atol=1e-6)


def random_log(rows=400):
    question = RNG.integers(0, 60, rows)
    question[:90] = 1000  # one large group
    rewards = RNG.choice([0.0, 0.25, 1.0, -0.7], rows)
    rewards[question % 3 == 0] = 0.1
    rewards[RNG.random(rows) < 0.1] = math.nan
    return question, rewards


def test_by_question_against_the_reference():
    question, rewards = random_log()
    found = advantages_by_question(question, rewards)
    for q in np.unique(question):
        rows = np.flatnonzero(question == q)
        np.testing.assert_allclose(
            found[rows], reference.advantages(rewards[rows].tolist()), atol=1e-5
        )


def test_by_question_does_not_depend_on_the_order_of_rows(monkeypatch):
    question, rewards = random_log()
    whole = advantages_by_question(question, rewards)
    order = RNG.permutation(len(question))
    assert np.array_equal(advantages_by_question(question[order], rewards[order]), whole[order])
    monkeypatch.setattr(groups, "_MEMBERS_PER_CALL", 64)
    np.testing.assert_allclose(advantages_by_question(question, rewards), whole, atol=1e-6)


def test_by_question_compiles_one_program_a_power_of_two():
    groups._advantages.clear_cache()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, 9, 30)
        question = np.repeat(np.arange(30), sizes)
        advantages_by_question(question, rng.normal(size=len(question)))
    assert groups._advantages._cache_size() <= 3  # groups of 2, of 3..4, of 5..8


def test_by_question_of_nothing():
    assert advantages_by_question(np.zeros(0, int), np.zeros(0)).shape == (0,)
    assert advantages_by_question(np.zeros(2, int), [math.nan, math.nan]).tolist() == [0.0, 0.0]


def test_by_question_refuses_what_it_would_have_to_guess():
    with pytest.raises(ValueError, match="one reward a row"):
        advantages_by_question(np.zeros(3, int), [1.0])
    with pytest.raises(ValueError, match="finite"):
        advantages_by_question(np.zeros(2, int), [1.0, math.inf])


def test_signal_by_hand():
    # p = 1/4 and weight 2: mean square 4 * 3/16. Rewards (1, 0, 0, 0) become (-1, 0, 0, 0).
    found = signal(
        np.float32([1, 0, 0, 0]),
        np.array([True, False, False, False]),
        np.ones(4, bool),
        weight=2.0,
    )
    counts = [int(x) for x in (found.groups, found.rows, found.holding, found.constant)]
    assert counts == [1, 1, 1, 0]
    assert int(found.changed) == 1
    assert float(found.mean_square) == 0.75


def test_signal_against_the_reference():
    rewards = RNG.normal(0.8, 0.6, (300, 6)).round(3)
    rewards[:100] = rewards[:100, :1]
    bits = RNG.random((300, 6)) < 0.3
    bits[::7] = True
    each = jax.vmap(partial(signal, weight=1.6))(
        rewards.astype(np.float32), bits, np.ones((300, 6), bool)
    )
    total = jax.tree.map(lambda leaf: leaf.sum().item(), each)
    expected = reference.signal(zip(rewards.tolist(), bits.tolist(), strict=True), penalty=1.6)
    assert total.groups == expected["groups"]
    assert total.rows == expected["rows_on"]
    assert total.holding == expected["groups_on"]
    assert total.constant == expected["constant"]
    assert total.changed == expected["changed"]
    mean_square = sum(reference.mean_square_contribution(row, 1.6) for row in bits.tolist())
    assert total.mean_square == pytest.approx(mean_square, rel=1e-5)


@settings(deadline=None)
@given(st.lists(st.floats(0.5, 0.5 + 2**-13, width=32), min_size=1, max_size=8), st.booleans())
def test_a_detector_that_is_constant_changes_nothing(rewards, value):
    # In float32 a shift by 1.6 changes what sets rewards so close together apart.
    padded = np.float32(rewards + [math.nan] * (8 - len(rewards)))
    found = jax.jit(signal)(padded, np.full(8, value), ~np.isnan(padded), weight=np.float32(1.6))
    assert (int(found.constant), int(found.changed), float(found.mean_square)) == (1, 0, 0.0)


def test_signal_sees_members_only():
    rewards = np.float32([1, 0, math.nan])
    mask = np.array([True, True, False])
    found = signal(rewards, np.array([False, False, True]), mask, weight=1.0)
    assert [int(x) for x in (found.rows, found.holding, found.constant)] == [0, 0, 1]
    nobody = signal(rewards, np.ones(3, bool), np.zeros(3, bool), weight=1.0)
    assert [leaf.item() for leaf in jax.tree.leaves(nobody)] == [0] * 6


_batched = jax.jit(batch_advantages, static_argnames="scale")


def test_batch_scale_by_hand():
    # Groups 1, 0 and 3, 2 and flat 1, 1: centred +-1/2, +-1/2, 0. All six have mean 4/3 and squares
    # 1/9, 16/9, 25/9, 4/9, 1/9, 1/9 = 48/9 over n - 1 = 5: variance 16/15.
    rewards = np.float32([[1, 0], [3, 2], [1, 1]])
    found = _batched(rewards, np.ones((3, 2), bool), scale="batch")
    half = 0.5 / (math.sqrt(16 / 15) + 1e-6)
    np.testing.assert_allclose(found, [[half, -half], [half, -half], [0, 0]], rtol=1e-6)


def plain_batch(groups):
    """Advantages under the scale "batch" of lists of rewards, one member at a time."""
    everyone = [r for group in groups for r in group]
    sd = statistics.stdev(everyone) if len(everyone) > 1 else 0.0
    out = []
    for group in groups:
        flat = len(group) < 2 or max(group) - min(group) <= 1e-6
        mean = math.fsum(group) / max(len(group), 1)
        out.append([0.0 if flat else (r - mean) / (sd + 1e-6) for r in group])
    return out


def test_batch_scale_against_the_reference_masked_or_filtered():
    for _ in range(20):
        rewards = RNG.normal(5, 1, (7, 5)).round(2).astype(np.float32)
        rewards[2] = 5.5
        mask = RNG.random((7, 5)) < 0.7
        mask[4] = False
        dirty = np.where(mask, rewards, RNG.choice([math.nan, math.inf], rewards.shape))
        found = np.asarray(_batched(dirty.astype(np.float32), mask, scale="batch"))
        assert not found[~mask].any()
        groups_of = [row[on].tolist() for row, on in zip(rewards, mask, strict=True)]
        for row, on, right in zip(found, mask, plain_batch(groups_of), strict=True):
            np.testing.assert_allclose(row[on], right, atol=1e-4)
        eager = batch_advantages(dirty.astype(np.float32), mask, scale="batch")
        np.testing.assert_allclose(eager, found, atol=1e-6)


@pytest.mark.parametrize("scale", ["sd", "none"])
def test_other_scales_of_a_batch_are_those_of_its_groups(scale):
    rewards, mask = RNG.normal(size=(6, 4)).astype(np.float32), RNG.random((6, 4)) < 0.8
    found = np.asarray(_batched(rewards, mask, scale=scale))
    for row in range(6):
        np.testing.assert_allclose(found[row], one(rewards[row], mask[row], scale=scale), atol=1e-6)


@pytest.mark.parametrize("scale", ["sd", "none", "batch"])
def test_batches_without_signal_give_zero_and_no_gradient(scale):
    @jax.jit
    @jax.value_and_grad
    def pushed(rewards, mask):
        return jnp.sum(batch_advantages(rewards, mask, scale=scale) * 3.0)

    for rewards, mask in (
        (np.full((3, 4), 0.1, np.float32), np.ones((3, 4), bool)),
        (np.full((3, 4), math.nan, np.float32), np.zeros((3, 4), bool)),
        (np.float32([[0.5, math.inf]]), np.array([[True, False]])),
        (np.zeros((0, 4), np.float32), np.zeros((0, 4), bool)),
    ):
        value, gradient = pushed(rewards, mask)
        assert value == 0 and not np.asarray(gradient).any()


def test_nan_of_a_member_shows_in_a_batch():
    rewards = np.float32([[1, math.nan], [1, 0]])
    assert np.isnan(_batched(rewards, np.ones((2, 2), bool), scale="batch")).all()


def test_flat_groups():
    on = np.ones(3, bool)
    assert bool(is_flat(np.float32([0.1 + 0.2, 0.3, 0.3]), on))
    assert not bool(is_flat(np.float32([0.3, 0.30001, 0.3]), on))
    assert bool(is_flat(np.float32([0.3, 0.30001, 0.3]), on, spread=1e-4))
    assert bool(is_flat(np.float32([0.3, 9, math.nan]), np.array([1, 0, 0], bool)))
    assert bool(is_flat(np.float32([math.nan] * 3), ~on))
    assert not bool(is_flat(np.float32([0.3, math.nan, 0.3]), on))


def plain_sum(values, weights):
    known = [w * v for v, w in zip(values, weights, strict=True) if not math.isnan(v)]
    return math.fsum(known) if known else math.nan


def test_rewards_of_several_functions():
    # Both known: 1 + 0.5 * 0.5; one of them unknown: the other; none known: unknown.
    values = np.float32([[1, math.nan, 0.5, math.nan], [0.5, 1, math.nan, math.nan]])
    found = combine_rewards(values, np.float32([1, 0.5]))
    np.testing.assert_array_equal(found, [1.25, 0.5, 0.5, math.nan])
    values = RNG.normal(size=(3, 50)).astype(np.float32)
    values[RNG.random(values.shape) < 0.5] = math.nan
    weights = np.float32([1, -0.25, 2])
    right = [plain_sum(values[:, b].tolist(), weights.tolist()) for b in range(50)]
    assert np.isnan(right).any()
    np.testing.assert_allclose(jax.jit(combine_rewards)(values, weights), right, atol=1e-5)
    assert np.isnan(combine_rewards(values[:0], weights[:0])).all()


def test_members_are_scored_and_trainable():
    rewards = np.float32([[1, math.nan, 0, 0.5]])
    mask = usable(rewards, np.int32([[3, 4, 0, 1]]))
    assert mask.tolist() == [[True, False, False, True]]
    # 1 and 0.5: mean 3/4, sd sqrt(1/8).
    half = 0.25 / (math.sqrt(1 / 8) + 1e-6)
    np.testing.assert_allclose(
        _batched(rewards, np.asarray(mask)), [[half, 0, 0, -half]], rtol=1e-6
    )


def detectors_of_a_batch():
    rewards = RNG.normal(0.8, 0.6, (40, 6)).round(3).astype(np.float32)
    rewards[:10] = rewards[:10, :1]
    bits = RNG.random((3, 40, 6)) < np.array([0.05, 0.4, 2.0])[:, None, None]
    bits[1, ::7] = True
    return rewards, bits, np.float32([0.5, 1.6, 1.0])


@pytest.mark.parametrize("scale", ["sd", "none"])
def test_signals_of_all_detectors(scale):
    rewards, bits, weights = detectors_of_a_batch()
    mask = np.ones((40, 6), bool)
    without = np.broadcast_to(rewards, bits.shape)
    found = jax.jit(partial(signals, scale=scale))(without, bits, mask, weights)
    by_group = jax.jit(
        jax.vmap(lambda r, b, m, w: signal(r, b, m, weight=w, scale=scale), (0, 0, 0, None))
    )
    for d in range(3):
        each = by_group(rewards, bits[d], mask, weights[d])
        for one_leaf, leaf in zip(jax.tree.leaves(each), jax.tree.leaves(found), strict=True):
            np.testing.assert_allclose(leaf[d], one_leaf.sum(axis=0), rtol=1e-5)
        if scale == "sd":
            rows = zip(rewards.tolist(), bits[d].tolist(), strict=True)
            right = reference.signal(rows, penalty=float(weights[d]))
            assert int(found.changed[d]) == right["changed"]
            assert int(found.unchanged[d]) == right["unchanged"]
    assert int(found.constant[2]) == 40 and int(found.changed[2]) == 0


def test_signals_under_the_batch_scale():
    rewards, bits, weights = detectors_of_a_batch()
    mask = RNG.random((40, 6)) < 0.9
    without = np.broadcast_to(rewards, bits.shape)
    found = jax.jit(partial(signals, scale="batch"))(without, bits, mask, weights)
    same = jax.jit(signals)(without, bits, mask, weights)
    for name in ("groups", "rows", "holding", "constant", "mean_square"):
        np.testing.assert_allclose(getattr(found, name), getattr(same, name), rtol=1e-6)
    for d in range(3):
        changed = 0
        before, after = (
            plain_batch([row[on].tolist() for row, on in zip(table, mask, strict=True)])
            for table in (rewards, rewards - weights[d] * bits[d])
        )
        for one_group, other in zip(before, after, strict=True):
            changed += any(abs(a - b) > 1e-6 for a, b in zip(one_group, other, strict=True))
        assert int(found.changed[d]) == (changed if d < 2 else 0)
    # The common sd reaches groups in which the detector is constant, if rewards differ there.
    assert int(found.changed[1]) > int(same.changed[1])


@pytest.mark.parametrize("scale", ["sd", "batch"])
def test_a_detector_that_is_constant_over_the_batch_changes_nothing(scale):
    # In float32 a shift by 1.6 changes what sets rewards so close together apart.
    rewards = np.float32([[[0.5, 0.50001, 0.50003], [0.5, 0.50002, 0.5]]])
    every = np.ones((1, 2, 3), bool)
    found = jax.jit(partial(signals, scale=scale))(rewards, every, every[0], np.float32([1.6]))
    assert [int(x[0]) for x in (found.constant, found.changed, found.unchanged)] == [2, 0, 2]


def test_rewards_as_paid_less_the_penalty():
    # Paid 1 - 0.5, 0: the detector makes the difference smaller. Without it the group has 1, 0.
    paid, bits = np.float32([[0.5, 0.0]]), np.array([[[True, False]]])
    weights = np.float32([0.5])
    without = paid[None] + weights[:, None, None] * bits.astype(np.float32)
    found = jax.jit(partial(signals, scale="none"))(without, bits, np.ones((1, 2), bool), weights)
    assert [int(x[0]) for x in (found.rows, found.changed, found.unchanged)] == [1, 1, 0]
    # With sd both give +-0.7071 but for eps / sd.
    assert found.mean_square.tolist() == [0.0625]


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_lowers_for(platform):
    rewards, mask = np.zeros((4, 8), np.float32), np.ones((4, 8), bool)
    over_last = partial(jax.vmap, in_axes=-1, out_axes=-1)
    for kernel, arguments in (
        (over_last(group_advantages), (rewards, mask)),
        (over_last(partial(signal, weight=1.0)), (rewards, mask, mask)),
    ):
        exported = jax.export.export(jax.jit(kernel), platforms=[platform])(*arguments)
        assert exported.platforms == (platform,)


def test_strict_promotion_of_ranks_and_types():
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        group_advantages(np.zeros(5, np.float32), np.ones(5, bool), scale="none")
        signal(np.zeros(5, np.float32), np.ones(5, bool), np.ones(5, bool), weight=np.float32(1))
