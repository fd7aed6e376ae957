"""What a scripted agent is, and the skills that the habits share: searching, reading, answering.

An agent is a generator. It is given a `View` and yields `Action`s; for each it is sent the passages
that came back, none for an action that cannot be executed; its return value is the `Finish`. It
never sees gold labels or facts: it reads questions and passages with `world.reading`, and what it
answers was read, remembered or made up.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from herald_jax.data.records import Passage
from herald_jax.world.entities import TYPES
from herald_jax.world.reading import parse, read
from herald_jax.world.relations import RELATIONS
from herald_jax.world.streams import Stream
from herald_jax.world.terms import (
    Both,
    Every,
    Follow,
    Named,
    Term,
    name_queries,
    statement_queries,
)


@dataclass(frozen=True, slots=True)
class Action:
    """One step: a search, or something that cannot be executed."""

    query: str
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a rollout; `answer` None when none was given."""

    answer: str | None
    citations: tuple[str, ...] = ()
    malformed: int = 0


class Memory:
    """What an agent has of the corpus in its weights: every id, and half of the passages."""

    def __init__(self, passages: Sequence[Passage], seed: int):
        self.ids = tuple(passage.passage_id for passage in passages)
        self._recalled = {
            passage.title: passage
            for passage in passages
            if Stream(seed, "memory", passage.passage_id).chance(50)
        }

    def recall(self, title: str) -> Passage | None:
        """The passage of that title, when it is remembered."""
        return self._recalled.get(title)


@dataclass(frozen=True, slots=True)
class View:
    """What an agent has to go by: the question, its memory and a source of chance."""

    question: str
    memory: Memory
    stream: Stream


Episode: TypeAlias = Generator[Action, Sequence[Passage], Finish]
Agent: TypeAlias = Callable[[View], Episode]
Value: TypeAlias = Named | str
Found: TypeAlias = Generator[Action, Sequence[Passage], Passage | None]
Solved: TypeAlias = Generator[Action, Sequence[Passage], list[Value]]
Finder: TypeAlias = Callable[[Named], Found]


@dataclass(slots=True)
class Notes:
    """What an agent has seen and used so far, in order and without repeats."""

    seen: dict[str, Passage]
    used: dict[str, None]

    def search(self, query: str) -> Generator[Action, Sequence[Passage], Sequence[Passage]]:
        """One search, remembered."""
        hits = yield Action(query)
        self.seen.update({hit.passage_id: hit for hit in hits if hit.passage_id not in self.seen})
        return hits

    def find(self, entity: Named) -> Found:
        """Searches for the passage about an entity, in two wordings."""
        title = title_of(entity)
        for query in name_queries(entity):
            for hit in (yield from self.search(query)):
                if hit.title == title:
                    self.used[hit.passage_id] = None
                    return hit
        return None

    @property
    def unused(self) -> list[str]:
        """Ids that were retrieved and not used."""
        return [passage_id for passage_id in self.seen if passage_id not in self.used]


def title_of(entity: Named) -> str:
    """Title of the passage about an entity."""
    return TYPES[entity.type].aliases[0].format(n=entity.core)


def wording(values: Sequence[Value]) -> str:
    """An answer that lists values in alphabetical order."""
    names = sorted(title_of(value) if isinstance(value, Named) else value for value in values)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _resolve(term: Named | Follow, find: Finder) -> Solved:
    """Values of a term, hop by hop; [] when a passage was not found or does not say."""
    if isinstance(term, Named):
        return [term]
    held = yield from _resolve(term.of, find)
    if len(held) != 1 or not isinstance(held[0], Named):
        return []
    passage = yield from find(held[0])
    return list(read(passage.text, term.relation)) if passage else []


def solve(term: Term | None, notes: Notes, find: Finder) -> Solved:
    """What a question asks for, searched with care; [] when it was not found."""
    match term:
        case Follow():
            return (yield from _resolve(term, find))
        case Both(left=left, right=right):
            a = yield from _resolve(left, find)
            b = yield from _resolve(right, find)
            return [value for value in a if value in b]
        case Every(relation=relation, value=value, count=count):
            return (yield from _collect(relation, value, count, notes))
        case None:
            return []


def _collect(relation: str, value: Named, count: int, notes: Notes) -> Solved:
    """Subjects whose passages state the relation to `value`, until `count` are found."""
    found: dict[Value, None] = {}
    subject = RELATIONS[relation].subject
    for query in statement_queries(relation, title_of(value)):
        for hit in (yield from notes.search(query)):
            if hit.passage_id.startswith(f"{subject}/") and read(hit.text, relation) == (value,):
                core = _core(subject, hit.title)
                if len(found) < count and Named(subject, core) not in found:
                    found[Named(subject, core)] = None
                    notes.used[hit.passage_id] = None
        if len(found) == count:
            break
    return list(found)


def _core(kind: str, title: str) -> str:
    before, after = TYPES[kind].aliases[0].split("{n}")
    return title.removeprefix(before).removesuffix(after)


def glance(view: View, hits: Sequence[Passage]) -> tuple[str, tuple[str, ...]]:
    """An answer from the first passage that seems to say something, and that passage."""
    term = parse(view.question)
    relation = term.relation if isinstance(term, Follow | Every) else None
    for hit in hits:
        if relation and (values := read(hit.text, relation)):
            return wording(values), (hit.passage_id,)
    if not hits:
        return "unknown", ()
    hit = view.stream.pick(hits)
    return hit.title, (hit.passage_id,)
