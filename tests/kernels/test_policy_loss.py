import math
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import policy_loss as reference

from herald_jax.kernels.policy_loss import kl, objective, token_advantages, token_weights

RNG = np.random.default_rng(11)
CLIPS = {"clip_low": 0.2, "clip_high": 0.28}
WRONG = [math.nan, math.inf, -math.inf, 1e38]

clipped = jax.jit(partial(objective, **CLIPS))
weights = jax.jit(token_weights, static_argnums=(1, 2))


def floats(values):
    return np.array(values, np.float32)


def random_tokens(size=400):
    old = floats(-RNG.exponential(1.5, size))
    logp = (old + RNG.normal(0, 0.4, size)).astype(np.float32)
    logp[:10] = old[:10]
    logp[10:20] += 60
    logp[20:30] -= 60
    advantage = floats(RNG.normal(0, 1, size))
    advantage[::9] = 0
    return logp, old, advantage, RNG.random(size) < 0.7


def test_objective_by_hand():
    # Ratios 3/2, 3/2, 1/2, 1/2; clips at 4/5 and 32/25. The clip binds where it makes the value
    # smaller: 32/25 for A = 1 and ratio 3/2, -4/5 for A = -1 and ratio 1/2.
    logp = floats([math.log(1.5), math.log(1.5), math.log(0.5), math.log(0.5)])
    found = clipped(logp, np.zeros(4, np.float32), floats([1, -1, 1, -1]), np.ones(4, bool))
    np.testing.assert_allclose(found.value, [1.28, -1.5, 0.5, -0.8], rtol=1e-6)
    np.testing.assert_allclose(found.ratio, [1.5, 1.5, 0.5, 0.5], rtol=1e-6)
    assert found.clipped_high.tolist() == [True, False, False, False]
    assert found.clipped_low.tolist() == [False, False, False, True]


def test_objective_and_its_gradient_against_the_reference():
    logp, old, advantage, mask = random_tokens()
    found = clipped(logp, old, advantage, mask)
    slope = jax.grad(lambda x: clipped(x, old, advantage, mask).value.sum())(logp)
    seen = set()
    for t in np.flatnonzero(mask):
        right = reference.objective(
            float(logp[t]), float(old[t]), float(advantage[t]), 0.2, 0.28, 20
        )
        assert found.value[t] == pytest.approx(right.value, rel=1e-5)
        assert found.ratio[t] == pytest.approx(right.ratio, rel=1e-5)
        assert slope[t] == pytest.approx(right.slope, rel=1e-5)
        assert bool(found.clipped_low[t]) == right.clipped_low
        assert bool(found.clipped_high[t]) == right.clipped_high
        seen.add((right.clipped_low, right.clipped_high, right.slope == 0))
    assert len(seen) == 4
    out = ~mask
    for leaf in (found.value, slope, found.clipped_low, found.clipped_high):
        assert not np.asarray(leaf)[out].any()
    assert (np.asarray(found.ratio)[out] == 1).all()


def test_a_ratio_of_one_has_the_whole_gradient():
    # Where both sides of the minimum are equal, `minimum` would give half to each.
    one = floats([-1.0, -1.0])
    slope = jax.grad(lambda x: clipped(x, one, floats([2, -2]), np.ones(2, bool)).value.sum())(one)
    assert slope.tolist() == [2.0, -2.0]
    never = partial(objective, clip_low=0.0, clip_high=0.0)
    slope = jax.grad(lambda x: never(x, one, floats([2, -2]), np.ones(2, bool)).value.sum())(one)
    assert slope.tolist() == [2.0, -2.0]


def test_clips_that_never_bind():
    logp, old, advantage, mask = random_tokens()
    free = partial(objective, clip_low=1.0, clip_high=math.inf)
    found = free(logp, old, advantage, mask)
    assert not found.clipped_low.any() and not found.clipped_high.any()
    np.testing.assert_array_equal(
        found.value, np.where(mask, np.asarray(found.ratio) * advantage, 0)
    )
    for place in range(3):
        gradient = jax.grad(lambda *x: free(*x, mask).value.sum(), argnums=place)(
            logp, old, advantage
        )
        assert np.isfinite(gradient).all()


def test_log_ratios_are_bounded():
    far = floats([500, -500, -math.inf])
    near = floats([-500, 500, 0])
    found = partial(objective, clip_low=1.0, clip_high=math.inf)(
        far, near, np.ones(3, np.float32), np.ones(3, bool)
    )
    np.testing.assert_allclose(found.value, np.exp([20, -20, -20]), rtol=1e-5)
    gradient = jax.grad(
        lambda x: objective(
            x, near, np.ones(3, np.float32), np.ones(3, bool), clip_low=1.0, clip_high=math.inf
        ).value.sum()
    )(far)
    assert gradient.tolist() == [0.0] * 3


