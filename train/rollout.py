"""Rollouts: many conversations of a policy with the environment, token ids from end to end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from herald_jax.data.blocks import bucket
from herald_jax.data.records import Step, Trajectory
from herald_jax.train.chat import Piece, Turn, prompt, read_turn
from herald_jax.train.environment import Environment, Task
from herald_jax.train.model import empty_cache, grow_cache
from herald_jax.train.model_config import ModelConfig
from herald_jax.train.sampler import Context, Params, take_turn
from herald_jax.train.sharding import replicated
from herald_jax.train.spans import (
    ANSWER,
    CITATION,
    PLAIN,
    POLICY,
    PROMPT,
    QUERY,
    THINK,
    TOOL,
    Span,
)
from herald_jax.train.tokens import Tokeniser

Stop = Literal["answer", "turns", "length"]
_KINDS = {"think": THINK, "query": QUERY, "answer": ANSWER, "citation": CITATION}
# Widths of what is read in one go, and of the cache: few, so that few programs are compiled.
_CHUNKS = (32, 64, 128, 192, 256, 384, 512, 768, 1024)
_SLOTS = (128, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)


@dataclass(frozen=True)
class Sampling:
    """How turns are written."""

    turns: int
    turn_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    greedy: bool = False


@dataclass(slots=True)
class Search:
    """One executed search of a rollout.

    Attributes:
        retrieved: ids of passages.
        call: tokens first, last of the whole turn.
        query: tokens first, last of the words that were searched; None where they cannot be told.
    """

    retrieved: tuple[str, ...]
    call: tuple[int, int]
    query: tuple[int, int] | None


@dataclass(slots=True)
class Rollout:
    """One conversation, in progress or done.

    Attributes:
        task: the question.
        row: its number within the update, which its randomness is folded from.
        tokens: ids of everything, in order.
        logps: log-probability of each token that the policy wrote.
        spans: who wrote what.
        steps: actions before the answer, as the record has them.
        searches: the executed ones.
        final: the answering turn; None while there is none.
        stop: why it ended; `length` and `turns` are truncations.
    """

    task: Task
    row: int
    tokens: list[int] = field(default_factory=list)
    logps: list[float] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    final: Turn | None = None
    stop: Stop | None = None

    @property
    def truncated(self) -> bool:
        """Whether it ended by a limit and not by its own decision."""
        return self.stop in ("length", "turns")

    @property
    def invalid(self) -> int:
        """Turns that could not be executed."""
        return sum(not step.executed for step in self.steps)

    def read(self, tokens: Sequence[int], author: int) -> None:
        """Append what the prompt or a tool says."""
        first = len(self.tokens)
        self.tokens += tokens
        self.spans.append(Span(author, PLAIN, first, len(self.tokens)))

    def record(self, trajectory_id: str, model: str, rollout: int) -> Trajectory:
        """The conversation as a record of SPEC section 1."""
        final = self.final
        return Trajectory(
            trajectory_id=trajectory_id,
            question_id=self.task.question_id,
            question=self.task.question,
            steps=self.steps,
            answer=None if final is None else final.answer,
            citations=[] if final is None else list(final.citations),
            model=model,
            pool=self.task.pool,
            rollout=rollout,
            malformed_citations=0 if final is None else final.malformed,
            generated_tokens=len(self.logps),
        )


class Sampler:
    """Runs conversations.

    Args:
        config: shape of the policy.
        graph: its structure.
        tokeniser: its tokeniser.
        environment: answers its searches.
        mesh: the devices; rollouts are split over 'data' and 'fsdp' where these divide them.
        dtype: of the cache.
    """

    def __init__(
        self,
        config: ModelConfig,
        graph: nnx.GraphDef[Any],
        tokeniser: Tokeniser,
        environment: Environment,
        mesh: Mesh,
        dtype: Any = jnp.float32,
    ) -> None:
        self._config = config
        self._graph = graph
        self._tokeniser = tokeniser
        self._environment = environment
        self._mesh = mesh
        self._dtype = dtype
        self._prompts: dict[str, list[int]] = {}
        self._empty: dict[tuple[int, int], Any] = {}  # programs that make an empty context

    def run(
        self,
        params: Params,
        tasks: Sequence[Task],
        sampling: Sampling,
        *,
        seed: int,
        update: int,
        first_row: int = 0,
    ) -> list[Rollout]:
        """One rollout for each task, all together.

        Args:
            params: states of the policy.
            tasks: B questions; a question occurs once for each of its rollouts.
            sampling: limits and temperature.
            seed: of the run.
            update: number of the update, which randomness depends on.
            first_row: number of the first rollout.

        Returns:
            B rollouts that have ended.
        """
        runs = [Rollout(task, first_row + at) for at, task in enumerate(tasks)]
        waiting: list[Sequence[int]] = [self._prompt(task) for task in tasks]
        for run, tokens in zip(runs, waiting, strict=True):
            run.read(tokens, PROMPT)
        context: Context | None = None
        for turn in range(sampling.turns):
            live = np.array([run.stop is None for run in runs])
            if not live.any():
                break
            chunk, lengths = _padded(waiting)
            context = self._room(context, len(runs), chunk.shape[1] + sampling.turn_tokens)
            rows = np.array([run.row for run in runs], np.int32)
            context, written = take_turn(
                self._graph,
                params,
                context,
                *self._laid((chunk, lengths, rows, live)),
                np.array([seed, update, turn], np.uint32),
                length=sampling.turn_tokens,
                end=self._tokeniser.end,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                greedy=sampling.greedy,
                told=replicated(self._mesh),
            )
            tokens, logps, count, ended = jax.device_get(
                (written.tokens, written.logps, written.count, written.ended)
            )
            turns: list[tuple[int, Turn]] = []
            waiting = [()] * len(runs)
            for at in np.flatnonzero(live).tolist():
                n = int(count[at])
                read = self._write(runs[at], tokens[at, :n], logps[at, :n], bool(ended[at]))
                if read is not None:
                    turns.append((at, read))
            replies = self._environment.respond([turn for _, turn in turns])
            for (at, asked), reply in zip(turns, replies, strict=True):
                run = runs[at]
                run.steps.append(
                    Step(
                        query=asked.query or "",
                        retrieved=list(reply.retrieved),
                        valid=asked.failure is None,
                    )
                )
                if asked.failure is None:
                    run.searches[-1].retrieved = reply.retrieved
                if turn + 1 == sampling.turns:
                    run.stop = "turns"
                    continue
                run.read(reply.tokens, TOOL)
                waiting[at] = reply.tokens
        return runs

    def _laid(self, arrays: Any) -> Any:
        """Arrays whose first axis is the rollouts, split over the devices that can share them."""
        return jax.tree.map(lambda leaf: jax.device_put(leaf, self._place(leaf)), arrays)

    def _place(self, leaf: Any) -> NamedSharding:
        """Where an array lies: its first axis is the rollouts, of four the second the heads."""
        share = self._mesh.shape["data"] * self._mesh.shape["fsdp"]
        heads = "tensor" if self._config.kv_heads % self._mesh.shape["tensor"] == 0 else None
        rows = ("data", "fsdp") if leaf.ndim and leaf.shape[0] % share == 0 else None
        axes = (rows, heads) if leaf.ndim == 4 else (rows,) if leaf.ndim else ()
        return NamedSharding(self._mesh, PartitionSpec(*axes))

    def _prompt(self, task: Task) -> list[int]:
        if task.question not in self._prompts:
            self._prompts[task.question] = self._tokeniser.encode(prompt(task.question))
        return self._prompts[task.question]

    def _room(self, context: Context | None, rows: int, more: int) -> Context:
        """The context with so many free slots."""
        if context is None:
            slots = bucket(more, _SLOTS)

            if (rows, slots) not in self._empty:

                def empty() -> Context:
                    return Context(
                        cache=empty_cache(self._config, rows, slots, self._dtype),
                        held=jnp.zeros((rows, slots), jnp.bool_),
                        position=jnp.zeros(rows, jnp.int32),
                        at=jnp.int32(0),
                    )

                # Made where it is to lie: in a run of several hosts none holds all of it.
                where = jax.tree.map(self._place, jax.eval_shape(empty))
                self._empty[rows, slots] = jax.jit(empty, out_shardings=where)
            made: Context = self._empty[rows, slots]()
            return made
        slots = bucket(int(context.at) + more, _SLOTS)
        spare = slots - context.held.shape[1]
        if spare <= 0:
            return context
        return Context(
            cache=grow_cache(context.cache, slots),
            held=jnp.pad(context.held, ((0, 0), (0, spare))),
            position=context.position,
            at=context.at,
        )

    def _write(
        self, run: Rollout, tokens: NDArray[np.int32], logps: NDArray[np.float32], ended: bool
    ) -> Turn | None:
        """Append a turn of the policy; what it asks for, None where the rollout is over."""
        first = len(run.tokens)
        ids = tokens.tolist()
        run.tokens += ids
        run.logps += logps.tolist()
        run.spans.append(Span(POLICY, PLAIN, first, len(run.tokens)))
        text, ends = self._tokeniser.places(ids[:-1] if ended else ids)
        turn = read_turn(text)
        placed = [(piece.kind, _tokens_of(piece, ends, first)) for piece in turn.pieces]
        run.spans += [Span(POLICY, _KINDS[kind], *place) for kind, place in placed]
        if not ended:
            run.stop = "length"
            return None
        if turn.answer is not None:
            run.final, run.stop = turn, "answer"
            return None
        if turn.failure is None:
            query = next((place for kind, place in placed if kind == "query"), None)
            run.searches.append(Search((), (first, len(run.tokens)), query))
        return turn


def _tokens_of(piece: Piece, ends: NDArray[np.int64], first: int) -> tuple[int, int]:
    """Tokens that hold a character of a piece: [first, last) in the rollout."""
    begin = int(np.searchsorted(ends[1:], piece.first, side="right"))
    end = int(np.searchsorted(ends[:-1], piece.last, side="left"))
    return first + begin, first + max(begin, end)


def _padded(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Lists of ids as one array of a common width from few, and their lengths."""
    lengths = np.array([len(ids) for ids in lists], np.int32)
    padded = np.zeros((len(lists), bucket(int(lengths.max(initial=1)), _CHUNKS)), np.int32)
    for row, ids in enumerate(lists):
        padded[row, : len(ids)] = ids
    return padded, lengths
