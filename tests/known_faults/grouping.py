"""Faults of group advantages: rows in any order, groups without spread, members without a reward.

Of `grpo-missing-reward`, sums over several reward functions belong to a trainer; its rule for
members without a reward is here.
"""

import math
from pathlib import Path

import jax
import numpy as np

from herald_jax.kernels.groups import advantages_by_question, group_advantages
from known_faults.cases import Case, number


def _codes(questions: list[str]) -> np.ndarray:
    """Question ids as integers, in the order of their first row."""
    number_of = {question: code for code, question in enumerate(dict.fromkeys(questions))}
    return np.array([number_of[question] for question in questions])


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
        device = group_advantages(reward, mask, eps=eps)
        gradient = jax.grad(lambda r, m: group_advantages(r, m).sum())(reward, mask)
        assert np.isfinite(gradient).all()
        if not any(case.expected["advantages"][group["question_id"]]):
            silent += 1
            for values in (found[rows], device, gradient):
                assert values.tolist() == [0.0] * len(reward)
    assert silent == case.expected["n_no_signal"]


def members_without_a_reward(case: Case, folder: Path) -> None:
    rows, expected = case.given["rows"], case.expected
    rewards = np.array(
        [
            math.nan if reward is None or not row["trainable_tokens"] else number(reward)
            for reward, row in zip(expected["rewards"], rows, strict=True)
        ]
    )
    question = _codes([row["question_id"] for row in rows])
    found = advantages_by_question(question, rewards, eps=case.given["eps"])
    np.testing.assert_allclose(found, expected["advantages"], atol=1e-5)
    assert (found[np.array(expected["weights"]) == 0] == 0).all()
