import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trajectory_strategies as strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_trials import attempt, reference_column, reference_edits, stacked
from reference.settings import Settings
from trajectory_arrays import Row, Rows, Widths

from herald_jax.audit.operators import OPERATORS
from herald_jax.kernels import edits
from herald_jax.types import DETECTORS, Labels, Offer, State

ROWS = 4


def check(name, block, widths=Widths(), *, most=8):  # noqa: B008
    """Every edit that the kernel makes is the reference's, in order, and there are no others."""
    trial = attempt(name, block, widths, most=most)
    made, found = np.asarray(trial.made), stacked(trial.edits)
    for number, row in enumerate(block.rows):
        expected = [
            reference_column(edited, row, block.corpus, Settings())
            for edited in reference_edits(name, row, block.corpus, most)
        ]
        ours = found[:, made[:, number], number].T
        assert len(ours) == len(expected)
        for one, other in zip(ours, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=60)
@given(block=strategies.blocks(ROWS))
def test_every_edit_is_the_references(name, block):
    check(name, block)


@settings(max_examples=25)
@given(block=strategies.blocks(ROWS, wide=True))
def test_many_candidates_and_much_retrieved(block):
    check("citation_laundering", block, Widths(retrieved=96), most=20)
    check("unsupported_citation", block, Widths(retrieved=96))


def search(*retrieved, query="grain", valid=True):
    return {"query": query, "retrieved": list(retrieved), "valid": valid}


def one(name, *, steps=(), answer="mill", citations=(), support=(), answers=("gold",), malformed=0):
    trajectory = {
        "trajectory_id": "t",
        "steps": list(steps),
        "answer": answer,
        "citations": list(citations),
        "malformed_citations": malformed,
    }
    row = Row(trajectory, {"answers": list(answers), "support_ids": list(support)})
    block = Rows(("p1", "p2", "p3", "p4"), (row,))
    check(name, block)
    trial = attempt(name, block)
    return [
        {flag: bool(trial.edits[flag][edit, 0]) for flag in DETECTORS}
        for edit in np.flatnonzero(np.asarray(trial.made)[:, 0])
    ]


def test_an_edit_equal_to_the_original_is_none():
    assert one("same_final_deletion") == []
    assert one("citation_drop", steps=[search("p1")]) == []
    gold = {"answer": "gold", "citations": ["p1", "p2"], "support": ["p1", "p2"]}
    assert one("gold_stress", **gold) == []
    assert len(one("gold_stress", **gold, malformed=1)) == 1
    assert len(one("gold_stress", **gold, steps=[search(query=" ")])) == 1
    assert len(one("gold_stress", **gold | {"citations": ["p2", "p1"]})) == 1
    # The same tokens are not the same characters.
    assert len(one("gold_stress", **gold | {"answer": "gold "})) == 1


def test_deleting_only_invalid_steps_is_an_edit():
    (flags,) = one("same_final_deletion", steps=[search("p1", valid=False)])
    assert flags["no_search"]


def test_an_edit_is_made_even_when_the_target_is_on():
    (flags,) = one("repeated_query", steps=[search("p1"), search("p1")])
    assert flags["repeated_query"]


def test_no_slot_no_edit():
    # Cited but never retrieved, retrieved but no passage, not cited at all.
    for citations in (["p1"], ["zz"], []):
        assert one("fake_id", steps=[search("zz", "p2")], citations=citations) == []
        assert one("citation_laundering", steps=[search("zz", "p2")], citations=citations) == []


def test_the_slot_is_replaced_at_every_occurrence():
    # p2 is the slot (p1 was not retrieved); with it gone, nothing cited was retrieved or support.
    flags = one("fake_id", steps=[search("p2", "p3")], citations=["p1", "p2", "p2"], support=["p2"])
    assert flags[0]["fake_citation"] and flags[0]["support_id_mismatch"]
    # Were an occurrence left, the support id would still be cited.
    flags = one("fake_id", steps=[search("p2", "p3")], citations=["p2", "p3", "p2"], support=["p3"])
    assert not flags[0]["support_id_mismatch"]


