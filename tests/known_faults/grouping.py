"""Faults of group advantages: rows in any order, groups without spread, members without a reward.

Rows of a log are grouped by `advantages_by_question`; a trainer's rollouts stand in a table [G, M]
and go through `batch_advantages`. Each fault is put to both.
"""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from herald_jax.kernels.groups import (
    advantages_by_question,
    batch_advantages,
    combine_rewards,
    group_advantages,
    is_flat,
    usable,
)
from herald_jax.kernels.policy_loss import objective, token_weights
from herald_jax.train.reward_values import RewardValueError, check_rewards
from known_faults.cases import Case, number


def _codes(questions: list[str]) -> np.ndarray:
    """Question ids as integers, in the order of their first row."""
    number_of = {question: code for code, question in enumerate(dict.fromkeys(questions))}
    return np.array([number_of[question] for question in questions])


def _table(question: np.ndarray) -> np.ndarray:
    """Rows of each question side by side, -1 where one has fewer than another: [G, M]."""
    groups = [np.flatnonzero(question == code) for code in range(question.max() + 1)]
    table = np.full((len(groups), max(map(len, groups))), -1)
    for place, rows in enumerate(groups):
        table[place, : len(rows)] = rows
    return table


def _laid_out(rewards: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Rewards in the places of a table, NaN where it has no row: float32 [G, M]."""
    return np.where(table >= 0, rewards[table], math.nan).astype(np.float32)


def advantages_in_any_order(case: Case, folder: Path) -> None:
    rows = case.given["rows"]
    question = _codes([row["question_id"] for row in rows])
    rewards = np.array([row["reward"] for row in rows])
    for scale, key in (("sd", "advantages"), ("none", "centred")):
        right = [number(value) for value in case.expected[key]]
        found = advantages_by_question(question, rewards, eps=case.given["eps"], scale=scale)
        np.testing.assert_allclose(found, right, atol=1e-5)
        order = np.random.default_rng(0).permutation(len(rewards))
        again = advantages_by_question(
            question[order], rewards[order], eps=case.given["eps"], scale=scale
        )
        assert np.array_equal(again, found[order])
        table = _table(question)
        mask = table >= 0
        of_table = batch_advantages(
            _laid_out(rewards, table), mask, eps=case.given["eps"], scale=scale
        )
        np.testing.assert_allclose(
            np.asarray(of_table)[mask], np.array(right)[table[mask]], atol=1e-5
        )


def groups_without_spread(case: Case, folder: Path) -> None:
    groups, eps = case.given["groups"], case.given["eps"]
    question = _codes([g["question_id"] for g in groups for _ in g["members"]])
    rewards = np.array([sum(member["terms"]) for g in groups for member in g["members"]])
    right = [a for g in groups for a in case.expected["advantages"][g["question_id"]]]
    found = advantages_by_question(question, rewards, eps=eps)
    np.testing.assert_allclose(found, right, atol=1e-5)
    silent = 0
    for code, group in enumerate(groups):
        rows = question == code
        # On the device, where rewards are float32 from the start.
        reward, mask = rewards[rows].astype(np.float32), np.ones(rows.sum(), bool)
        device = _on_device(reward, mask, eps)
        gradient = _slope(reward, mask)
        assert np.isfinite(gradient).all()
        flat = not any(case.expected["advantages"][group["question_id"]])
        assert bool(is_flat(reward, mask)) == flat
        if flat:
            silent += 1
            pushed = _gradient_of_the_loss(device)
            for values in (found[rows], device, gradient, pushed):
                assert values.tolist() == [0.0] * len(reward)
    assert silent == case.expected["n_no_signal"]


_on_device = jax.jit(lambda r, m, eps: group_advantages(r, m, eps=eps), static_argnums=2)
_slope = jax.jit(jax.grad(lambda r, m: group_advantages(r, m).sum()))


@jax.jit
def _gradient_of_the_loss(advantages: jax.Array) -> jax.Array:
    """How far one token of each member is pushed."""
    mask = jnp.ones((len(advantages), 1), bool)
    weights = token_weights(mask, "token_mean")

    def loss(logp: jax.Array) -> jax.Array:
        old = jnp.full_like(logp, -1.0)
        found = objective(logp, old, advantages[:, None], mask, clip_low=0.2, clip_high=0.2)
        return -jnp.sum(weights * found.value)

    return jax.grad(loss)(jnp.full(mask.shape, -1.1))[:, 0]


def members_without_a_reward(case: Case, folder: Path) -> None:
    rows, expected, weights = case.given["rows"], case.expected, case.given["weights"]
    question = _codes([row["question_id"] for row in rows])
    values = [
        check_rewards(name, [row["rewards"][name] for row in rows], len(rows)) for name in weights
    ]
    rewards = np.asarray(
        combine_rewards(np.float32(np.stack(values)), np.float32(list(weights.values())))
    )
    right = [math.nan if reward is None else number(reward) for reward in expected["rewards"]]
    np.testing.assert_allclose(rewards, right, atol=1e-6)
    mask = np.asarray(usable(rewards, np.int32([row["trainable_tokens"] for row in rows])))
    assert mask.astype(int).tolist() == expected["weights"]
    table = _table(question)
    there = table >= 0
    found = np.zeros(len(rows))
    found[table[there]] = np.asarray(
        batch_advantages(_laid_out(rewards, table), mask[table] & there, eps=case.given["eps"])
    )[there]
    of_log = advantages_by_question(
        question, np.where(mask, rewards, math.nan), eps=case.given["eps"]
    )
    for advantages in (found, of_log):
        np.testing.assert_allclose(advantages, expected["advantages"], atol=1e-5)
        assert (advantages[~mask] == 0).all()


def malformed_returns(case: Case, folder: Path) -> None:
    for given, right in zip(
        case.given["malformed_returns"], case.expected["malformed_returns"], strict=True
    ):
        assert right == "error"
        with pytest.raises(RewardValueError, match=f"`{given['function']}`"):
            check_rewards(given["function"], given["returned"], len(case.given["rows"]))
