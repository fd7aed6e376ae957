"""The entities of the world and the facts that hold between them.

Entities live in counties, and every fact that links two entities links two of one county. A split
of counties therefore splits the evidence (`world.splits`). The people of a county are few, so that
lists of wardens, mates and judges overlap, and names share parts with those of other counties.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from herald_jax.world.entities import TYPES
from herald_jax.world.names import POOLS, WorldError
from herald_jax.world.relations import RELATIONS, Relation
from herald_jax.world.streams import Stream
from herald_jax.world.words import LITERALS

PER_COUNTY: Final = MappingProxyType(
    {
        "town": 6,
        "river": 2,
        "hill": 2,
        "person": 16,
        "guild": 5,
        "ship": 5,
        "fair": 4,
        "book": 5,
        "bridge": 3,
    }
)
MAX_COUNTIES: Final = min(len(POOLS[kind]) // count for kind, count in PER_COUNTY.items())

# Percent of subjects for which a fact is on record; 100 where nothing is said.
RECORDED: Final = MappingProxyType(
    {
        "person.teacher": 85,
        "person.guild": 60,
        "person.year": 70,
        "town.craft": 80,
        "ship.cargo": 80,
    }
)
LIST_LENGTH: Final = 3

# First year, and number of years, in which a thing of each kind may have begun.
YEARS: Final = MappingProxyType(
    {"town.year": (1100, 300), "person.year": (1600, 40), "bridge.year": (1640, 60)}
)


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing that has a passage of its own.

    Attributes:
        passage_id: its id, `type/core-name`.
        type: key of `entities.TYPES`.
        core: the part of the name that is its own ("Grey Heron").
        county: number of the county it lies in.
        facts: values by name of relation: ids of entities or literals, in the order of the text.
    """

    passage_id: str
    type: str
    core: str
    county: int
    facts: Mapping[str, tuple[str, ...]] = field(repr=False)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Every form of the name, the canonical one first."""
        return tuple(form.format(n=self.core) for form in TYPES[self.type].aliases)

    @property
    def name(self) -> str:
        """Canonical name, the title of its passage."""
        return self.aliases[0]


def passage_id(kind: str, core: str) -> str:
    """Id of the passage about the entity of a type and core name, e.g. `ship/grey-heron`."""
    return f"{kind}/{core.lower().replace(' ', '-')}"


def build_entities(seed: int, counties: int) -> tuple[Entity, ...]:
    """All entities of a world of `counties` counties, county by county.

    Raises:
        WorldError: there are fewer names than that many counties need.
    """
    if counties > MAX_COUNTIES:
        raise WorldError(f"{counties} counties were asked for; names suffice for {MAX_COUNTIES}")
    names = {
        kind: pool.draw(PER_COUNTY[kind] * counties, Stream(seed, "names", kind))
        for kind, pool in POOLS.items()
    }
    entities: list[Entity] = []
    for county in range(counties):
        own = {
            kind: names[kind][county * size : (county + 1) * size]
            for kind, size in PER_COUNTY.items()
        }
        entities += _county(seed, county, own)
    return tuple(entities)


def _county(seed: int, county: int, names: Mapping[str, list[str]]) -> list[Entity]:
    """Entities of one county with their facts, types and relations in the order of the tables."""
    stream = Stream(seed, "county", county)
    ids = {kind: [passage_id(kind, core) for core in names[kind]] for kind in TYPES}
    fairs = iter(stream.shuffled(ids["fair"]))
    sources = iter(names["hill"])
    entities = []
    for kind in TYPES:
        for core, own_id in zip(names[kind], ids[kind], strict=True):
            facts: dict[str, tuple[str, ...]] = {}
            for relation in RELATIONS.values():
                if relation.subject != kind or not stream.chance(RECORDED.get(relation.name, 100)):
                    continue
                if relation.name == "town.fair":
                    values = [fair for fair in (next(fairs, None),) if fair]
                elif relation.name == "river.source":
                    values = [next(sources)]
                elif relation.object in TYPES:
                    taken = {own_id, *(value for held in facts.values() for value in held)}
                    others = ids[relation.object]
                    if relation.name == "person.teacher":  # nobody taught their own teacher
                        others = others[others.index(own_id) + 1 :]
                    free = [other for other in others if other not in taken]
                    count = LIST_LENGTH if relation.member else 1
                    values = stream.sample(free, min(count, len(free)))
                else:
                    values = [_literal(relation, stream)]
                if values:
                    facts[relation.name] = tuple(values)
            entities.append(Entity(own_id, kind, core, county, MappingProxyType(facts)))
    return entities


def _literal(relation: Relation, stream: Stream) -> str:
    if relation.object == "year":
        first, span = YEARS[relation.name]
        return str(first + stream.below(span))
    if relation.object == "miles":
        return str(12 + stream.below(180))
    return stream.pick(LITERALS[relation.object])
