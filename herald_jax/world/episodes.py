"""Running agents against the corpus: all live rollouts of a step search together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from herald_jax.data.ragged import Ragged
from herald_jax.data.records import Passage, Step, Trajectory
from herald_jax.data.text import answer_tokens
from herald_jax.search import CorpusIndex
from herald_jax.types import PAD
from herald_jax.world.agents import Action, Episode, Finish, Memory, View
from herald_jax.world.build import World
from herald_jax.world.habits import HABITS, Habit
from herald_jax.world.questions import Question
from herald_jax.world.streams import Stream

RESULTS: Final = 3
MAX_ACTIONS: Final = 16

# Rollouts that are live at the same time; bounds memory, changes nothing else.
LIVE: Final = 2048

# Tokens that a policy spends on the tags and thoughts of an action, for `generated_tokens`.
TOKENS_PER_ACTION: Final = 8


class Searcher(Protocol):
    """What the agents need of `search.CorpusIndex`."""

    def bm25(
        self, texts: Sequence[str], exclude: Ragged | None, k: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Codes [n, k] of the best passages, PAD where they run out, and their scores."""
        ...


@dataclass(slots=True)
class Run:
    """A rollout in progress."""

    episode: Episode
    steps: list[Step] = field(default_factory=list)
    action: Action | None = None
    final: Finish | None = None

    def advance(self, passages: Sequence[Passage] | None) -> None:
        """Hands over what the last action returned, None at the start, and takes the next one."""
        try:
            if len(self.steps) >= MAX_ACTIONS:
                self.episode.close()
                self.action, self.final = None, Finish(None)
            elif passages is None:
                self.action = next(self.episode)
            else:
                self.action = self.episode.send(passages)
        except StopIteration as stop:
            self.action, self.final = None, stop.value


def index_passages(passages: Sequence[Passage]) -> CorpusIndex:
    """BM25 index whose codes are positions in `passages`."""
    return CorpusIndex([(passage.title, passage.text) for passage in passages])


def run_together(
    runs: Sequence[Run], index: Searcher, passages: Sequence[Passage], results: int = RESULTS
) -> None:
    """Runs episodes to their ends, with one batched search for each round of actions."""
    for run in runs:
        run.advance(None)
    while live := [run for run in runs if run.action is not None]:
        queries = [_executed(run) for run in live]
        texts = [query for query in queries if query is not None]
        codes = iter(index.bm25(texts, None, results)[0].tolist() if texts else [])
        for run, query in zip(live, queries, strict=True):
            found = next(codes) if query is not None else []
            hits = [passages[code] for code in found if code != PAD]
            assert run.action is not None
            run.steps.append(
                Step(
                    query=run.action.query,
                    retrieved=[hit.passage_id for hit in hits],
                    valid=run.action.valid,
                )
            )
            run.advance(hits)


def _executed(run: Run) -> str | None:
    """The query of a run's pending action, when it is a search that can be executed."""
    action = run.action
    return action.query if action and action.valid and action.query.strip() else None


def rollouts(
    world: World,
    rollouts: int = 8,
    *,
    seed: int = 0,
    habits: Mapping[str, Habit] = HABITS,
    questions: Sequence[Question] | None = None,
    index: Searcher | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Trajectory]:
    """Rollouts of scripted agents, each habit drawn per rollout in proportion to its weight.

    Args:
        world: the world that they search.
        rollouts: rollouts of a question.
        seed: seed of the agents; it need not be the world's.
        habits: the agents and how often each is met.
        questions: which of the world's questions; None is all.
        index: searches the world's passages; None builds one.
        progress: told how many rollouts are done.

    Returns:
        Question by question, rollout by rollout; one rollout of each question is `selected`.
    """
    questions = world.questions if questions is None else questions
    index = index_passages(world.passages) if index is None else index
    memory = Memory(world.passages, seed)
    weights = {name: habit.weight for name, habit in habits.items()}
    made: list[Trajectory] = []
    at_once = max(1, LIVE // rollouts)
    for first in range(0, len(questions), at_once):
        drawn = [
            (question, rollout, _stream(seed, question, rollout))
            for question in questions[first : first + at_once]
            for rollout in range(rollouts)
        ]
        names = [stream.weighted(weights) for _, _, stream in drawn]
        runs = [
            Run(_clumsy(habits[name], View(question.text, memory, stream)))
            for name, (question, _, stream) in zip(names, drawn, strict=True)
        ]
        run_together(runs, index, world.passages)
        for run, name, (question, rollout, _) in zip(runs, names, drawn, strict=True):
            chosen = Stream(seed, "selected", question.question_id).below(rollouts)
            made.append(record(run, question, f"scripted-{name}", rollout, rollout == chosen))
        if progress:
            progress("rollouts", len(made), len(questions) * rollouts)
    return made


def record(run: Run, question: Question, model: str, rollout: int, selected: bool) -> Trajectory:
    """The trajectory of a finished run."""
    assert run.final is not None
    final = run.final
    words = sum(answer_tokens(step.query) for step in run.steps) + answer_tokens(final.answer or "")
    return Trajectory(
        trajectory_id=f"{question.question_id}/{rollout}",
        question_id=question.question_id,
        question=question.text,
        steps=run.steps,
        answer=final.answer,
        citations=list(final.citations),
        model=model,
        pool=question.kind,
        rollout=rollout,
        selected=selected,
        malformed_citations=final.malformed,
        generated_tokens=2 * words + TOKENS_PER_ACTION * (len(run.steps) + 1),
    )


def _stream(seed: int, question: Question, rollout: int) -> Stream:
    return Stream(seed, "rollout", question.question_id, rollout)


def _clumsy(habit: Habit, view: View) -> Episode:
    """An agent whose actions and citations sometimes come out wrong."""
    episode = habit.agent(view)
    hits: Sequence[Passage] | None = None
    while True:
        try:
            action = next(episode) if hits is None else episode.send(hits)
        except StopIteration as stop:
            final: Finish = stop.value
            break
        if view.stream.chance(habit.invalid):
            yield view.stream.pick((Action(""), Action(f"look up {action.query}", valid=False)))
        hits = yield action
    if view.stream.chance(habit.malformed):
        return Finish(final.answer, final.citations, malformed=1 + view.stream.below(2))
    return final
