"""Candidate questions of each kind, and their wording.

A candidate is drawn from one county and may be unsound; `world.checks` decides. Nothing here looks
at the text of a passage.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from herald_jax.data.records import Node, OracleRow
from herald_jax.world.entities import TYPES
from herald_jax.world.facts import Entity
from herald_jax.world.relations import BOTH, IN_ORDER, RELATIONS
from herald_jax.world.streams import Stream
from herald_jax.world.terms import Atlas, Both, Every, Follow, Hop, Named, Term, depth
from herald_jax.world.words import COUNT_WORDS


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its gold labels.

    Attributes:
        question_id: `split-kind-number`.
        split: `train`, `dev` or `test`.
        kind: one of `terms.KINDS`.
        text: the question as it is put.
        term: what it asks for.
        answers: accepted answers, the canonical one first.
        nodes: evidence graph, dependencies first.
    """

    question_id: str
    split: str
    kind: str
    text: str
    term: Term
    answers: tuple[str, ...]
    nodes: tuple[Hop, ...]

    @property
    def support_ids(self) -> tuple[str, ...]:
        """Distinct ids of the evidence passages, in the order of the nodes."""
        return tuple(dict.fromkeys(id_ for node in self.nodes for id_ in node.support_ids))

    @property
    def hops(self) -> int:
        """Evidence nodes that must be found one after another."""
        return depth(self.nodes)

    def oracle_row(self) -> OracleRow:
        """The gold labels as a record of the oracle file."""
        return OracleRow(
            question_id=self.question_id,
            answers=list(self.answers),
            support_ids=list(self.support_ids),
            nodes=[
                Node(
                    node_id=node.node_id,
                    depends_on=list(node.depends_on),
                    support_ids=list(node.support_ids),
                    answers=list(node.answers),
                )
                for node in self.nodes
            ],
        )


def propose(kind: str, county: Sequence[Entity], atlas: Atlas, stream: Stream) -> Term | None:
    """A random term of one kind over the entities of one county; None when the draw leads nowhere.

    Raises:
        ValueError: there is no such kind.
    """
    if kind == "single":
        return _chain(1, county, atlas, stream)
    if kind in ("chain2", "chain3", "chain4"):
        return _chain(int(kind[-1]), county, atlas, stream)
    if kind in ("conjunction", "fan_in"):
        return _both(kind == "fan_in", county, atlas, stream)
    if kind == "wide":
        return _every(county, atlas, stream)
    raise ValueError(f"no question kind {kind!r}")


def word(term: Term, stream: Stream) -> str:
    """The question that asks for `term`, in one of its wordings."""
    match term:
        case Follow(relation=relation, of=inner):
            return stream.pick(RELATIONS[relation].asks).format(x=noun_phrase(inner, stream))
        case Every(relation=relation, value=value, count=count):
            every = RELATIONS[relation].every
            return every.format(n=COUNT_WORDS[count], x=noun_phrase(value, stream)) + IN_ORDER
        case Both(left=left, right=right):
            a, b = (
                RELATIONS[side.relation].member.format(x=noun_phrase(side.of, stream))
                for side in (left, right)
            )
            return stream.pick(BOTH).format(a=a, b=b)


def noun_phrase(term: Named | Follow, stream: Stream) -> str:
    """Words that stand for the entity `term` in running text."""
    if isinstance(term, Named):
        return stream.pick(TYPES[term.type].surfaces).format(n=term.core)
    phrase = stream.pick(RELATIONS[term.relation].phrases)
    return phrase.format(x=noun_phrase(term.of, stream))


def _chain(length: int, county: Sequence[Entity], atlas: Atlas, stream: Stream) -> Term | None:
    """A walk of `length` relations that never comes back to an entity."""
    entity = stream.pick(county)
    term: Named | Follow = Named(entity.type, entity.core)
    seen = {entity.passage_id}
    for step in range(1, length + 1):
        last = step == length
        ways = [
            relation
            for relation, values in entity.facts.items()
            if (RELATIONS[relation].asks if last else RELATIONS[relation].phrases)
            and values[0] not in seen
        ]
        if not ways:
            return None
        relation = stream.pick(ways)
        value = entity.facts[relation][0]
        term = Follow(relation, term)
        seen.add(value)
        if not last:
            entity = atlas.entities[value]
    return term if isinstance(term, Follow) else None


def _both(nested: bool, county: Sequence[Entity], atlas: Atlas, stream: Stream) -> Term | None:
    """Two lists of people; nested, each held by something that must be found first."""
    lists = [
        (entity, relation)
        for entity in county
        for relation in entity.facts
        if RELATIONS[relation].member
    ]
    sides = []
    for entity, relation in stream.sample(lists, 2):
        holder: Named | Follow = Named(entity.type, entity.core)
        if nested:
            ways = [
                (way, atlas.entities[subject])
                for way, subject in atlas.holders(entity.passage_id)
                if RELATIONS[way].phrases
            ]
            if not ways:
                return None
            way, other = stream.pick(ways)
            holder = Follow(way, Named(other.type, other.core))
        sides.append(Follow(relation, holder))
    term = Both(*sides)
    return term if atlas.answers(term) else None


def _every(county: Sequence[Entity], atlas: Atlas, stream: Stream) -> Term | None:
    """All subjects that share one value."""
    relation = stream.pick([relation for relation in RELATIONS.values() if relation.every])
    entity = stream.pick([entity for entity in county if entity.type == relation.object])
    value = Named(entity.type, entity.core)
    found = len(atlas.values(Every(relation.name, value, 0)))
    return Every(relation.name, value, found) if found in COUNT_WORDS else None
