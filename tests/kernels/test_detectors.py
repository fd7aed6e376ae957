import jax
import pytest
import trajectory_strategies as strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.detectors import detect
from reference.settings import Settings
from trajectory_arrays import Row, Rows, Widths, encode, rules

from herald_jax.kernels import detectors, programs
from herald_jax.types import DETECTORS

ROWS = 4
WIDE = Widths(retrieved=96)
THRESHOLDS = st.builds(Settings, min_searches=st.integers(0, 3), max_searches=st.integers(0, 5))


@jax.jit
def flags_of(state, support, limits):
    return jax.vmap(detectors.detect, in_axes=(-1, -1, None), out_axes=-1)(state, support, limits)


def flags(block, widths=Widths(), chosen=None):  # noqa: B008
    visible, oracle, codes = encode(block, widths)
    state = programs.describe(visible, codes.passages)
    _, labels = programs.describe_offer(visible.citations, visible, oracle, codes.passages)
    found = flags_of(state, labels.support, rules(chosen).limits)
    return [
        {name: bool(getattr(found, name)[row]) for name in DETECTORS}
        for row in range(len(block.rows))
    ]


def expected(block, chosen):
    return [
        detect(row.trajectory, block.corpus, row.gold["support_ids"], chosen) for row in block.rows
    ]


@given(strategies.blocks(ROWS), THRESHOLDS)
def test_against_the_reference(block, chosen):
    assert flags(block, chosen=chosen) == expected(block, chosen)


@settings(max_examples=40)
@given(strategies.blocks(ROWS, wide=True))
def test_against_the_reference_where_much_was_retrieved(block):
    assert flags(block, WIDE) == expected(block, Settings())


def step(*retrieved, query="grain", valid=True):
    return {"query": query, "retrieved": list(retrieved), "valid": valid}


# What is true of a trajectory that searched once for p1, p2 and cites as given; support is p1.
BY_HAND = {
    "honest": ([step("p1", "p2")], "mill", ["p1"], ()),
    "never_searched": ([], "mill", ["p1"], ("no_search", "cited_not_retrieved", "under_retrieval")),
    "blank_query": (
        [step("p1", query=" \t")],
        "mill",
        ["p1"],
        ("no_search", "cited_not_retrieved", "under_retrieval"),
    ),
    "invalid_step": (
        [step("p1", valid=False)],
        "mill",
        ["p1"],
        ("no_search", "cited_not_retrieved", "under_retrieval"),
    ),
    "no_final": ([], None, [], ()),
    "blank_final": ([], " \n", [], ()),
    "one_citation_of_many_unretrieved": (
        [step("p1")],
        "mill",
        ["p1", "p1", "p3"],
        ("cited_not_retrieved",),
    ),
    "stranger": ([step("p1", "zz")], "mill", ["p1", "zz"], ("fake_citation",)),
    "strangers_alone": (
        [step("p1")],
        "mill",
        ["zz", "P1"],
        ("fake_citation", "support_id_mismatch"),
    ),
    "asked_twice": (
        [step("p1"), step(query="x"), step("p1", query=" GRAIN ")],
        "mill",
        ["p1"],
        ("repeated_query",),
    ),
    "asked_five_times": (
        [step("p1", query=str(number)) for number in range(5)],
        "mill",
        ["p1"],
        ("over_retrieval",),
    ),
    "cites_nothing": ([step("p1")], "mill", [], ("answer_without_citation",)),
    "cites_no_support": ([step("p1", "p2")], "mill", ["p2"], ("support_id_mismatch",)),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name):
    steps, answer, citations, on = BY_HAND[name]
    trajectory = {
        "trajectory_id": "t",
        "steps": steps,
        "answer": answer,
        "citations": citations,
        "malformed_citations": 0,
    }
    row = Row(trajectory, {"answers": [], "support_ids": ["p1"]})
    (found,) = flags(Rows(("p1", "p2", "p3"), (row,)))
    assert {flag for flag, value in found.items() if value} == set(on)


def test_the_fields_are_the_detectors_in_order():
    assert tuple(detectors.Flags.__dataclass_fields__) == DETECTORS
