"""The registry of operators: its rules, and what each operator is, field by field."""

import pytest

from herald_jax.audit.operators import OPERATORS, Operator
from herald_jax.audit.registry import Registry
from herald_jax.kernels import edits

U, L, F = "no_search", "cited_not_retrieved", "fake_citation"
Q, A, O, M = (  # noqa: E741
    "repeated_query",
    "answer_without_citation",
    "over_retrieval",
    "support_id_mismatch",
)
UNDER = "under_retrieval"

# Target, what the edit changes by construction, whether it reads gold labels.
TABLE = {
    "same_final_deletion": (U, {UNDER, L, Q, O}, False),
    "citation_laundering": (L, set(), False),
    "fake_id": (F, set(), False),
    "repeated_query": (Q, {O}, False),
    "citation_drop": (A, {L, F}, False),
    "unsupported_citation": (M, set(), True),
    "support_id_laundering": (L, set(), True),
    "gold_stress": (U, {UNDER, L, F, Q, A, O}, True),
}


def planted(**changes):
    return Operator(**{"name": "planted", "edit": edits.fake_id, "target": U, **changes})


def test_operators_are_those_of_the_table():
    found = {
        name: (operator.target, set(operator.entails), operator.oracle)
        for name, operator in OPERATORS.items()
    }
    assert found == TABLE


def test_a_second_operator_of_one_name_is_an_error():
    registry = Registry("operator")
    registry.register(planted())
    with pytest.raises(ValueError, match="operator 'planted' is registered already"):
        registry.register(planted(target=L))
    assert registry["planted"].target == U
    assert len(registry) == 1


@pytest.mark.parametrize("wrong", [{"target": "tardiness"}, {"entails": (L, "tardiness")}])
def test_a_detector_that_does_not_exist_is_an_error(wrong):
    with pytest.raises(ValueError, match=r"'planted' names unknown detectors: .*tardiness"):
        planted(**wrong)


def test_watched_flags_are_the_visible_ones_outside_target_and_entailed():
    assert set(OPERATORS["citation_laundering"].watched(1)) == {U, F, UNDER, Q, A, O}
    assert set(OPERATORS["citation_drop"].watched(1)) == {U, UNDER, Q, O}
    assert OPERATORS["gold_stress"].watched(1) == ()
    # M needs a gold label, so isolation never watches it; an oracle's target changes nothing.
    assert set(OPERATORS["unsupported_citation"].watched(1)) == {U, L, F, UNDER, Q, A, O}


@pytest.mark.parametrize(("target", "twin"), [(U, UNDER), (UNDER, U)])
def test_no_search_and_under_retrieval_excuse_each_other_while_one_search_is_enough(target, twin):
    operator = planted(target=target)
    assert twin not in operator.watched(1)
    for min_searches in (0, 2, 3):
        assert twin in operator.watched(min_searches)
    assert {U, UNDER} <= set(planted(target=L).watched(1))
