"""Passages: one per entity, two to five sentences that state its facts among other things.

The first sentence names the entity and joins a statement to it ("Brackwell is a small town that
stands on the River Sarne."); the others refer to it by type, pronoun or surname and hold one or two
statements each. Order and wording are drawn per passage. Some name another entity of a similar
name that this one should not be confused with.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from herald_jax.data.records import Passage
from herald_jax.world.entities import PERSON_OPENINGS, TYPES
from herald_jax.world.facts import Entity
from herald_jax.world.relations import RELATIONS
from herald_jax.world.streams import Stream

JOIN: Final = ", and it "
PERSON_JOIN: Final = ", and "
CONFUSED: Final = "{it} should not be confused with {other}."

# Percent of sentences that hold two statements, and of passages with an aside or a similar name.
TWO_IN_ONE: Final = 60
WITH_ASIDE: Final = 70
WITH_SIMILAR: Final = 15
MOST_SENTENCES: Final = 5


def build_passages(seed: int, entities: Sequence[Entity]) -> tuple[Passage, ...]:
    """Passages of all entities, sorted by id as code points."""
    by_id = {entity.passage_id: entity for entity in entities}
    similar = _similar(entities)
    passages = []
    for entity in sorted(entities, key=lambda entity: entity.passage_id):
        stream = Stream(seed, "passage", entity.passage_id)
        peers = [peer for peer in similar[_likeness(entity)] if peer is not entity]
        text = _text(entity, by_id, peers, stream)
        passages.append(Passage(passage_id=entity.passage_id, title=entity.name, text=text))
    return tuple(passages)


def surface(entity: Entity, stream: Stream) -> str:
    """The name as it stands in running text, in one of its forms."""
    return stream.pick(TYPES[entity.type].surfaces).format(n=entity.core)


def _likeness(entity: Entity) -> tuple[str, str]:
    """Key that entities of one type with names alike share: last word, or first letters."""
    words = entity.core.split()
    return entity.type, words[-1] if len(words) > 1 else entity.core[:3]


def _similar(entities: Sequence[Entity]) -> Mapping[tuple[str, str], list[Entity]]:
    groups: dict[tuple[str, str], list[Entity]] = {}
    for entity in entities:
        groups.setdefault(_likeness(entity), []).append(entity)
    return groups


def _text(
    entity: Entity, by_id: Mapping[str, Entity], peers: Sequence[Entity], stream: Stream
) -> str:
    kind = TYPES[entity.type]
    person = entity.type == "person"
    surname = entity.core.split()[-1]
    later = (surname,) if person else kind.later

    def statement(relation: str) -> str:
        value = _value(relation, entity.facts[relation], by_id, stream)
        return stream.pick(RELATIONS[relation].states).format(y=value)

    waiting = stream.shuffled([name for name in entity.facts if name != "person.trade"])
    if person:
        trade = entity.facts["person.trade"][0]
        opening = stream.pick(PERSON_OPENINGS).format(n=entity.core, y=trade)
        linked = f"{opening} who {statement(waiting.pop())}."
    else:
        opening = stream.pick(kind.openings).format(n=entity.core)
        linked = f"{opening} that {statement(waiting.pop())}."

    sentences = [linked]
    while waiting:
        parts = [statement(waiting.pop())]
        full = len(sentences) + 1 + len(waiting) > MOST_SENTENCES - 1
        if waiting and (full or stream.chance(TWO_IN_ONE)):
            parts.append(statement(waiting.pop()))
        join = PERSON_JOIN if person else JOIN
        sentences.append(f"{stream.pick(later)} {join.join(parts)}.")
    if peers and len(sentences) < MOST_SENTENCES and stream.chance(WITH_SIMILAR):
        other = surface(stream.pick(peers), stream)
        sentences.append(CONFUSED.format(it=later[0], other=other))
    if len(sentences) < 2 or (len(sentences) < MOST_SENTENCES and stream.chance(WITH_ASIDE)):
        sentences.insert(1 + stream.below(len(sentences)), stream.pick(kind.asides))
    return " ".join(sentences)


def _value(
    relation: str, values: Sequence[str], by_id: Mapping[str, Entity], stream: Stream
) -> str:
    """Values as they stand in a sentence; lists as "A, B and C"."""
    if RELATIONS[relation].object not in TYPES:
        return values[0]
    names = [surface(by_id[value], stream) for value in values]
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
