"""One turn of many rollouts on the device: read what came, then write until the end token.

All rows share one write index into the cache; what a slot holds for a row is said by a mask, and
where a token stands in its row by its position. So the text of a tool, of another length in each
row, is one chunk of a common width, and rows that have ended cost no second program. Randomness is
folded from (seed, update, turn, row) and the place in the turn: a row does not depend on the batch
it is in.
"""

from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import NamedSharding
from numpy.typing import NDArray

from herald_jax.train.model import Cache
from herald_jax.types import pytree

Params = tuple[Any, ...]  # states that make an `nnx.Module` with its graph: trained, frozen


@pytree
class Context:
    """What the policy has read and written so far, B rows in S slots."""

    cache: Cache
    held: jax.Array  # bool [B, S] slots that hold a token of the row
    position: jax.Array  # int32 [B] tokens of the row
    at: jax.Array  # int32 [] first slot that is free


@pytree
class Written:
    """What the policy wrote in one turn of at most N tokens."""

    tokens: jax.Array  # int32 [B, N]; the end token is in it where the row wrote one
    logps: jax.Array  # float32 [B, N] log-probabilities under the temperature
    count: jax.Array  # int32 [B] tokens written
    ended: jax.Array  # bool [B] the last of them is the end token


def kept_logits(logits: jax.Array, top_p: float) -> jax.Array:
    """Logits of the smallest set of tokens that holds `top_p` of the probability; -inf elsewhere.

    Args:
        logits: float32 [..., V].
        top_p: in (0, 1]; 1 keeps all. The likeliest token is always kept.
    """
    if top_p >= 1.0:
        return logits
    ordered = jnp.sort(logits, axis=-1, descending=True)
    before = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1) - jax.nn.softmax(
        ordered, axis=-1
    )
    threshold = jnp.min(jnp.where(before < top_p, ordered, jnp.inf), axis=-1, keepdims=True)
    return jnp.where(logits >= threshold, logits, -jnp.inf)


@partial(
    jax.jit,
    static_argnames=("graph", "length", "end", "temperature", "top_p", "greedy", "told"),
    donate_argnames="context",
)
def take_turn(
    graph: nnx.GraphDef[Any],
    params: Params,
    context: Context,
    chunk: jax.Array,
    chunk_lengths: jax.Array,
    rows: jax.Array,
    live: jax.Array,
    stream: NDArray[np.uint32],
    *,
    length: int,
    end: int,
    temperature: float,
    top_p: float,
    greedy: bool,
    told: NamedSharding,
) -> tuple[Context, Written]:
    """Reads a chunk and writes a turn.

    Args:
        graph: structure of the policy.
        params: its states.
        context: what came before; it is consumed. It has at least L + N free slots.
        chunk: int32 [B, L] tokens that rows read before they write.
        chunk_lengths: int32 [B] how many of them are the row's; at least 1 where live.
        rows: int32 [B] numbers that rows fold into the key.
        live: bool [B] rows that take the turn; the others write nothing.
        stream: uint32 [3], seed of the run, number of the update and of the turn.
        length: N, most tokens of a turn.
        end: id of the end token.
        temperature: of sampling; log-probabilities are those of the tempered policy.
        top_p: as `kept_logits`; log-probabilities are those before it.
        greedy: take the likeliest token, the first of equal ones, instead of sampling.
        told: where what was written lies: whole on every device, since every host reads it.

    Returns:
        The context behind the turn, and what was written.
    """
    chex.assert_rank([chunk, chunk_lengths, rows, live], [2, 1, 1, 1])
    batch, width = chunk.shape
    policy = nnx.merge(graph, *params)
    place = jnp.arange(width, dtype=jnp.int32)[None]
    given = (place < chunk_lengths[:, None]) & live[:, None]
    held = jax.lax.dynamic_update_slice(context.held, given, (jnp.int32(0), context.at))
    slots = jnp.arange(held.shape[1], dtype=jnp.int32)
    # A query sees what its row holds up to its own slot.
    earlier = slots[None, None] <= (context.at + place)[:, :, None]
    mask = held[:, None] & earlier & given[:, :, None]
    positions = context.position[:, None] + place
    hidden, cache = policy.hidden(chunk, positions, mask, context.cache, context.at)
    last = jnp.maximum(chunk_lengths - 1, 0)[:, None, None]
    logits = policy.logits(jnp.take_along_axis(hidden, last, axis=1))[:, 0]
    key = jax.random.key(stream[0])
    key = jax.random.fold_in(jax.random.fold_in(key, stream[1]), stream[2])
    row_keys = jax.vmap(partial(jax.random.fold_in, key))(rows)

    def choose(logits: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        tempered = logits if greedy else logits / temperature
        if greedy:
            token = jnp.argmax(tempered, axis=-1).astype(jnp.int32)
        else:
            keys = jax.vmap(lambda row: jax.random.fold_in(row, step))(row_keys)
            draw = jax.vmap(jax.random.categorical)(keys, kept_logits(tempered, top_p))
            token = draw.astype(jnp.int32)
        logps = jax.nn.log_softmax(tempered, axis=-1)
        return token, jnp.take_along_axis(logps, token[:, None], axis=-1)[:, 0]

    def unfinished(carry: tuple[Any, ...]) -> jax.Array:
        step, writing = carry[0], carry[1]
        return (step < length) & jnp.any(writing)

    def write(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        step, writing, logits, cache, held, position, tokens, logps, count, ended = carry
        token, logp = choose(logits, step)
        token = jnp.where(writing, token, 0)
        tokens = jax.lax.dynamic_update_slice(tokens, token[:, None], (jnp.int32(0), step))
        logps = jax.lax.dynamic_update_slice(
            logps, jnp.where(writing, logp, 0.0)[:, None], (jnp.int32(0), step)
        )
        at = context.at + width + step
        held = jax.lax.dynamic_update_slice(held, writing[:, None], (jnp.int32(0), at))
        hidden, cache = policy.hidden(token[:, None], position[:, None], held[:, None], cache, at)
        stop = writing & (token == end)
        count = count + writing.astype(jnp.int32)
        position = position + writing.astype(jnp.int32)
        logits = policy.logits(hidden)[:, 0]
        return (
            step + 1,
            writing & ~stop,
            logits,
            cache,
            held,
            position,
            tokens,
            logps,
            count,
            ended | stop,
        )

    start = (
        jnp.int32(0),
        live,
        logits,
        cache,
        held,
        context.position + jnp.where(live, chunk_lengths, 0),
        jnp.zeros((batch, length), jnp.int32),
        jnp.zeros((batch, length), jnp.float32),
        jnp.zeros(batch, jnp.int32),
        jnp.zeros(batch, jnp.bool_),
    )
    step, _, _, cache, held, position, tokens, logps, count, ended = jax.lax.while_loop(
        unfinished, write, start
    )
    after = Context(cache=cache, held=held, position=position, at=context.at + width + step)
    written = Written(tokens=tokens, logps=logps, count=count, ended=ended)
    return after, jax.lax.with_sharding_constraint(written, told)
