"""An agent that knows the evidence graph: demonstrations of the right behaviour.

This is the only agent that is shown gold labels. It takes the nodes of a question in order, issues
their searches until the support has really come back from the corpus, answers with the gold answer
and cites the support that it retrieved. Its trajectories are for supervised warm starts; they are
no sample of how a policy behaves, and no audit should rest on them.
"""

from collections.abc import Sequence

from herald_jax.data.records import Trajectory
from herald_jax.world.agents import Action, Episode, Finish
from herald_jax.world.build import World
from herald_jax.world.episodes import LIVE, Run, Searcher, index_passages, record, run_together
from herald_jax.world.questions import Question

MODEL = "scripted-oracle"


def oracle_traces(
    world: World,
    questions: Sequence[Question] | None = None,
    *,
    index: Searcher | None = None,
    complete: bool = True,
) -> list[Trajectory]:
    """Demonstrations for questions of the world.

    Args:
        world: the world that is searched.
        questions: which of its questions; None is the train split, the one meant for learning.
        index: searches the world's passages; None builds one.
        complete: leave out demonstrations whose searches did not bring all the support.
    """
    questions = world.split("train") if questions is None else questions
    index = index_passages(world.passages) if index is None else index
    traces = []
    for first in range(0, len(questions), LIVE):
        batch = questions[first : first + LIVE]
        runs = [Run(_episode(question)) for question in batch]
        run_together(runs, index, world.passages)
        traces += [
            record(run, question, MODEL, rollout=0, selected=True)
            for run, question in zip(runs, batch, strict=True)
            if not complete or (run.final and set(run.final.citations) == set(question.support_ids))
        ]
    return traces


def _episode(question: Question) -> Episode:
    retrieved: dict[str, None] = {}
    asked: set[str] = set()
    for node in question.nodes:
        for query in node.queries:
            if query in asked or all(id_ in retrieved for id_ in node.support_ids):
                continue
            asked.add(query)
            hits = yield Action(query)
            retrieved.update(dict.fromkeys(hit.passage_id for hit in hits))
    cited = tuple(id_ for id_ in question.support_ids if id_ in retrieved)
    return Finish(question.answers[0], cited)
