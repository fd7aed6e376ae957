"""Supervised start: scripted traces as conversations, and steps that imitate the policy's part.

A policy from nothing first has to learn that actions have a form. The traces are those of the
built-in world's agents, good and bad in the proportions in which they are met, or a file of
trajectories; the text of each is made by the same code that runs the environment.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from numpy.typing import NDArray

from herald_jax.data.blocks import bucket
from herald_jax.data.records import Trajectory
from herald_jax.train.chat import answer_turn, prompt, search_turn
from herald_jax.train.config import WarmStart
from herald_jax.train.environment import Environment, Reply
from herald_jax.train.sequences import WIDTHS, padded_places, side_by_side
from herald_jax.train.setup import Setup
from herald_jax.train.tasks import TaskError
from herald_jax.train.tokens import Tokeniser
from herald_jax.train.update import micro_batches, token_logps
from herald_jax.types import PAD

Draw = Callable[[str, int, int, Mapping[str, float | int]], None]
_STRETCH = 16  # batches among whose rows those of like length are put together
_SHOWN = 10  # steps between two reports of progress


def usable(record: Trajectory, turns: int) -> bool:
    """Whether a record can be shown: it answers within the turns, and only searches before."""
    answered = record.answer is not None and record.answer.strip() != ""
    return answered and len(record.steps) < turns and all(step.executed for step in record.steps)


def trace_tokens(
    record: Trajectory, replies: Sequence[Reply], tokeniser: Tokeniser
) -> tuple[list[int], list[bool]]:
    """A record as a conversation: ids, and which of them the agent wrote.

    Args:
        record: a usable one.
        replies: of this environment to its searches, so that a trace shows what the policy will
            see and not what some other search brought.
        tokeniser: of the policy.
    """
    ids = tokeniser.encode(prompt(record.question))
    written = [False] * len(ids)

    def add(more: Sequence[int], own: bool) -> None:
        ids.extend(more)
        written.extend([own] * len(more))

    for step, reply in zip(record.steps, replies, strict=True):
        add([*tokeniser.encode(search_turn(step.query)), tokeniser.end], True)
        add(reply.tokens, False)
    turn = answer_turn(record.answer or "", record.citations or ())
    add([*tokeniser.encode(turn), tokeniser.end], True)
    return ids, written


@dataclass(frozen=True, eq=False)
class Traces:
    """Conversations to imitate, on the host."""

    tokens: list[list[int]]
    places: list[NDArray[np.int64]]  # where the agent's tokens stand

    def __len__(self) -> int:
        return len(self.tokens)

    def rows(self, chosen: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], ...]:
        """Tokens [B, T], lengths [B] and places [B, W] of some of them."""
        ids = [self.tokens[row] for row in chosen]
        length = np.array([len(row) for row in ids], np.int32)
        tokens = side_by_side(ids, bucket(int(length.max()), WIDTHS))
        return tokens, length, padded_places([self.places[row] for row in chosen])


def make_traces(
    records: Sequence[Trajectory],
    tokeniser: Tokeniser,
    environment: Environment,
    turns: int,
    most_tokens: int,
) -> Traces:
    """All usable records of at most so many tokens."""
    records = [record for record in records if usable(record, turns)]
    replies = iter(
        environment.search_all([step.query for record in records for step in record.steps])
    )
    made = [
        trace_tokens(record, list(islice(replies, len(record.steps))), tokeniser)
        for record in records
    ]
    made = [trace for trace in made if len(trace[0]) <= most_tokens]
    return Traces(
        [ids for ids, _ in made], [np.flatnonzero(np.array(written)) for _, written in made]
    )


def imitation_optimizer(settings: WarmStart) -> optax.GradientTransformation:
    """Adam with a short warm-up and a cosine that falls to a tenth."""
    schedule = optax.schedules.warmup_cosine_decay_schedule(
        init_value=settings.learning_rate / 10,
        peak_value=settings.learning_rate,
        warmup_steps=max(settings.steps // 20, 1),
        decay_steps=max(settings.steps, 2),
        end_value=settings.learning_rate / 10,
    )
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule, b2=0.99))


@partial(
    jax.jit,
    static_argnames=("graph", "optimizer", "micro_rows"),
    donate_argnames=("params", "state"),
)
def imitate(
    graph: nnx.GraphDef[Any],
    params: Any,
    frozen: Any,
    state: optax.OptState,
    tokens: jax.Array,
    length: jax.Array,
    places: jax.Array,
    *,
    optimizer: optax.GradientTransformation,
    micro_rows: int,
) -> tuple[Any, optax.OptState, jax.Array]:
    """One step of maximum likelihood on the agent's tokens.

    Args:
        graph: structure of the policy.
        params: trained state; consumed.
        frozen: the rest of it.
        state: of the optimiser; consumed.
        tokens: int32 [B, T].
        length: int32 [B].
        places: int32 [B, W] where the agent's tokens stand, PAD at the end.
        optimizer: from `imitation_optimizer`.
        micro_rows: rows of a micro-batch; divides B.

    Returns:
        Trained state, optimiser state, and the mean negative log-likelihood of a token.
    """

    count = jnp.maximum(jnp.sum(places != PAD), 1).astype(jnp.float32)

    def loss(params: Any, part: tuple[jax.Array, ...]) -> jax.Array:
        policy = nnx.merge(graph, params, frozen)
        tokens, length, places = part
        logps, _ = token_logps(policy, tokens, length, places, 1.0)
        return -jnp.sum(jnp.where(places != PAD, logps, 0.0)) / count

    def add(so_far: Any, part: tuple[jax.Array, ...]) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, so_far, jax.value_and_grad(loss)(params, part)), None

    nothing = (jnp.zeros((), jnp.float32), jax.tree.map(jnp.zeros_like, params))
    parts = micro_batches((tokens, length, places), micro_rows)
    (value, grads), _ = jax.lax.scan(add, nothing, parts)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def batches(
    lengths: NDArray[np.integer[Any]], batch: int, epoch: int, seed: int
) -> list[NDArray[np.int64]]:
    """Rows of each step of an epoch: every row at most once, rows of like length together.

    Rows are shuffled, sorted by length within stretches of some batches, and the batches shuffled
    again: a batch is then hardly wider than its rows are long. The order depends on the arguments
    alone.

    Args:
        lengths: of all rows.
        batch: rows of a step; what is left over at the end of an epoch waits for the next one.
        epoch: its number.
        seed: of the run.
    """
    draw = np.random.default_rng([seed, epoch])
    order = draw.permutation(len(lengths))
    stretch = batch * _STRETCH
    found: list[NDArray[np.int64]] = []
    for first in range(0, len(order), stretch):
        part = order[first : first + stretch]
        part = part[np.argsort(lengths[part], kind="stable")]
        found += [part[at : at + batch] for at in range(0, len(part) - batch + 1, batch)]
    return [found[at] for at in draw.permutation(len(found))]


def warm_start(
    setup: Setup, states: tuple[Any, Any], traces: Traces, draw: Draw
) -> tuple[Any, Any]:
    """The states after imitation of the traces.

    Args:
        setup: the run's parts.
        states: trained and frozen; the trained one is consumed.
        traces: what is imitated.
        draw: told the step, how many there are, and the numbers.

    Raises:
        TaskError: there are fewer traces than a step takes.
    """
    settings = setup.config.warm_start
    if len(traces) < settings.rows:
        raise TaskError(
            f"warm_start: expected at least warm_start.rows = {settings.rows} traces that answer "
            f"within environment.turns and warm_start.tokens, got {len(traces)}"
        )
    lengths = np.array([len(ids) for ids in traces.tokens])
    optimizer = imitation_optimizer(settings)
    micro_rows = math.gcd(settings.rows, setup.config.grpo.micro_rows)
    trained, frozen = states
    state = optimizer.init(trained)
    waiting: list[NDArray[np.int64]] = []
    started, epoch, losses = time.perf_counter(), 0, []
    for step in range(settings.steps):
        if not waiting:
            waiting = batches(lengths, settings.rows, epoch, setup.config.run.seed)[::-1]
            epoch += 1
        trained, state, loss = imitate(
            setup.graph,
            trained,
            frozen,
            state,
            *traces.rows(waiting.pop()),
            optimizer=optimizer,
            micro_rows=micro_rows,
        )
        losses.append(loss)
        if step % _SHOWN == _SHOWN - 1 or step + 1 == settings.steps:
            rate = (step + 1) / (time.perf_counter() - started)
            mean = float(np.mean(jax.device_get(losses)))
            losses = []
            draw("warm start", step + 1, settings.steps, {"loss": mean, "steps/second": rate})
    return trained, frozen
