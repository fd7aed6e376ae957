"""From rewards and searches to advantages of tokens, and on to the gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from searched_rollouts import credited, no_searches, searched

from herald_jax.kernels.policy_loss import token_weights
from herald_jax.train.advantages import query_places, spread_advantages
from herald_jax.train.config import Grpo
from herald_jax.train.model import Decoder
from herald_jax.train.model_config import ModelConfig
from herald_jax.train.update import Batch, TrainState, make_step, token_logps
from herald_jax.types import PAD

NAN = np.nan
TIED = [0.3] * 4
# One search each; the first brings all, the second half, the others nothing.
ONE = searched([[1.0], [0.5], [0.0], [0.0]])
# 0.5 · (event - 3/8) · 8/4 tokens.
LOCAL = [0.625, 0.125, -0.375, -0.375]


def test_outcomes_alone():
    found = credited([1, 0, NAN, 0.5], no_searches(4), signal="none")
    # Mean 1/2, sd with n - 1 of (1, 0, 1/2) is 1/2.
    np.testing.assert_allclose(found.advantage, [1, -1, 0, 0], atol=1e-5)
    assert found.member.tolist() == [True, True, False, True]
    assert found.flat.tolist() == [False]
    assert not np.asarray(found.credit).any() and not np.asarray(found.bonus).any()


def test_a_rollout_without_trainable_tokens_is_no_member():
    found = credited([1, 0, 9, 0.5], no_searches(4), trainable=[3, 1, 0, 2], signal="none")
    np.testing.assert_allclose(found.advantage, [1, -1, 0, 0], atol=1e-5)
    assert found.member.tolist() == [True, True, False, True]


def test_tied_outcomes_have_local_credit_and_nothing_else():
    found = credited(TIED, ONE)
    assert found.flat.tolist() == [True]
    assert found.advantage.tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(found.credit[:, 0], LOCAL, atol=1e-6)
    assert np.allclose(found.reward, TIED) and not np.asarray(found.bonus).any()
    without = credited(TIED, ONE, signal="none")
    assert not np.asarray(without.advantage).any() and not np.asarray(without.credit).any()


def test_the_mean_is_of_those_that_got_so_far():
    # The second search was executed by two; a truncated rollout counts in the mean and gets none.
    found = credited(
        TIED,
        searched([[0.5, 0.5], [0.5, NAN], [0.5, 0.0], [0.5, NAN]]),
        truncated=[False, False, True, False],
    )
    np.testing.assert_allclose(found.credit, [[0, 0.25], [0, 0], [0, 0], [0, 0]], atol=1e-6)
    assert np.asarray(found.credit)[:, 0].tolist() == [0, 0, 0, 0]


def test_a_call_whose_query_cannot_be_found_gets_none():
    found = credited(TIED, searched([[1.0], [0.5], [0], [0]], query=[[0], [4], [4], [8]]))
    np.testing.assert_allclose(found.credit[:, 0], [0, 0.125, -0.375, -0.1875], atol=1e-6)


def test_scalar_credit_is_part_of_the_reward():
    rewards = [0.0, 0.0, 1.0, 0.0]
    found = credited(rewards, searched([[0.5, 0.5], [0, 0.5], [0, 0], [NAN, NAN]]), **SCALAR)
    bonus = np.array([0.25, 0.125, 0, 0])
    np.testing.assert_allclose(found.bonus, bonus, atol=1e-6)
    np.testing.assert_allclose(found.reward, rewards + bonus, atol=1e-6)
    total = rewards + bonus
    right = (total - total.mean()) / total.std(ddof=1)
    np.testing.assert_allclose(found.advantage, right, atol=1e-4)
    assert not np.asarray(found.credit).any()


SCALAR = {"incorporation": "scalar"}


def test_scalar_credit_breaks_ties_of_the_outcome_and_flat_says_the_outcome_is_tied():
    found = credited(TIED, ONE, **SCALAR)
    assert found.flat.tolist() == [True]
    assert found.advantage[0] > 1 > 0 > found.advantage[2]


def test_weights_are_those_of_the_settings():
    np.testing.assert_allclose(
        credited(TIED, ONE, local_weight=1.0).credit[:, 0], 2 * np.array(LOCAL), atol=1e-6
    )
    found = credited(TIED, ONE, scalar_weight=2.0, **SCALAR)
    np.testing.assert_allclose(found.bonus, [2, 1, 0, 0], atol=1e-6)


def test_flat_only_and_no_flat_part_the_groups():
    rewards = [*TIED, 1.0, 0.0, 0.0, 0.0]
    both = searched([[1.0], [0.5], [0.0], [0.0]] * 2)
    for control, given in (("none", (1, 1)), ("flat_only", (1, 0)), ("no_flat", (0, 1))):
        found = credited(rewards, both, control=control)
        right = np.concatenate([share * np.array(LOCAL) for share in given])
        np.testing.assert_allclose(found.credit[:, 0], right, atol=1e-6)
        np.testing.assert_allclose(found.advantage, credited(rewards, both).advantage)


def test_permute_keeps_the_events_of_a_group_and_loses_whose_they_are():
    rewards = np.zeros(32)
    events = np.tile([[1.0, NAN], [0.5, 0.25], [0.0, 0.0], [0.0, NAN]], (8, 1))
    own = credited(rewards, searched(events))
    moved = [credited(rewards, searched(events), control="permute", key=key) for key in (0, 0, 1)]
    first, again, other = (np.asarray(one.credit).reshape(8, 4, 2) for one in moved)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    right = np.asarray(own.credit).reshape(8, 4, 2)
    np.testing.assert_allclose(np.sort(first, axis=1), np.sort(right, axis=1), atol=1e-6)
    # Groups are shuffled each by itself, and only rollouts that searched change places.
    assert len({group.tobytes() for group in first}) > 1
    assert not first[:, [0, 3], 1].any() and first[:, 1:3, 1].any()


def test_permute_shuffles_the_scalar_bonus_too():
    rewards, events = np.zeros(32), searched(np.tile([[1.0], [0.5], [0.0], [0.0]], (8, 1)))
    found = np.asarray(credited(rewards, events, control="permute", **SCALAR).bonus).reshape(8, 4)
    np.testing.assert_allclose(np.sort(found, axis=1), [[0, 0, 0.125, 0.25]] * 8, atol=1e-6)
    assert len({group.tobytes() for group in found}) > 1


def test_shuffled_advantages_are_those_of_the_group_in_other_places():
    rewards = np.random.default_rng(0).random(48).astype(np.float32)
    rewards[[5, 17]] = NAN
    own = credited(rewards, no_searches(48), signal="none")
    shuffled = Grpo(shuffle_advantages=True)
    found = credited(rewards, no_searches(48), signal="none", grpo=shuffled)
    one, other = (np.asarray(x.advantage).reshape(12, 4) for x in (own, found))
    assert np.array_equal(np.sort(one, axis=1), np.sort(other, axis=1))
    assert not np.array_equal(one, other)
    # Who has no reward has no advantage either: the zeros stay where they were.
    assert np.asarray(found.advantage)[[5, 17]].tolist() == [0, 0]
    moved = credited(rewards, no_searches(48), signal="none", grpo=shuffled, key=1)
    assert not np.array_equal(moved.advantage, found.advantage)


@pytest.mark.parametrize("scale", ["none", "batch"])
def test_what_centred_rewards_are_divided_by(scale):
    rewards = np.array([0, 1, 0, 0, 5, 5, 5, 9], np.float32)
    centred = np.array([-0.25, 0.75, -0.25, -0.25, -1, -1, -1, 3])
    by = rewards.std(ddof=1) if scale == "batch" else 1.0
    found = credited(rewards, no_searches(8), signal="none", grpo=Grpo(scale=scale))
    np.testing.assert_allclose(found.advantage, centred / by, rtol=1e-4)


def test_places_of_queries():
    places = np.array([[2, 3, 4, 8, 9, PAD], [1, 2, 3, PAD, PAD, PAD]], np.int32)
    found = query_places([[(3, 5), None, (9, 12)], []], places)
    assert found.tolist() == [[PAD, 0, 0, PAD, 2, PAD], [PAD] * 6]


def test_tokens_of_a_query_get_the_credit_of_their_search():
    action = np.array([[True, True, True, True, False]])
    query = np.array([[PAD, 0, 1, 1, PAD]], np.int32)
    found = spread_advantages(np.float32([0.5]), np.float32([[1, -2]]), action, query)
    assert found.tolist() == [[0.5, 1.5, -1.5, -1.5, 0]]


# --- on to the gradient -------------------------------------------------------------------------

SHAPE = ModelConfig(vocab=20, width=16, layers=1, heads=2, kv_heads=1, head_dim=8, hidden=16)
TOKENS, WIDTH, OWN = 12, 12, 6
PLACES = np.tile(np.array([3, 4, 5, 6, 10, 11], np.int32), (4, 1))
QUERIES = [[(4, 6)]] * 4  # of the turn at 3 .. 6


@pytest.fixture(scope="module")
def step():
    graph, params, frozen = nnx.split(Decoder(SHAPE, rngs=nnx.Rngs(0)), nnx.Param, ...)
    optimizer = optax.sgd(1.0)
    state = TrainState(
        params=params, frozen=frozen, optimizer=optimizer.init(params), step=jnp.int32(0)
    )
    taken = jax.jit(
        make_step(
            graph,
            optimizer,
            micro_rows=4,
            temperature=1.0,
            clip_low=0.2,
            clip_high=0.28,
            kl_weight=0.0,
        )
    )
    tokens = np.random.default_rng(0).integers(1, SHAPE.vocab, (4, TOKENS)).astype(np.int32)
    length = np.full(4, TOKENS, np.int32)
    policy = nnx.merge(graph, params, frozen)
    old = jax.jit(lambda ids: token_logps(policy, ids, length, PLACES, 1.0)[0])(tokens)

    def take(advantage):
        batch = Batch(
            tokens=jnp.asarray(tokens),
            length=jnp.asarray(length),
            places=jnp.asarray(PLACES),
            old_logps=old,
            reference=jnp.zeros_like(old),
            advantage=advantage,
            weight=token_weights(jnp.asarray(PLACES != PAD), "token_mean"),
        )
        after, stats = taken(state, batch)
        # Plain descent at rate 1: the gradient is how far the weights went.
        gradient = jax.tree.map(lambda a, b: np.asarray(b - a), after.params, params)
        return gradient, stats

    return take


def of_tokens(rewards, found, **credit):
    """Advantages of tokens of one group of four, as the trainer lays them out."""
    result = credited(rewards, found, trainable=[OWN] * 4, **credit)
    return spread_advantages(
        result.advantage, result.credit, PLACES != PAD, query_places(QUERIES, PLACES)
    )


def test_tied_outcomes_have_no_gradient_without_credit(step):
    advantage = of_tokens(TIED, ONE, signal="none")
    gradient, stats = step(advantage)
    assert not np.asarray(advantage).any()
    assert stats.grad_norm == 0 and stats.credited == 0
    assert not any(leaf.any() for leaf in jax.tree.leaves(gradient))


def test_tied_outcomes_have_a_gradient_with_local_credit_on_query_tokens_alone(step):
    advantage = np.asarray(of_tokens(TIED, ONE))
    queries = query_places(QUERIES, PLACES) != PAD
    assert queries.sum() == 8
    assert not advantage[~queries].any()
    np.testing.assert_allclose(advantage[queries].reshape(4, 2), np.array([LOCAL] * 2).T, atol=1e-6)
    gradient, stats = step(jnp.asarray(advantage))
    assert stats.grad_norm > 1e-3 and stats.credited == 8
    # It is the gradient of the query tokens: nothing else that is in the batch adds to it.
    again, _ = step(jnp.asarray(np.where(queries, advantage, 0)))
    for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(again), strict=True):
        assert np.array_equal(one, other)


def test_the_gradient_of_outcomes_and_of_credit_add_up(step):
    """At the policy that wrote the rollouts the objective is linear in the advantages."""
    rewards = [1.0, 0.0, 0.0, 0.5]
    alone, _ = step(of_tokens(rewards, ONE, signal="none"))
    credit, _ = step(of_tokens(TIED, ONE))
    both, _ = step(of_tokens(rewards, ONE))
    for a, b, c in zip(*map(jax.tree.leaves, (alone, credit, both)), strict=True):
        np.testing.assert_allclose(a + b, c, atol=2e-6)
