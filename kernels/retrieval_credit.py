"""Credit for single searches by the evidence that they bring (arXiv 2610.10179; SPEC section 10).

A question's evidence is a graph of nodes: each names passages that support it and may depend on
others. A signal is a number after every search (coverage, coverage in order of dependence, answer
match); its event at search k is how far it rises there above everything before. Events reach
training in two ways: added up as a bonus on the reward (*scalar*), or as an advantage of the tokens
of the one query (*local*), which is there even when all outcomes of a group are equal.

Axis Q holds the searches of a rollout in their order: position k is its k-th executed search where
`executed` is true and nothing elsewhere. M is rollouts of a question, N nodes, S support ids of a
node, R ids that one search returned.
"""

from typing import Literal

import chex
import jax
import jax.numpy as jnp

from herald_jax.kernels.membership import member
from herald_jax.types import PAD, pytree

Control = Literal["none", "permute", "flat_only", "no_flat"]


@pytree
class Coverage:
    """Share of a question's nodes that hold after each search."""

    cov: jax.Array  # float32 [Q] nodes covered
    cov_dep: jax.Array  # float32 [Q] nodes covered whose dependencies all count


def coverage(
    retrieved: jax.Array, supports: jax.Array, depends: jax.Array, nodes: jax.Array
) -> Coverage:
    """Coverage of one rollout after each of its searches.

    A node is covered once every one of its support ids has been retrieved by some search so far. A
    covered node counts for `cov_dep` once all nodes it depends on count, so that a later search may
    unlock an earlier find. A node without any support id is never covered: what would show it is
    not known. A node that depends on itself, directly or in a circle, never counts.

    Args:
        retrieved: int32 [Q, R] ids that each search returned, PAD elsewhere; a row of PAD is a
            search that returned nothing or was not executed.
        supports: int32 [N, S] support ids of each node, PAD elsewhere.
        depends: bool [N, N], row depends on column. Places outside `nodes` are not read.
        nodes: bool [N], which rows hold a node.

    Returns:
        `Coverage`, never falling along Q; 0 for a question without nodes.
    """
    chex.assert_rank([retrieved, supports, depends, nodes], [2, 2, 2, 1])
    chex.assert_type([retrieved, supports, depends, nodes], [int, int, jnp.bool_, jnp.bool_])
    count = nodes.shape[0]
    chex.assert_shape(supports, (count, None))
    chex.assert_shape(depends, (count, count))
    wanted = supports != PAD
    found = jax.vmap(lambda ids: member(supports.reshape(-1), ids))(retrieved)  # [Q, N S]
    so_far = jnp.cumsum(found.astype(jnp.int32), axis=0) > 0
    so_far = so_far.reshape(retrieved.shape[0], *supports.shape)
    whole = jnp.all(so_far | ~wanted[None], axis=2)
    covered = whole & (nodes & jnp.any(wanted, axis=1))[None]
    needs = depends & nodes[:, None] & nodes[None, :]

    def unlock(_: jax.Array, counts: jax.Array) -> jax.Array:
        return covered & jnp.all(counts[:, None, :] | ~needs[None], axis=2)

    # From nothing upwards, so that circles stay out; N steps reach the end of the longest chain.
    counts = jax.lax.fori_loop(0, count, unlock, jnp.zeros_like(covered))
    total = jnp.maximum(jnp.sum(nodes, dtype=jnp.int32), 1).astype(jnp.float32)

    def share(held: jax.Array) -> jax.Array:
        return jnp.sum(held, axis=1, dtype=jnp.int32).astype(jnp.float32) / total

    return Coverage(cov=share(covered), cov_dep=share(counts))


def answer_match(matched: jax.Array, executed: jax.Array) -> jax.Array:
    """1 from the first search on whose text holds a gold alias, 0 before.

    Args:
        matched: bool [Q], a gold alias occurs, normalised, in the text of search k.
        executed: bool [Q].

    Returns:
        float32 [Q].
    """
    chex.assert_rank([matched, executed], 1)
    chex.assert_equal_shape([matched, executed])
    chex.assert_type([matched, executed], jnp.bool_)
    return (jnp.cumsum((matched & executed).astype(jnp.int32)) > 0).astype(jnp.float32)


def events(values: jax.Array, executed: jax.Array) -> jax.Array:
    """How far each search lifts a signal above its largest value before: max(0, v_k - max v_<k).

    Before the first search the signal stands at 0.

    Args:
        values: float32 [Q], the signal after each search; not read where no search was executed.
        executed: bool [Q].

    Returns:
        float32 [Q], 0 or more; 0 where no search was executed.
    """
    chex.assert_rank([values, executed], 1)
    chex.assert_equal_shape([values, executed])
    chex.assert_type([values, executed], [jnp.float32, jnp.bool_])
    values = jnp.where(executed, values, 0.0)
    start = jnp.zeros(1, jnp.float32)
    best = jax.lax.cummax(jnp.concatenate([start, values]))[: values.shape[0]]
    return jnp.where(executed, jnp.maximum(values - best, 0.0), 0.0)