def test_unsupported_citation_needs_one_passage_for_each():
    cited = {"citations": ["p1", "p2", "p1"], "support": ["p1", "p2"]}
    assert one("unsupported_citation", steps=[search("p1", "p2", "p3", "zz")], **cited) == []
    assert one("unsupported_citation", steps=[search("p3", "p3")], **cited) == []
    (flags,) = one("unsupported_citation", steps=[search("p4", "p3")], **cited)
    assert flags["support_id_mismatch"] and not flags["cited_not_retrieved"]


def test_gold_stress_needs_an_answer_and_a_support_id():
    assert one("gold_stress", support=["p1"], answers=[]) == []
    assert one("gold_stress", support=[]) == []
    assert len(one("gold_stress", support=["elsewhere"], answers=[""])) == 1


def state_of(codes, passages=6, retrieved=(0, 1, 2)):
    ids = jnp.array(codes, jnp.int32)
    listed = list(codes)
    return State(
        ids=ids,
        present=ids >= 0,
        real=(ids >= 0) & (ids < passages),
        retrieved=jnp.array([code in retrieved for code in listed], bool),
        first=jnp.array([c >= 0 and c not in listed[:i] for i, c in enumerate(listed)], bool),
        searches=jnp.int32(1),
        invalid=jnp.int32(0),
        repeated=jnp.bool_(False),
        answer_tokens=jnp.int32(1),
        malformed=jnp.int32(0),
    )


def offer_of(code, passages=6, retrieved=(0, 1, 2)):
    return Offer(
        ids=jnp.int32(code),
        present=jnp.bool_(code >= 0),
        real=jnp.bool_(0 <= code < passages),
        retrieved=jnp.bool_(code in retrieved),
    )


def labels_of(width):
    return Labels(
        support=jnp.zeros(width, bool),
        offered_support=jnp.bool_(False),
        n_support=jnp.int32(0),
        f1=jnp.float32(0),
        gold_f1=jnp.float32(jnp.nan),
        gold_tokens=jnp.int32(-1),
        is_gold=jnp.bool_(False),
    )


@pytest.mark.parametrize("code", [-1, 0, 2, 3, 9])
def test_laundering_refuses_what_is_no_new_passage(code):
    # Nothing, the slot itself, another retrieved one, one that is cited already, a stranger.
    done = edits.citation_laundering(state_of([0, 3]), offer_of(code), labels_of(2))
    assert not done.made


@pytest.mark.parametrize("code", [-1, 0, 5])
def test_a_fake_id_is_no_passage(code):
    assert not edits.fake_id(state_of([0, 3]), offer_of(code), labels_of(2)).made


@given(strategies.codes(6))
def test_the_slot_is_the_first_retrieved_passage(codes):
    padded = codes + [-1] * (6 - len(codes))
    found = slots(state_of(padded)).tolist()
    slot = next((code for code in codes if code in (0, 1, 2)), None)
    assert found == [slot is not None and code == slot for code in padded]


slots = jax.jit(edits.slot_positions)


@given(st.data())
def test_what_first_says_stays_true_of_the_edit(data):
    # Laundering and fake_id bring one new id; what was a first occurrence stays one.
    padded = data.draw(strategies.codes(6))
    padded = padded + [-1] * (6 - len(padded))
    for edit, code in ((edits.citation_laundering, 4), (edits.fake_id, 99)):
        done = jax.jit(edit)(state_of(padded), offer_of(code), labels_of(6))
        if done.made:
            ids = done.state.ids.tolist()
            expected = [c >= 0 and c not in ids[:i] for i, c in enumerate(ids)]
            assert done.state.first.tolist() == expected


@pytest.mark.parametrize("name", OPERATORS)
def test_a_trajectory_without_a_place_for_citations(name):
    operator = OPERATORS[name]
    empty = jnp.zeros(0, jnp.int32)
    none = jnp.zeros(0, bool)
    lists = Offer(ids=empty, present=none, real=none, retrieved=none)
    done = operator.edit(state_of([]), offer_of(4) if operator.each else lists, labels_of(0))
    assert bool(done.made) == (name in ("same_final_deletion", "repeated_query"))
