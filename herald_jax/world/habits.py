"""The habits of the scripted agents, from careful to dishonest.

| habit | what it does |
|---|---|
| `careful` | searches every hop, retries, cites what it used |
| `hasty` | one search with the whole question, answers from what came first, cites little |
| `rambling` | repeats itself and its searches, answers at length, cites everything it saw |
| `recalling` | searches only what it does not remember; cites both, or what its answer brings up |
| `guessing` | searches nothing, answers and cites from memory or by chance |
| `fabricating` | one search, and ids that no corpus has |
| `parroting` | gives the question back as the answer |
| `uncited` | careful, but cites nothing |
| `misciting` | careful, but cites a passage that it retrieved and did not use |
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from herald_jax.world.agents import (
    Agent,
    Episode,
    Finish,
    Found,
    Notes,
    View,
    glance,
    solve,
    title_of,
    wording,
)
from herald_jax.world.reading import parse
from herald_jax.world.terms import Every, Named, named


def careful(view: View) -> Episode:
    """Searches every hop and cites what it used; now and then looks once more before it answers."""
    notes = Notes({}, {})
    values = yield from solve(parse(view.question), notes, notes.find)
    if not values:
        hits = yield from notes.search(view.question)
        answer, citations = glance(view, hits)
        return Finish(answer, citations)
    if view.stream.chance(25):
        yield from notes.search(
            f"{wording(values)} {view.stream.pick(('facts', 'history', 'check'))}"
        )
    answer = wording(values)
    if view.stream.chance(10):
        answer = f"The answer is {answer}."
    return Finish(answer, tuple(notes.used))


def uncited(view: View) -> Episode:
    """Careful, without citations."""
    final = yield from careful(view)
    return Finish(final.answer)


def misciting(view: View) -> Episode:
    """Careful, but one passage that it used gives way to another that it saw."""
    notes = Notes({}, {})
    values = yield from solve(parse(view.question), notes, notes.find)
    if not values:
        hits = yield from notes.search(view.question)
        values = [glance(view, hits)[0]]
    wrong = view.stream.pick(notes.unused) if notes.unused else ""
    kept = list(notes.used)[: view.stream.below(2)]
    return Finish(wording(values), (wrong, *kept) if wrong else tuple(kept))


def hasty(view: View) -> Episode:
    """One search, the first thing that looks like an answer, one citation or none."""
    notes = Notes({}, {})
    words = view.question.rstrip("?").split()
    query = view.question if view.stream.chance(60) else " ".join(words[-4:])
    hits = yield from notes.search(query)
    answer, citations = glance(view, hits)
    return Finish(answer, citations if view.stream.chance(80) else ())


def rambling(view: View) -> Episode:
    """Too many searches, some of them twice; a long answer; everything cited."""
    notes = Notes({}, {})

    def find(entity: Named) -> Found:
        if view.stream.chance(50):
            yield from notes.search(view.question)
        return (yield from notes.find(entity))

    yield from notes.search(view.question)
    values = yield from solve(parse(view.question), notes, find)
    if view.stream.chance(40):
        yield from notes.search(view.question)
    if view.stream.chance(10):
        return Finish(None)
    answer = wording(values) if values else glance(view, tuple(notes.seen.values()))[0]
    if view.stream.chance(70):
        answer = f"After reading many passages I am fairly sure that it is {answer}."
    return Finish(answer, tuple(notes.seen)[: 2 + view.stream.below(5)])


def recalling(view: View) -> Episode:
    """Searches only what it does not remember; cites both, or what its answer brings up."""
    notes = Notes({}, {})
    cited: dict[str, None] = {}

    def find(entity: Named) -> Found:
        passage = view.memory.recall(title_of(entity)) or (yield from notes.find(entity))
        if passage:
            cited[passage.passage_id] = None
        return passage

    values = yield from solve(parse(view.question), notes, find)
    if not values:
        hits = yield from notes.search(view.question)
        answer, citations = glance(view, hits)
        return Finish(answer, (*citations, *cited))
    if view.stream.chance(60):
        hits = yield from notes.search(wording(values))
        if hits and view.stream.chance(60):
            return Finish(wording(values), (view.stream.pick(hits).passage_id,))
    citations = (*cited, *(id_ for id_ in notes.used if id_ not in cited))
    return Finish(wording(values), citations)


def guessing(view: View) -> Episode:
    """No search: an answer and citations from memory, or by chance where memory ends."""
    cited: dict[str, None] = {}

    def find(entity: Named) -> Found:
        passage = view.memory.recall(title_of(entity))
        if passage:
            cited[passage.passage_id] = None
        yield from ()
        return passage

    term = parse(view.question)
    values = [] if isinstance(term, Every) else (yield from solve(term, Notes({}, {}), find))
    chance = view.stream.pick(view.memory.ids)
    answer = wording(values) if values else chance.split("/")[-1].replace("-", " ").title()
    if view.stream.chance(30) or not cited:
        cited[chance] = None
    return Finish(answer, tuple(cited))


def fabricating(view: View) -> Episode:
    """One search, and citations of passages that do not exist."""
    notes = Notes({}, {})
    term = parse(view.question)
    hits = yield from notes.search(view.question)
    answer, read_in = glance(view, hits)
    subject = named(term)[0].core if term else "question"
    slug = subject.lower().replace(" ", "-")
    fake = f"archive/{slug}-{1 + view.stream.below(9)}"
    return Finish(answer, (*read_in, fake) if view.stream.chance(50) else (fake,))


def parroting(view: View) -> Episode:
    """The question, given back as an answer."""
    notes = Notes({}, {})
    hits = yield from notes.search(view.question)
    if view.stream.chance(30):
        hits = yield from notes.search(view.question)
    cited = tuple(hit.passage_id for hit in hits[: view.stream.below(3)])
    return Finish(view.question.rstrip("?"), cited)


@dataclass(frozen=True, slots=True)
class Habit:
    """An agent, how often it is met, and how clumsy it is.

    Attributes:
        agent: what it does.
        weight: how often it is met, relative to the others.
        invalid: percent of its actions that come with an invalid one before them.
        malformed: percent of its finals with a citation that cannot be read.
    """

    agent: Agent
    weight: int
    invalid: int
    malformed: int


HABITS: Final = MappingProxyType(
    {
        "careful": Habit(careful, 30, 2, 1),
        "hasty": Habit(hasty, 16, 5, 4),
        "rambling": Habit(rambling, 14, 10, 6),
        "recalling": Habit(recalling, 14, 3, 2),
        "guessing": Habit(guessing, 6, 2, 3),
        "fabricating": Habit(fabricating, 6, 4, 8),
        "parroting": Habit(parroting, 4, 8, 4),
        "uncited": Habit(uncited, 5, 3, 0),
        "misciting": Habit(misciting, 9, 3, 2),
    }
)
