import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import retrieval_credit as reference

from herald_jax.kernels import groups
from herald_jax.kernels.policy_loss import objective, token_advantages, token_weights
from herald_jax.kernels.retrieval_credit import (
    answer_match,
    coverage,
    events,
    kept,
    local_credit,
    permute,
    scalar_bonus,
)
from herald_jax.types import PAD

RNG = np.random.default_rng(29)

measured = jax.jit(coverage)
risen = jax.jit(events)
credited = jax.jit(local_credit)
shuffled = jax.jit(permute)


def ids(rows, width):
    out = np.full((len(rows), width), PAD, np.int32)
    for place, row in enumerate(rows):
        out[place, : len(row)] = row
    return out


def covered(retrieved, supports, depends, nodes=None, width=4):
    """Coverage of lists; `depends` maps a node to those it depends on."""
    count = len(supports)
    needs = np.zeros((count, count), bool)
    for node, others in depends.items():
        needs[node, list(others)] = True
    nodes = np.ones(count, bool) if nodes is None else nodes
    found = measured(ids(retrieved, width), ids(supports, width), needs, nodes)
    return np.asarray(found.cov), np.asarray(found.cov_dep)


def test_the_worked_example():
    # A <- B <- C: B depends on A, C on B. A and C are retrieved first, then B.
    chain = {1: [0], 2: [1]}
    cov, dep = covered([[10], [12], [11]], [[10], [11], [12]], chain)
    np.testing.assert_allclose(cov, [1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(dep, [1 / 3, 1 / 3, 1])
    # Both at once: 2/3 and 1/3, and the search for B then brings 1/3 and 2/3.
    cov, dep = covered([[10, 12], [11]], [[10], [11], [12]], chain)
    np.testing.assert_allclose(cov, [2 / 3, 1])
    np.testing.assert_allclose(dep, [1 / 3, 1])
    ran = np.ones(2, bool)
    np.testing.assert_allclose(risen(cov, ran), [2 / 3, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(risen(dep, ran), [1 / 3, 2 / 3], rtol=1e-6)


def test_a_node_needs_all_its_support_by_any_searches():
    cov, dep = covered([[5, 1], [7], [2, 5]], [[1, 2], [7]], {})
    np.testing.assert_allclose(cov, [0, 0.5, 1])
    np.testing.assert_allclose(dep, cov)


def test_nodes_that_nothing_can_show_are_never_covered():
    # Node 1 has no support id; node 2 depends on it.
    cov, dep = covered([[1, 3], [1, 2, 3]], [[1], [], [3]], {2: [1]})
    np.testing.assert_allclose(cov, [2 / 3, 2 / 3])
    np.testing.assert_allclose(dep, [1 / 3, 1 / 3])


@pytest.mark.parametrize("circle", [{0: [0]}, {0: [1], 1: [0]}, {0: [1], 1: [2], 2: [0]}])
def test_a_circle_never_counts(circle):
    cov, dep = covered([[1, 2, 3]], [[1], [2], [3]], circle)
    assert cov.tolist() == [1.0]
    np.testing.assert_allclose(dep, [1 - len(circle) / 3], atol=1e-7)


def test_no_nodes_no_searches_no_results():
    for nodes in ([], [False, False]):
        supports = [[1]] * len(nodes)
        cov, dep = covered([[1], []], supports, {}, np.array(nodes, bool))
        assert cov.tolist() == dep.tolist() == [0.0, 0.0]
    assert covered([], [[1]], {})[0].shape == (0,)
    assert covered([[], []], [[1]], {})[0].tolist() == [0.0, 0.0]


def random_question():
    nodes, searches = int(RNG.integers(1, 6)), int(RNG.integers(0, 6))
    supports = [RNG.choice(9, RNG.integers(0, 4), replace=False).tolist() for _ in range(nodes)]
    retrieved = [RNG.integers(0, 9, RNG.integers(0, 5)).tolist() for _ in range(searches)]
    pairs = RNG.random((nodes, nodes)) < 0.25
    if RNG.random() < 0.7:
        pairs = np.tril(pairs, -1)  # without circles
    return retrieved, supports, {n: np.flatnonzero(row).tolist() for n, row in enumerate(pairs)}


def test_coverage_against_the_reference_padded_or_filtered():
    unlocked = circles = 0
    for _ in range(150):
        retrieved, supports, depends = random_question()
        cov, dep = reference.coverage(retrieved, supports, depends)
        # Nodes and searches padded to one size, the places of padding full of what must not count.
        wide = np.zeros((7, 7), bool)
        for node, others in depends.items():
            wide[node, others] = True
        wide[:, len(supports) :] = wide[len(supports) :, :] = True
        asked = ids(supports + [[1]] * (7 - len(supports)), 4)
        given = ids(retrieved + [[]] * (6 - len(retrieved)), 5)
        found = measured(given, asked, wide, np.arange(7) < len(supports))
        ran = len(retrieved)
        np.testing.assert_allclose(found.cov[:ran], np.array(cov, float), atol=1e-6)
        np.testing.assert_allclose(found.cov_dep[:ran], np.array(dep, float), atol=1e-6)
        before = float(found.cov[ran - 1]) if ran else 0.0
        assert np.asarray(found.cov[ran:]).tolist() == [before] * (6 - ran)
        unlocked += sum(a == b != c for a, b, c in zip(cov, cov[1:], dep[1:], strict=False))
        circles += any(c != d for c, d in zip(cov, dep, strict=True))
    assert unlocked and circles


def test_jit_equals_eager_and_vmap_equals_loop():
    shape = (4, 3, 5)
    retrieved = RNG.integers(-1, 6, (*shape,)).astype(np.int32)
    supports = RNG.integers(-1, 6, (4, 3, 2)).astype(np.int32)
    needs, nodes = RNG.random((4, 3, 3)) < 0.3, RNG.random((4, 3)) < 0.8
    batched = jax.jit(jax.vmap(coverage))(retrieved, supports, needs, nodes)
    eager = coverage(retrieved[0], supports[0], needs[0], nodes[0])
    np.testing.assert_array_equal(eager.cov_dep, batched.cov_dep[0])
    for row in range(4):
        one = measured(retrieved[row], supports[row], needs[row], nodes[row])
        np.testing.assert_array_equal(batched.cov[row], one.cov)
        np.testing.assert_array_equal(batched.cov_dep[row], one.cov_dep)


def test_events_by_hand():
    # 0.5, then back to 0.25 (no event), then 0.75: 0.25 above the largest before.
    values = np.float32([0.5, 0.25, 0.75, 0.75])
    assert risen(values, np.ones(4, bool)).tolist() == [0.5, 0, 0.25, 0]
    # What was not executed is not read, not even as the largest before.
    values = np.float32([0.5, 9, 0.75, math.nan])
    assert risen(values, np.array([1, 0, 1, 0], bool)).tolist() == [0.5, 0, 0.25, 0]
    assert risen(np.float32([-1, 0.5]), np.ones(2, bool)).tolist() == [0, 0.5]
    assert risen(np.zeros(0, np.float32), np.zeros(0, bool)).shape == (0,)
    assert np.isnan(risen(np.float32([math.nan]), np.ones(1, bool))).all()


def test_events_against_the_reference():
    for _ in range(60):
        values = RNG.random(6).round(2).astype(np.float32)
        ran = RNG.random(6) < 0.7
        right = reference.events(
            [float(v) if r else None for v, r in zip(values, ran, strict=True)]
        )
        dirty = np.where(ran, values, np.float32(math.nan))
        np.testing.assert_allclose(risen(dirty, ran), right, atol=1e-6)
        np.testing.assert_allclose(events(dirty, ran), right, atol=1e-6)
        np.testing.assert_allclose(np.asarray(risen(dirty, ran))[ran], risen(values[ran], ran[ran]))
        # Events of a signal add up to its largest value.
        largest = max([0.0, *values[ran].tolist()])
        assert float(scalar_bonus(risen(dirty, ran))) == pytest.approx(0.25 * largest, abs=1e-6)


def test_answer_match_stays():
    matched = np.array([0, 1, 1, 0, 1], bool)
    ran = np.array([1, 0, 1, 1, 1], bool)
    values = answer_match(matched, ran)
    assert values.tolist() == [0, 0, 1, 1, 1]
    assert risen(values, ran).tolist() == [0, 0, 1, 0, 0]


def test_the_scalar_bonus_by_hand():
    assert float(scalar_bonus(np.float32([0.5, 0, 0.25]))) == 0.1875
    assert float(scalar_bonus(np.float32([0.5, 0, 0.25]), weight=2.0)) == 1.5


def test_local_credit_by_hand():
    # Step 0: events 1/2, 0, 1/4 of three rollouts, mean 1/4; step 1 was executed by two, 1/2 and 0.
    given = np.float32([[0.5, 0.5], [0.0, 0.0], [0.25, math.nan]])
    ran = np.array([[1, 1], [1, 1], [1, 0]], bool)
    call = np.array([[6, 8], [9, 4], [5, 5]], np.int32)
    query = np.array([[3, 4], [3, 0], [5, 5]], np.int32)
    found = credited(given, ran, call, query, np.ones(3, bool))
    # 0.5 * 1/4 * 6/3, 0.5 * 1/4 * 8/4; 0.5 * -1/4 * 9/3, no query; 0, not executed.
    assert found.tolist() == [[0.25, 0.25], [-0.375, 0], [0, 0]]
    # A truncated rollout gets none, and the others are measured against it all the same.
    found = credited(given, ran, call, query, np.array([1, 0, 1], bool))
    assert found.tolist() == [[0.25, 0.25], [0, 0], [0, 0]]


def random_group():
    given = (RNG.integers(0, 4, (5, 4)) / np.float32(4)).astype(np.float32)
    ran = np.arange(4) < RNG.integers(0, 5, (5, 1))
    call = RNG.integers(3, 20, (5, 4)).astype(np.int32)
    query = RNG.integers(0, 4, (5, 4)).astype(np.int32)
    return given, ran, call, query, RNG.random(5) < 0.8


def test_local_credit_against_the_reference_padded_or_filtered():
    for _ in range(40):
        given, ran, call, query, usable = random_group()
        dirty = np.where(ran, given, np.float32(math.nan))
        found = np.asarray(credited(dirty, ran, call, query, usable))
        right = reference.local_credit(
            [
                [Fraction(float(e)) if r else None for e, r in zip(*row, strict=True)]
                for row in zip(given, ran, strict=True)
            ],
            call.tolist(),
            query.tolist(),
            usable.tolist(),
            Fraction(1, 2),
        )
        np.testing.assert_allclose(found, np.array(right, float), atol=1e-5)
        np.testing.assert_allclose(found, local_credit(dirty, ran, call, query, usable), atol=1e-5)
        pad = ((0, 3), (0, 2))
        wide = credited(
            np.pad(dirty, pad, constant_values=math.nan),
            np.pad(ran, pad),
            np.pad(call, pad),
            np.pad(query, pad),
            np.pad(usable, pad[0], constant_values=True),
        )
        np.testing.assert_allclose(wide[:5, :4], found, atol=1e-6)
        assert not np.asarray(wide[5:]).any() and not np.asarray(wide[:, 4:]).any()


def test_equal_events_give_exactly_nothing():
    # The mean of seven thirds in float32 is not one third.
    given = np.full((7, 1), 1 / 3, np.float32)
    ones = np.ones((7, 1), np.int32)
    found = credited(given, ones > 0, ones * 40, ones, np.ones(7, bool))
    assert found.tolist() == [[0.0]] * 7
    alone = credited(given, np.arange(7)[:, None] == 3, ones, ones, np.ones(7, bool))
    assert alone.tolist() == [[0.0]] * 7
    nobody = credited(given * np.nan, ones < 0, ones, ones, np.ones(7, bool))
    assert nobody.tolist() == [[0.0]] * 7


def test_permute_keeps_the_events_of_each_step():
    given = RNG.random((8, 3)).astype(np.float32)
    ran = np.arange(3) < np.array([3, 3, 2, 3, 1, 0, 2, 3])[:, None]
    dirty = np.where(ran, given, np.float32(math.nan))
    moved = set()
    for seed in range(30):
        found = np.asarray(shuffled(dirty, ran, jax.random.key(seed)))
        assert not found[~ran].any()
        for step in range(3):
            assert sorted(found[ran[:, step], step]) == sorted(given[ran[:, step], step])
        moved.add(found.tobytes())
    np.testing.assert_array_equal(found, permute(dirty, ran, jax.random.key(29)))
    assert len(moved) == 30
    # Steps are shuffled apart from each other.
    same = np.repeat(np.arange(8, dtype=np.float32)[:, None], 3, axis=1)
    found = np.asarray(shuffled(same, np.ones((8, 3), bool), jax.random.key(0)))
    assert not np.array_equal(found[:, 0], found[:, 1])


def test_permute_reaches_every_order_alike():
    # Six orders of three rollouts, 1200 draws: 200 each, sd 13.
    given, ran = np.float32([[0], [1], [2], [9]]), np.array([[1], [1], [1], [0]], bool)
    keys = jax.random.split(jax.random.key(5), 1200)
    found = np.asarray(jax.jit(jax.vmap(permute, (None, None, 0)))(given, ran, keys))[:, :3, 0]
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 6
    assert abs(counts - 200).max() < 60


def test_permute_does_not_see_padding():
    given, ran = RNG.random((5, 2)).astype(np.float32), np.ones((5, 2), bool)
    ran[1] = False
    one = np.asarray(shuffled(given, ran, jax.random.key(1)))
    wide = shuffled(
        np.pad(given, ((0, 3), (0, 1))), np.pad(ran, ((0, 3), (0, 1))), jax.random.key(1)
    )
    np.testing.assert_array_equal(wide[:5, :2], one)
    members = [0, 2, 3, 4]
    filtered = shuffled(given[members], ran[members], jax.random.key(1))
    np.testing.assert_array_equal(filtered, one[members])


def test_controls():
    flat = np.array([True, False])
    assert kept("flat_only", flat).tolist() == [True, False]
    assert kept("no_flat", flat).tolist() == [False, True]
    assert kept("none", flat).tolist() == kept("permute", flat).tolist() == [True, True]
    with pytest.raises(ValueError, match="flat_only or no_flat"):
        kept("flat", flat)


def test_tied_outcomes_teach_queries_alone():
    """Outcomes of a group are tied: no gradient; with local credit one on query tokens alone."""
    rollouts, tokens = 4, 12
    outcomes = np.full(rollouts, 0.6, np.float32)
    action = np.ones((rollouts, tokens), bool)
    action[:, 5:8] = False  # the results of the search
    query = np.full((rollouts, tokens), PAD, np.int32)
    query[:, 2:4] = 0
    raised = np.float32([[0.5], [0.0], [0.5], [1.0]])
    one = np.ones((rollouts, 1), np.int32)
    credit = credited(raised, one > 0, one * 5, one * 2, np.ones(rollouts, bool))
    logp = RNG.normal(-1, 0.1, (rollouts, tokens)).astype(np.float32)
    everyone = np.ones(rollouts, bool)
    assert bool(groups.is_flat(outcomes, everyone))
    outcome = groups.group_advantages(outcomes, everyone)
    weights = token_weights(action, "token_mean")

    def gradient(local):
        advantage = jax.vmap(token_advantages)(outcome, action, local, query)

        def loss(logp_now):
            found = objective(logp_now, logp, advantage, action, clip_low=0.2, clip_high=0.28)
            return -jnp.sum(weights * found.value)

        return np.asarray(jax.grad(loss)(logp))

    assert not gradient(jnp.zeros_like(credit)).any()
    with_credit = gradient(credit)
    # Events are 1/2, 0, 1/2, 1: those above and below their mean move their queries.
    assert ((with_credit != 0) == ((query == 0) & (raised != 0.5))).all()
    assert (with_credit[1, 2:4] > 0).all() and (with_credit[3, 2:4] < 0).all()
