"""Names never run out in silence, and no name hides in another."""

import dataclasses
import json

import pytest

from herald_jax.data.text import normalise, tokens
from herald_jax.world.entities import PERSON_OPENINGS, TYPES
from herald_jax.world.facts import MAX_COUNTIES, PER_COUNTY
from herald_jax.world.names import POOLS, NamePool, WorldError
from herald_jax.world.passages import CONFUSED
from herald_jax.world.relations import BOTH, IN_ORDER, RELATIONS
from herald_jax.world.streams import Stream
from herald_jax.world.words import LITERALS


def every_name(pool: NamePool) -> list[str]:
    sizes = [len(part) for part in pool.parts]
    return [pool.name(i, sizes) for i in range(len(pool))]


@pytest.mark.parametrize("kind", POOLS)
def test_pool_repeats_no_name(kind):
    names = every_name(POOLS[kind])
    assert len(set(names)) == len(names) == len(POOLS[kind])


def test_no_name_of_any_pool_is_part_of_another():
    # A search for one name in a text must not find it inside another name.
    single: set[str] = set()
    runs: dict[tuple[str, ...], str] = {}
    for kind, pool in POOLS.items():
        for name in every_name(pool):
            words = tuple(normalise(name).split())
            assert runs.setdefault(words, kind) == kind, name
            if len(words) == 1:
                single.add(words[0])
    inside = {words for words in runs if len(words) > 1 and single.intersection(words)}
    assert inside == set()
    # Nor in the words around it.
    wording = json.dumps(
        [
            [dataclasses.astuple(kind) for kind in TYPES.values()],
            [dataclasses.astuple(relation) for relation in RELATIONS.values()],
            [*LITERALS.values(), PERSON_OPENINGS, BOTH, IN_ORDER, CONFUSED],
        ]
    )
    assert single.intersection(tokens(wording)) == set()


def test_counties_are_limited_by_the_scarcest_name():
    assert min(len(POOLS[kind]) // PER_COUNTY[kind] for kind in POOLS) == MAX_COUNTIES
    assert set(PER_COUNTY) == set(POOLS)
    assert set(TYPES) <= set(POOLS)


def test_draw_is_distinct_and_uses_few_words_when_few_are_needed():
    pool = POOLS["person"]
    few = pool.draw(40, Stream("few"))
    assert len(set(few)) == 40
    surnames = {name.split()[1] for name in few}
    assert len(surnames) < 40  # people share surnames


def test_draw_of_a_whole_pool_and_one_more():
    pool = NamePool("{}{}", (("a", "b"), ("c", "d", "e")))
    assert sorted(pool.draw(6, Stream("all"))) == ["ac", "ad", "ae", "bc", "bd", "be"]
    with pytest.raises(WorldError, match="7 names are needed"):
        pool.draw(7, Stream("all"))