def scalar_bonus(events: jax.Array, *, weight: float = 0.25) -> jax.Array:
    """weight × the sum of a rollout's events, to be added to its reward: float32 [Q] -> []."""
    chex.assert_rank(events, 1)
    chex.assert_type(events, jnp.float32)
    return weight * jnp.sum(events)


def local_credit(
    events: jax.Array,
    executed: jax.Array,
    call_tokens: jax.Array,
    query_tokens: jax.Array,
    usable: jax.Array,
    *,
    weight: float = 0.5,
) -> jax.Array:
    """What the tokens of each query get beside the advantage of the outcome, for one group.

    weight × (event - mean event of search k over the rollouts that executed a k-th search)
    × (tokens of the call / tokens of its query). The mean runs over all that executed it, those
    that get no credit included: their search happened and is what the others are measured by.

    Args:
        events: float32 [M, Q]; not read where no search was executed.
        executed: bool [M, Q].
        call_tokens: int32 [M, Q], tokens of the whole tool call.
        query_tokens: int32 [M, Q], tokens of its query; 0 where no query was found.
        usable: bool [M], False for truncated rollouts.
        weight: of the credit.

    Returns:
        float32 [M, Q]: 0 for searches not executed, without a query, or of a rollout that is not
        usable; exactly 0 at a step where all events are equal.
    """
    chex.assert_rank([events, executed, call_tokens, query_tokens, usable], [2, 2, 2, 2, 1])
    chex.assert_equal_shape([events, executed, call_tokens, query_tokens])
    chex.assert_shape(usable, events.shape[:1])
    chex.assert_type([events, executed, usable], [jnp.float32, jnp.bool_, jnp.bool_])
    chex.assert_type([call_tokens, query_tokens], int)
    # Measured from the lowest event of the step: a mean of equal numbers is rounded, one of zeros
    # is not.
    low = jnp.min(events, axis=0, where=executed, initial=jnp.inf)
    above = jnp.where(executed, events - jax.lax.stop_gradient(low)[None, :], 0.0)
    count = jnp.maximum(jnp.sum(executed, axis=0, dtype=jnp.int32), 1).astype(jnp.float32)
    centred = above - (jnp.sum(above, axis=0) / count)[None, :]
    given = executed & usable[:, None] & (query_tokens > 0)
    spread = call_tokens.astype(jnp.float32) / jnp.maximum(query_tokens, 1).astype(jnp.float32)
    return jnp.where(given, weight * centred * spread, 0.0)


def permute(events: jax.Array, executed: jax.Array, key: jax.Array) -> jax.Array:
    """The control `permute`: events of each step shuffled over the rollouts that executed it.

    Every step keeps its events and loses which rollout earned them. The order drawn depends on the
    key, the step and the number of rollouts that executed it, not on places where none did.

    Args:
        events: float32 [M, Q], of one group.
        executed: bool [M, Q].
        key: a key of `jax.random`.

    Returns:
        float32 [M, Q], 0 where no search was executed.
    """
    chex.assert_rank([events, executed], 2)
    chex.assert_equal_shape([events, executed])
    chex.assert_type([events, executed], [jnp.float32, jnp.bool_])
    rollouts, steps = events.shape

    def one_step(step: jax.Array, earned: jax.Array, ran: jax.Array) -> jax.Array:
        rows = jnp.argsort(~ran, stable=True)  # those that executed it come first
        place = jnp.cumsum(ran.astype(jnp.int32)) - 1
        draws = jax.random.uniform(jax.random.fold_in(key, step), (rollouts,))
        number = jnp.sum(ran, dtype=jnp.int32)
        among = jnp.arange(rollouts, dtype=jnp.int32) < number
        order = jnp.argsort(jnp.where(among, draws, jnp.inf), stable=True)
        taken = rows[order[jnp.maximum(place, 0)]]
        return jnp.where(ran, earned[taken], 0.0)

    numbers = jnp.arange(steps, dtype=jnp.uint32)
    return jax.vmap(one_step, in_axes=(0, 1, 1), out_axes=1)(numbers, events, executed)


def kept(control: Control, flat: jax.Array) -> jax.Array:
    """Whether groups keep their local credit under a control.

    Args:
        control: "flat_only" keeps groups with tied outcome rewards alone, "no_flat" those with
            differing ones; "none" and "permute" keep all.
        flat: bool, any shape: outcome rewards of the group are tied (`groups.is_flat`).

    Returns:
        bool of the same shape.

    Raises:
        ValueError: another control.
    """
    chex.assert_type(flat, jnp.bool_)
    if control == "flat_only":
        return jnp.asarray(flat)
    if control == "no_flat":
        return ~jnp.asarray(flat)
    if control in ("none", "permute"):
        return jnp.ones_like(flat)
    raise ValueError(f"control is none, permute, flat_only or no_flat, got {control!r}")
