"""Searches of rollouts as arrays, made by hand for tests of what they are credited."""

import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.train.advantages import credit_rollouts
from herald_jax.train.config import Credit, Grpo
from herald_jax.train.evidence import Searched


def searched(events, *, executed=None, call=None, query=None):
    """Searches with the events given, [B, Q]; NaN where none was executed.

    Args:
        events: what each brought.
        executed: which there were; None takes those whose event is no NaN.
        call: tokens of each call; None is 8 each.
        query: tokens of each query; None is 4 each.
    """
    events = np.asarray(events, np.float32)
    executed = ~np.isnan(events) if executed is None else np.asarray(executed, bool)
    events = np.nan_to_num(events)
    full = np.full(events.shape, 1, np.int32)
    return Searched(
        executed=jnp.asarray(executed),
        events=jnp.asarray(events),
        call_tokens=jnp.asarray(8 * full if call is None else np.asarray(call, np.int32)),
        query_tokens=jnp.asarray(4 * full if query is None else np.asarray(query, np.int32)),
        coverage=jnp.asarray(events.sum(axis=1)),
        has_nodes=jnp.ones(len(events), jnp.bool_),
    )


def no_searches(rows):
    """Rollouts that searched nothing."""
    return searched(np.full((rows, 1), np.nan))


def credited(
    rewards, found, *, group=4, truncated=None, trainable=None, grpo=None, key=0, **credit
):
    """What such rollouts are trained with."""
    rewards = np.asarray(rewards, np.float32)
    rows = len(rewards)
    return credit_rollouts(
        rewards,
        np.ones(rows, np.int32) if trainable is None else np.asarray(trainable),
        np.zeros(rows, bool) if truncated is None else np.asarray(truncated, bool),
        found,
        group=group,
        grpo=grpo or Grpo(),
        credit=Credit(**credit),
        key=jax.random.key(key),
    )
