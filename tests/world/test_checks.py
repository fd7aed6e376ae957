"""Each check refuses what it is there for: faults are planted one by one in a sound world."""

from dataclasses import replace

import msgspec
import pytest

from herald_jax.world import WorldError
from herald_jax.world.checks import CorpusText, check_world, occurs, refusals
from herald_jax.world.splits import overlaps
from herald_jax.world.terms import named


def first(world, kind):
    return next(question for question in world.questions if question.kind == kind)


def with_passage(world, passage_id, sentence):
    """The corpus with a sentence added to one passage."""
    return CorpusText(
        msgspec.structs.replace(passage, text=f"{passage.text} {sentence}")
        if passage.passage_id == passage_id
        else passage
        for passage in world.passages
    )


def bystander(world, question):
    """A passage that has nothing to do with a question."""
    return next(p.passage_id for p in world.passages if p.passage_id not in question.support_ids)


def reasons(world, question, corpus=None):
    return refusals(question, world.atlas, corpus or CorpusText(world.passages))


def test_sound_world_has_no_faults(world):
    world.check()


@pytest.mark.parametrize("kind", ["single", "chain3", "wide", "fan_in"])
def test_answer_in_question(world, kind):
    question = first(world, kind)
    form = question.nodes[-1].answers[0] if kind == "wide" else question.answers[-1]
    planted = replace(question, text=f"{question.text} Is it {form.upper()}?")
    assert any("the question holds the answer" in reason for reason in reasons(world, planted))


@pytest.mark.parametrize("kind", ["chain2", "chain3", "chain4", "fan_in"])
def test_passage_that_joins_the_start_to_the_answer(world, kind):
    question = first(world, kind)
    for start in named(question.term):
        sentence = f"Some say that {start.core} leads to {question.answers[0]}."
        corpus = with_passage(world, bystander(world, question), sentence)
        assert any(f"joins {start.core}" in reason for reason in reasons(world, question, corpus))


def test_passage_that_joins_both_conditions(world):
    question = first(world, "conjunction")
    a, b = (start.core for start in named(question.term))
    where = bystander(world, question)
    one = with_passage(world, where, f"{question.answers[0]} knows the {a}.")
    assert reasons(world, question, one) == []
    both = with_passage(world, where, f"{question.answers[0]} knows the {a} and the {b}.")
    assert reasons(world, question, both) == [f"{where} joins both conditions to the answer"]


def test_passage_that_lists_a_wide_answer(world):
    question = first(world, "wide")
    hub = question.term.value.core
    where = bystander(world, question)
    corpus = with_passage(world, where, f"Near {hub} are {question.answers[0]}.")
    assert reasons(world, question, corpus) == [
        f"{where} alone gives more than one part of the answer"
    ]


def test_single_evidence_may_stand_in_one_passage(world):
    question = first(world, "single")
    corpus = with_passage(world, question.support_ids[0], f"Yes, {question.answers[0]}.")
    assert reasons(world, question, corpus) == []


def test_support_without_the_answer(world):
    question = first(world, "chain2")
    other = bystander(world, question)
    last = replace(question.nodes[-1], support_ids=(other,))
    found = reasons(world, replace(question, nodes=(*question.nodes[:-1], last)))
    assert any("nothing known by then names" in reason for reason in found)
    missing = replace(question.nodes[-1], support_ids=("town/nowhere",))
    found = reasons(world, replace(question, nodes=(*question.nodes[:-1], missing)))
    assert "n2: no passage town/nowhere" in found
    blank = [
        msgspec.structs.replace(passage, text="Nothing is known.")
        if passage.passage_id == question.support_ids[-1]
        else passage
        for passage in world.passages
    ]
    found = reasons(world, question, CorpusText(blank))
    assert found == [f"n2: {question.support_ids[-1]} does not hold its answer"]


def test_answer_that_the_facts_do_not_give(world):
    question = first(world, "single")
    planted = replace(question, answers=("nobody",))
    assert reasons(world, planted) == ["the facts do not give this one answer"]


def test_runs_of_words_and_not_of_letters():
    assert occurs("The Grey Heron", "on grey heron today")
    assert not occurs("Grey Heron", "on grey herons today")
    assert not occurs("...", "on grey heron")


def test_check_world_lists_every_fault(world):
    single, chain = first(world, "single"), first(world, "chain2")
    planted = [
        replace(single, answers=("nobody",)),
        replace(chain, text=f"{chain.text} {chain.answers[0]}"),
    ]
    with pytest.raises(WorldError) as error:
        check_world(planted, world.passages, world.atlas)
    assert single.question_id in str(error.value) and chain.question_id in str(error.value)


def test_overlaps_of_id_question_and_evidence(world):
    train, test = world.split("train")[0], world.split("test")[0]
    assert overlaps([train, test]) == []
    same_id = overlaps([train, replace(test, question_id=train.question_id)])
    assert any(fault.startswith("question id") for fault in same_id)
    same_text = overlaps([train, replace(test, text=train.text.upper())])
    assert any(fault.startswith("question ") for fault in same_text)
    same_evidence = overlaps([train, replace(test, nodes=train.nodes)])
    assert any(fault.startswith("evidence passage") for fault in same_evidence)
