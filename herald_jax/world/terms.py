"""What a question asks, as a term over the world's relations; its solution and its evidence.

| kind | term |
|---|---|
| `single` | `Follow(r, Named)` |
| `chain2` .. `chain4` | `Follow` of `Follow` of ... of `Named`, two to four deep |
| `conjunction` | `Both(Follow(list, Named), Follow(list, Named))` |
| `wide` | `Every(r, Named)`: all subjects whose r is that entity |
| `fan_in` | `Both(Follow(list, Follow(r, Named)), Follow(list, Follow(r, Named)))` |

The solution is computed from the facts alone, by name lookup and relation, and never from the text;
`world.reading` goes the other way. Evidence nodes are those of SPEC section 1.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from herald_jax.world.entities import TYPES
from herald_jax.world.facts import Entity
from herald_jax.world.relations import RELATIONS

KINDS: Final = ("single", "chain2", "chain3", "chain4", "conjunction", "wide", "fan_in")


@dataclass(frozen=True, slots=True)
class Named:
    """An entity that the question names."""

    type: str
    core: str


@dataclass(frozen=True, slots=True)
class Follow:
    """The value, or the values, of a relation of what `of` stands for."""

    relation: str
    of: "Named | Follow"


@dataclass(frozen=True, slots=True)
class Both:
    """What two lists have in common."""

    left: Follow
    right: Follow


@dataclass(frozen=True, slots=True)
class Every:
    """All subjects whose value of a relation is the named entity; the question says how many."""

    relation: str
    value: Named
    count: int


Term: TypeAlias = Follow | Both | Every


@dataclass(frozen=True, slots=True)
class Hop:
    """One node of a question's evidence graph.

    Attributes:
        node_id: `n1`, `n2`, ... in an order in which dependencies come first.
        depends_on: nodes that must be known before this one can be looked for.
        support_ids: passages that hold it.
        answers: what it contributes, in every accepted form.
        queries: searches that lead to it, best first, worded with what is known by then.
    """

    node_id: str
    depends_on: tuple[str, ...]
    support_ids: tuple[str, ...]
    answers: tuple[str, ...]
    queries: tuple[str, ...]


class Atlas:
    """Lookup of the world's facts, forwards and backwards."""

    def __init__(self, entities: Iterable[Entity]):
        self.entities: Mapping[str, Entity] = MappingProxyType(
            {entity.passage_id: entity for entity in entities}
        )
        named: dict[tuple[str, str], list[str]] = {}
        subjects: dict[tuple[str, str], list[str]] = {}
        valued: dict[str, dict[str, None]] = {}
        for entity in self.entities.values():
            named.setdefault((entity.type, entity.core), []).append(entity.passage_id)
            for relation, values in entity.facts.items():
                for value in values:
                    subjects.setdefault((relation, value), []).append(entity.passage_id)
                    valued.setdefault(value, {})[relation] = None
        self._named = named
        self._subjects = subjects
        self._valued = valued

    def values(self, term: Named | Term) -> tuple[str, ...]:
        """All entity ids or literals that `term` stands for, in a fixed order."""
        match term:
            case Named(type=kind, core=core):
                return tuple(self._named.get((kind, core), ()))
            case Follow(relation=relation, of=inner):
                held = (self.entities[id_].facts.get(relation, ()) for id_ in self.values(inner))
                return tuple(dict.fromkeys(value for values in held for value in values))
            case Both(left=left, right=right):
                other = self.values(right)
                return tuple(value for value in self.values(left) if value in other)
            case Every(relation=relation, value=value):
                ids = (self._subjects.get((relation, id_), []) for id_ in self.values(value))
                return tuple(sorted(subject for subjects in ids for subject in subjects))

    def holders(self, value: str) -> tuple[tuple[str, str], ...]:
        """(relation, subject) of every fact whose one value this is."""
        return tuple(
            (relation, subject)
            for relation in self._valued.get(value, ())
            for subject in self._subjects[relation, value]
            if len(self.entities[subject].facts[relation]) == 1
        )

    def forms(self, relation: str, value: str) -> tuple[str, ...]:
        """Accepted forms of a value of `relation`, the canonical one first."""
        if RELATIONS[relation].object in TYPES:
            return self.entities[value].aliases
        if RELATIONS[relation].object == "miles":
            return (value, f"{value} miles")
        return (value,)

    def answers(self, term: Term) -> tuple[str, ...]:
        """Accepted answers to the question that `term` asks; () when it has no single answer."""
        values = self.values(term)
        match term:
            case Every(count=count):
                names = sorted(self.entities[value].name for value in values)
                if len(names) != count or count < 2:
                    return ()
                head, last = ", ".join(names[:-1]), names[-1]
                return (f"{head} and {last}", f"{head}, {last}")
            case Follow(relation=relation) | Both(left=Follow(relation=relation)):
                return self.forms(relation, values[0]) if len(values) == 1 else ()

    def hops(self, term: Term) -> tuple[Hop, ...]:
        """Evidence nodes of a term that has an answer."""
        hops: list[Hop] = []

        def add(
            depends: list[str], support: list[str], answers: tuple[str, ...], *queries: str
        ) -> str:
            node_id = f"n{len(hops) + 1}"
            hops.append(Hop(node_id, tuple(depends), tuple(support), answers, queries))
            return node_id

        def lookup(inner: Named | Follow) -> list[str]:
            """Nodes that make the entity known that `inner` stands for."""
            if isinstance(inner, Named):
                return []
            depends = lookup(inner.of)
            subject = self.entities[self.values(inner.of)[0]]
            forms = self.forms(inner.relation, self.values(inner)[0])
            return [add(depends, [subject.passage_id], forms, *name_queries(subject))]

        match term:
            case Follow():
                lookup(term)
            case Every(relation=relation, value=value):
                queries = statement_queries(relation, self.entities[self.values(value)[0]].name)
                for subject in self.values(term):
                    add([], [subject], self.entities[subject].aliases, *queries)
            case Both(left=left, right=right):
                answers = self.answers(term)
                sides = [self.entities[self.values(side.of)[0]] for side in (left, right)]
                support = [side.passage_id for side in sides]
                if isinstance(left.of, Named) and isinstance(right.of, Named):
                    for side in sides:
                        add([], [side.passage_id], answers, *name_queries(side))
                else:
                    depends = lookup(left.of) + lookup(right.of)
                    add(depends, support, answers, *(side.name for side in sides))
        return tuple(hops)


def name_queries(entity: Entity | Named) -> tuple[str, str]:
    """Searches for the passage about an entity: its name, then its type and name."""
    return TYPES[entity.type].aliases[0].format(n=entity.core), f"{entity.type} {entity.core}"


def statement_queries(relation: str, name: str) -> tuple[str, ...]:
    """Searches for passages that state a relation to the entity of that name."""
    return tuple(state.format(y=name) for state in RELATIONS[relation].states)


def named(term: Named | Term) -> tuple[Named, ...]:
    """Entities that the question names, from left to right."""
    match term:
        case Named():
            return (term,)
        case Follow(of=inner):
            return named(inner)
        case Both(left=left, right=right):
            return named(left) + named(right)
        case Every(value=value):
            return (value,)


def depth(hops: Iterable[Hop]) -> int:
    """Nodes on the longest path of dependencies."""
    levels: dict[str, int] = {}
    for hop in hops:
        levels[hop.node_id] = 1 + max((levels[node] for node in hop.depends_on), default=0)
    return max(levels.values(), default=0)