def poisoned(values, mask, rng):
    """The same inside the mask, and outside whatever an array can hold."""
    return np.where(mask, values, rng.choice(WRONG, values.shape)).astype(np.float32)


@pytest.mark.parametrize("members", [0.0, 0.6])
def test_nothing_outside_the_mask_reaches_value_or_gradient(members):
    rng = np.random.default_rng(3)
    logp, old, advantage, mask = random_tokens()
    mask &= rng.random(mask.shape) < members

    def loss(logp, old, advantage, reference):
        value = objective(logp, old, advantage, mask, **CLIPS).value
        return jnp.sum(value + kl(logp, reference, mask))

    clean = (logp, old, advantage, old)
    dirty = tuple(poisoned(values, mask, rng) for values in clean)
    places = (0, 1, 2, 3)
    for one, other in zip(
        jax.value_and_grad(loss, places)(*clean)[1],
        jax.value_and_grad(loss, places)(*dirty)[1],
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
        assert np.isfinite(other).all()
        assert not np.asarray(other)[~mask].any()
    assert loss(*dirty) == loss(*clean)
    assert mask.any() or loss(*dirty) == 0


def test_what_is_not_a_number_inside_the_mask_shows():
    one, on = np.ones(1, np.float32), np.ones(1, bool)
    bad = floats([math.nan])
    assert np.isnan(objective(bad, one, one, on, **CLIPS).value).all()
    assert np.isnan(objective(one, one, bad, on, **CLIPS).value).all()
    assert np.isnan(kl(one, bad, on)).all()
    below = floats([-math.inf])
    assert np.isnan(objective(below, below, one, on, **CLIPS).value).all()


def test_kl_by_hand():
    # d = ln 2: 2 - ln 2 - 1; d = -ln 2: 1/2 + ln 2 - 1; equal: 0.
    found = kl(np.zeros(3, np.float32), floats([math.log(2), -math.log(2), 0]), np.ones(3, bool))
    np.testing.assert_allclose(found, [1 - math.log(2), math.log(2) - 0.5, 0], rtol=1e-6)


def test_kl_and_its_gradient_against_the_reference():
    logp = floats(-RNG.exponential(2, 300))
    other = logp + floats(RNG.normal(0, 1, 300) * 10.0 ** RNG.integers(-4, 2, 300))
    other[:3] = logp[:3] + floats([19.5, 120, 1000])
    mask = np.ones(300, bool)
    found = np.asarray(jax.jit(kl)(logp, other, mask))
    slope = np.asarray(jax.grad(lambda x: kl(x, other, mask).sum())(logp))
    for t in range(300):
        # The difference is rounded before the kernel's own arithmetic.
        value, right = reference.kl(0.0, float(other[t] - logp[t]), 20.0)
        assert found[t] == pytest.approx(value, rel=1e-5, abs=abs(float(other[t] - logp[t])) * 3e-7)
        assert slope[t] == pytest.approx(right, rel=1e-5, abs=1e-6)
    assert slope[1] == slope[2] == 0 and found[1] == found[2]
    assert slope[0] != 0


def test_kl_on_the_cap_has_the_whole_gradient():
    at, on = floats([20.0]), np.ones(1, bool)
    slope = jax.grad(lambda x: kl(x, at, on).sum())(np.zeros(1, np.float32))
    np.testing.assert_allclose(slope, [1 - math.exp(20)], rtol=1e-5)


def test_weights_by_hand():
    # Rows of 4, 1, 0 and 2 tokens: 7 tokens, 3 rows that have one.
    mask = np.zeros((4, 5), bool)
    mask[0, :4] = mask[1, 2] = mask[3, 3:] = True
    token = np.asarray(weights(mask, "token_mean", None))
    np.testing.assert_allclose(token, np.where(mask, 1 / 7, 0), rtol=1e-6)
    row = np.asarray(weights(mask, "row_mean", None))
    np.testing.assert_allclose(row.sum(axis=1), [1 / 3, 1 / 3, 0, 1 / 3], rtol=1e-6)
    assert row[0, 0] == pytest.approx(1 / 12)
    fixed = np.asarray(weights(mask, "fixed_length", 10.0))
    np.testing.assert_allclose(fixed, np.where(mask, 1 / 30, 0), rtol=1e-6)


@pytest.mark.parametrize("aggregation", ["token_mean", "row_mean", "fixed_length"])
def test_weights_against_the_reference_and_padded_equals_filtered(aggregation):
    mask = RNG.random((12, 9)) < 0.4
    mask[4] = False
    mask[:, 7:] = False
    length = 7.0 if aggregation == "fixed_length" else None
    found = np.asarray(weights(mask, aggregation, length))
    right = reference.token_weights(mask.tolist(), aggregation, length and Fraction(length))
    np.testing.assert_allclose(found, np.array(right, float), rtol=1e-6)
    kept = mask.any(axis=1)
    filtered = np.asarray(weights(mask[kept, :7], aggregation, length))
    np.testing.assert_array_equal(found[kept, :7], filtered)
    np.testing.assert_array_equal(token_weights(mask, aggregation, length), found)
    for empty in (np.zeros((3, 4), bool), np.zeros((0, 4), bool), np.zeros((3, 0), bool)):
        none = np.asarray(weights(empty, aggregation, length))
        assert none.shape == empty.shape and not none.any()


def test_micro_batches_give_the_loss_of_the_whole():
    loss = RNG.normal(size=(12, 9)).astype(np.float32)
    mask = RNG.random((12, 9)) < np.linspace(0, 1, 12)[:, None]
    whole = np.asarray(weights(mask, "token_mean", None))
    assert (whole * loss).sum() == pytest.approx(loss[mask].mean(), rel=1e-5)
    parts = sum((whole[i : i + 4] * loss[i : i + 4]).sum() for i in (0, 4, 8))
    assert parts == pytest.approx((whole * loss).sum(), rel=1e-6)


def test_what_is_refused():
    one, on = np.ones(2, np.float32), np.ones(2, bool)
    for options in ({"clip_low": -0.1, "clip_high": 0.2}, {"clip_low": 0.1, "clip_high": -0.2}):
        with pytest.raises(ValueError, match="clips are 0 or more"):
            objective(one, one, one, on, **options)
    with pytest.raises(ValueError, match="bound of the log ratio"):
        objective(one, one, one, on, **CLIPS, log_ratio_bound=0.0)
    with pytest.raises(ValueError, match="cap is above 0"):
        kl(one, one, on, cap=100.0)
    with pytest.raises(ValueError, match="length above 0"):
        token_weights(on[None], "fixed_length")
    with pytest.raises(ValueError, match="row_mean"):
        token_weights(on[None], "mean")
    with pytest.raises(AssertionError):
        objective(one, one, one[:1], on, **CLIPS)
    with pytest.raises(AssertionError):
        objective(one, one, one, one, **CLIPS)


def test_token_advantages_by_hand():
    action = np.array([1, 1, 1, 0, 1, 1, 0], bool)
    query = np.array([-1, 0, 0, 0, 1, -1, 5], np.int32)
    found = token_advantages(np.float32(1.5), action, floats([0.25, -2]), query)
    assert found.tolist() == [1.5, 1.75, 1.75, 0, -0.5, 1.5, 0]


def test_token_advantages_against_the_reference():
    for _ in range(20):
        action = RNG.random(30) < 0.6
        query = RNG.integers(-1, 5, 30).astype(np.int32)
        credit = floats(RNG.normal(size=4))
        found = jax.jit(token_advantages)(np.float32(-0.5), action, credit, query)
        right = reference.token_advantages(-0.5, action.tolist(), credit.tolist(), query.tolist())
        np.testing.assert_allclose(found, right, rtol=1e-6)
    # A credit that no token belongs to is not read; no search at all is none.
    lost = floats([math.nan, 1])
    found = token_advantages(np.float32(1), np.ones(2, bool), lost, np.array([1, -1], np.int32))
    assert found.tolist() == [2.0, 1.0]
    none = token_advantages(np.float32(1), action, np.zeros(0, np.float32), query)
    assert none.tolist() == action.astype(float).tolist()


def test_jit_equals_eager_and_batches_equal_rows():
    logp, old, advantage, mask = random_tokens()
    eager = objective(logp, old, advantage, mask, **CLIPS)
    for one, other in zip(
        jax.tree.leaves(eager), jax.tree.leaves(clipped(logp, old, advantage, mask)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    folded = [values.reshape(20, 20) for values in (logp, old, advantage, mask)]
    np.testing.assert_array_equal(
        np.asarray(clipped(*folded).value).reshape(-1), clipped(logp, old, advantage, mask).value
    )
