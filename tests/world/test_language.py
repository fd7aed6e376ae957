"""What is written can be read back: questions into terms, passages into facts."""

import re

from herald_jax.world.entities import TYPES
from herald_jax.world.questions import word
from herald_jax.world.reading import parse, read
from herald_jax.world.relations import RELATIONS
from herald_jax.world.streams import Stream
from herald_jax.world.terms import Follow, Named


def test_every_question_is_read_as_what_it_asks(world):
    for question in world.questions:
        assert parse(question.text) == question.term, question.text


def test_every_wording_of_a_question_is_read_as_what_it_asks(world):
    for number, question in enumerate(world.questions):
        for draw in range(5):
            text = word(question.term, Stream("wording", number, draw))
            assert parse(text) == question.term, text


def test_every_fact_is_read_and_no_other(world):
    texts = {passage.passage_id: passage.text for passage in world.passages}
    checked = 0
    for entity in world.entities:
        for relation in RELATIONS.values():
            if relation.subject != entity.type:
                continue
            values = entity.facts.get(relation.name, ())
            if relation.object in TYPES:
                named = (world.atlas.entities[value] for value in values)
                expected = tuple(Named(value.type, value.core) for value in named)
            else:
                expected = values
            found = read(texts[entity.passage_id], relation.name)
            assert found == expected, (entity.passage_id, relation.name)
            checked += 1
    assert checked > 1000


def test_a_wording_by_hand():
    assert parse("Where was the captain of the Grey Heron born?") == Follow(
        "person.birthplace", Follow("ship.captain", Named("ship", "Grey Heron"))
    )
    assert parse("Where is the best soup?") is None


def test_passages_have_two_to_five_sentences_and_name_their_subject_first(world):
    for passage in world.passages:
        sentences = re.split(r"(?<=\.) ", passage.text)
        assert 2 <= len(sentences) <= 5, passage.text
        assert all(re.fullmatch(r"[A-Z].*\.", sentence) for sentence in sentences)
        core = world.atlas.entities[passage.passage_id].core
        assert core in sentences[0] and core in passage.title
