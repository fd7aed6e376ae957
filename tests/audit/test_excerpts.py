"""Excerpts: short texts and lists stay whole, long ones are cut where the change stays in view."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.audit.excerpts import LIST_LIMIT, Side, excerpt, short_id, sides, window
from herald_jax.data.records import Step


@pytest.mark.parametrize(
    ("text", "shown", "length"),
    [
        (None, None, None),
        ("", "", 0),
        ("a" * 2000, "a" * 2000, 2000),
        ("é" * 2001, "é" * 2000, 2001),
    ],
)
def test_a_text_with_its_whole_length(text, shown, length):
    assert excerpt("answer", text) == {"answer": shown, "answer_length": length}


@given(st.lists(st.integers(0, 2), max_size=60), st.lists(st.integers(0, 2), max_size=60))
def test_the_first_change_is_always_in_view(before, after):
    shown = window(before, after)
    assert before[: shown.start] == after[: shown.start]
    assert len(before[shown]) <= LIST_LIMIT
    if before != after:
        assert before[shown] != after[shown]
    if max(len(before), len(after)) <= LIST_LIMIT:
        assert (before[shown], after[shown]) == (before, after)


def test_both_sides_are_cut_at_the_same_place():
    # The 301st citation changes: what is shown starts five before it.
    cited = [f"x{i}" for i in range(601)]
    moved = [*cited[:300], "new", *cited[301:]]
    found = sides(Side("Ada", cited, []), Side("Ada", moved, []))
    for name, whole in (("before", cited), ("after", moved)):
        assert found[name]["citations"] == whole[295:315]
        assert (found[name]["citations_from"], found[name]["citations_count"]) == (295, 601)


def test_what_a_step_returned_is_cut_and_an_invalid_action_stays_one():
    ids = [f"p{i}" for i in range(30)]
    side = Side(None, [], [Step("mill", ids), Step("", None, valid=False)])
    assert sides(side, side)["before"]["steps"] == [
        {
            "query": "mill",
            "query_length": 4,
            "valid": True,
            "retrieved": ids[:20],
            "retrieved_count": 30,
        },
        {"query": "", "query_length": 0, "valid": False, "retrieved": [], "retrieved_count": 0},
    ]


def test_a_very_long_id_keeps_both_ends():
    name = "https://example.org/" + "a" * 5_000 + "/7"
    shown = short_id(name)
    assert len(shown) == 200
    assert shown.startswith("https://example.org/aaa")
    assert shown.endswith("aaa/7")
    assert "…" in shown
    assert short_id(name[:200]) == name[:200]
