"""Solutions and evidence graphs of terms, against a slow reading of the facts and by hand."""

import pytest

from herald_jax.world.facts import Entity
from herald_jax.world.terms import Atlas, Both, Every, Follow, Named

ENTITIES = (
    Entity("ship/grey-heron", "ship", "Grey Heron", 0, {
        "ship.captain": ("person/odo-low",),
        "ship.mates": ("person/una-ling", "person/abel-cote", "person/ivor-son"),
        "ship.yard": ("town/brackwell",),
    }),
    Entity("ship/bold-otter", "ship", "Bold Otter", 0, {"ship.yard": ("town/brackwell",)}),
    Entity("guild/old-awl", "guild", "Old Awl", 0, {
        "guild.wardens": ("person/abel-cote", "person/odo-low", "person/edda-ward"),
        "guild.flagship": ("ship/grey-heron",),
    }),
    Entity("town/brackwell", "town", "Brackwell", 0, {"town.fair": ("fair/grey-ivy",)}),
    Entity("fair/grey-ivy", "fair", "Grey Ivy", 0, {
        "fair.judges": ("person/una-ling", "person/edda-ward", "person/odo-low"),
    }),
    *(
        Entity(f"person/{core.lower().replace(' ', '-')}", "person", core, 0, {
            "person.trade": ("mason",),
        })
        for core in ("Odo Low", "Una Ling", "Abel Cote", "Ivor Son", "Edda Ward")
    ),
)  # fmt: skip
SHIP = Named("ship", "Grey Heron")
GUILD = Named("guild", "Old Awl")


@pytest.fixture
def atlas():
    return Atlas(ENTITIES)


def nodes(atlas, term):
    return [(hop.node_id, hop.depends_on, hop.support_ids, hop.answers) for hop in atlas.hops(term)]


def test_chain(atlas):
    term = Follow("person.trade", Follow("ship.captain", SHIP))
    assert atlas.answers(term) == ("mason",)
    assert nodes(atlas, term) == [
        ("n1", (), ("ship/grey-heron",), ("Odo Low",)),
        ("n2", ("n1",), ("person/odo-low",), ("mason",)),
    ]


def test_conjunction_has_two_independent_nodes(atlas):
    term = Both(Follow("ship.mates", SHIP), Follow("guild.wardens", GUILD))
    assert atlas.answers(term) == ("Abel Cote",)
    assert nodes(atlas, term) == [
        ("n1", (), ("ship/grey-heron",), ("Abel Cote",)),
        ("n2", (), ("guild/old-awl",), ("Abel Cote",)),
    ]


def test_fan_in_meets_in_one_node(atlas):
    term = Both(
        Follow("ship.mates", Follow("guild.flagship", GUILD)),
        Follow("fair.judges", Follow("town.fair", Named("town", "Brackwell"))),
    )
    assert atlas.answers(term) == ("Una Ling",)
    assert nodes(atlas, term) == [
        ("n1", (), ("guild/old-awl",), ("Grey Heron",)),
        ("n2", (), ("town/brackwell",), ("Grey Ivy Fair", "Fair of the Grey Ivy", "Grey Ivy")),
        ("n3", ("n1", "n2"), ("ship/grey-heron", "fair/grey-ivy"), ("Una Ling",)),
    ]


def test_wide_lists_all_subjects_in_alphabetical_order(atlas):
    term = Every("ship.yard", Named("town", "Brackwell"), 2)
    assert atlas.answers(term) == ("Bold Otter and Grey Heron", "Bold Otter, Grey Heron")
    assert [hop.depends_on for hop in atlas.hops(term)] == [(), ()]
    assert atlas.answers(Every("ship.yard", Named("town", "Brackwell"), 3)) == ()


def test_two_values_are_no_answer(atlas):
    # Wardens and judges have Odo Low and Edda Ward in common.
    sides = Follow("guild.wardens", GUILD), Follow("fair.judges", Named("fair", "Grey Ivy"))
    assert atlas.answers(Both(*sides)) == ()


def test_holders_leave_lists_out(atlas):
    assert atlas.holders("person/odo-low") == (("ship.captain", "ship/grey-heron"),)


def slow(world, term):
    """Solutions by going through every entity of the world for every step."""
    match term:
        case Named(type=kind, core=core):
            return {e.passage_id for e in world.entities if (e.type, e.core) == (kind, core)}
        case Follow(relation=relation, of=inner):
            subjects = slow(world, inner)
            return {
                value
                for e in world.entities
                if e.passage_id in subjects
                for value in e.facts.get(relation, ())
            }
        case Both(left=left, right=right):
            return slow(world, left) & slow(world, right)
        case Every(relation=relation, value=value):
            held = slow(world, value)
            return {e.passage_id for e in world.entities if held & {*e.facts.get(relation, ())}}


def test_answers_are_unique_under_the_facts(world):
    for question in world.questions:
        values = slow(world, question.term)
        assert values == set(world.atlas.values(question.term))
        assert len(values) == (question.term.count if question.kind == "wide" else 1)
