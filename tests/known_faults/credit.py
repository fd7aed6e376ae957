"""Faults of credit around tool calls: a search that ends the credit, a step under a wrong mask.

Of `tool-credit`, `step_advantage` is how `token_advantages` writes the one advantage of a rollout,
and `retrieval_credit` is what the events of coverage give when every support id is a node. Its
discounted `returns` have no counterpart: an advantage is one number of the whole rollout, credit of
a search one number of its query, and no reward is carried from token to token. What the fault would
do there, cut at a tool's text or shrink across it, shows in the step advantages before a search.
"""

from pathlib import Path

import numpy as np

from herald_jax.kernels.policy_loss import token_advantages
from herald_jax.kernels.retrieval_credit import coverage, events
from herald_jax.types import PAD
from known_faults.cases import Case, number

NO_CREDIT = np.zeros(1, np.float32)


def step_advantages(case: Case, folder: Path) -> None:
    advantage = np.float32(case.given["trajectory_advantage"])
    steps = [np.array(step) == 1 for step in case.given["step_masks"]]
    right = [number(value) for step in case.expected["step_advantages"] for value in step]
    # All steps of a rollout stand in one row of tokens.
    action = np.concatenate(steps)
    no_query = np.full(action.shape, PAD, np.int32)
    found = token_advantages(advantage, action, NO_CREDIT, no_query)
    np.testing.assert_allclose(found, right, atol=1e-6)
    # The tokens before a tool's text get as much as those after it.
    action = np.array(case.given["policy_mask"]) == 1
    no_query = np.full(action.shape, PAD, np.int32)
    found = token_advantages(advantage, action, NO_CREDIT, no_query)
    assert np.asarray(found).tolist() == np.where(action, advantage, 0).tolist()


def credit_of_searches(case: Case, folder: Path) -> None:
    steps, support = case.given["retrieved_by_step"], case.given["support_ids"]
    returned = [name for step in steps for name in step or []]
    names = {name: code for code, name in enumerate(dict.fromkeys([*support, *returned]))}
    executed = np.array([step is not None for step in steps])
    width = max(len(step or []) for step in steps)
    retrieved = np.full((len(steps), max(width, 1)), PAD, np.int32)
    for place, step in enumerate(steps):
        retrieved[place, : len(step or [])] = [names[name] for name in step or []]
    supports = np.array([[names[name]] for name in support], np.int32).reshape(-1, 1)
    nodes = np.ones(len(support), bool)
    found = coverage(retrieved, supports, np.zeros((len(support),) * 2, bool), nodes)
    right = [number(value) for value in case.expected["retrieval_credit"]]
    for signal in (found.cov, found.cov_dep):
        np.testing.assert_allclose(events(signal, executed), right, atol=1e-6)
