"""What operators, generators and contracts read and write, against a table written by hand."""

import pytest

from herald_jax.audit import fields
from herald_jax.audit.generators import GENERATORS
from herald_jax.audit.operators import OPERATORS
from herald_jax.manifest import Manifest, parse_manifest
from herald_jax.manifest.contracts import build_contracts
from herald_jax.search import CorpusIndex

# Which searches were executed, and with their results E.
SEARCHES = {"steps.query", "steps.valid"}
RETRIEVED = SEARCHES | {"steps.retrieved"}
# The slot is the first citation in P ∩ E.
SLOT = RETRIEVED | {"citations", "corpus"}

OPERATOR_FIELDS = {
    # There is an edit when there is a step to remove.
    "same_final_deletion": (SEARCHES, {"steps"}),
    "citation_laundering": (SLOT | {"candidates"}, {"citations"}),
    # The made-up id comes from the trajectory's own.
    "fake_id": (SLOT | {"trajectory_id"}, {"citations"}),
    # E does not change when a search returns once more what it returned.
    "repeated_query": (SEARCHES, {"steps"}),
    "citation_drop": ({"citations"}, {"citations"}),
    "unsupported_citation": (SLOT | {"support_ids"}, {"citations"}),
    "support_id_laundering": (SLOT | {"support_ids"}, {"citations"}),
    # No edit when the trajectory is the gold final already, so it looks at all of that.
    "gold_stress": (
        SEARCHES
        | {"answer", "answers", "citations", "corpus", "malformed_citations", "support_ids"},
        {"steps", "answer", "citations", "malformed_citations"},
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    reads, writes = OPERATOR_FIELDS[name]
    found = fields.operator_fields(OPERATORS[name])
    assert found == {"reads": sorted(reads), "writes": sorted(writes)}
    if not OPERATORS[name].oracle:
        assert not set(fields.ORACLE_FIELDS) & set(found["reads"])


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("lexical", SLOT | {"question", "answer"}),
        ("bm25", SLOT | {"question", "answer"}),
        # What the log proposes, without what was retrieved, cited or is no passage.
        ("stored", SLOT | {"candidates"}),
        ("exhaustive", SLOT | {"support_ids"}),
    ],
)
def test_generators(name, reads):
    corpus = CorpusIndex([("", "the mill")])
    assert fields.generator_fields(GENERATORS[name], corpus) == sorted(reads)


def test_contracts():
    contracts = {
        "searching": {"weights": {"tool_calls": 1.0}},
        "faking": {"penalties": {"fake_citation": 1.0}},
        "citing": {"weights": {"grounding": 1.0}},
        "repeating": {"penalties": {"repeated_query": 1.0}, "base": True},
    }
    made = build_contracts(parse_manifest({"contracts": contracts}, "test"))
    for base_reads in (None, ("generated_tokens",)):
        found = dict(zip(made.names, fields.contract_fields(made, base_reads), strict=True))
        assert found["outcome_only"] == ["answer", "answers"]
        assert found["outcome_cost"] == sorted(SEARCHES | {"answer", "answers"})
        assert found["searching"] == sorted(SEARCHES)
        assert found["faking"] == ["citations", "corpus"]
        assert found["citing"] == ["citations", "support_ids"]
        if base_reads:
            assert found["repeating"] == sorted(SEARCHES | {"generated_tokens"})
            assert found["R0"] == ["generated_tokens"]
        else:
            everything = SLOT | {"answer", "answers", "malformed_citations", "support_ids"}
            assert found["repeating"] == found["R0"] == sorted(everything)


@pytest.mark.parametrize(
    ("name", "never"),
    [
        # A citation that moves is no search, no step and no word of the answer.
        ("citation_laundering", {"tool_calls", "invalid_rate", "answer_length", "no_search"}),
        ("fake_id", {"citation_format", "repeated_query", "answer_without_citation"}),
        # Steps alone: citations stand where they stood.
        ("same_final_deletion", {"citation_format", "answer_length", "fake_citation"}),
    ],
)
def test_columns_that_an_operator_cannot_move(name, never):
    moved = set(fields.moved_columns(OPERATORS[name]))
    assert OPERATORS[name].target in moved
    assert not never & moved


@pytest.mark.parametrize("name", OPERATORS)
def test_what_an_edit_entails_is_among_the_columns_that_it_moves(name):
    operator = OPERATORS[name]
    assert {operator.target, *operator.entails} <= set(fields.moved_columns(operator))


def test_fields_of_records_behind_leaves():
    assert fields.record_fields(["visible.answer_tokens", "oracle.f1"]) == ["answer", "answers"]
    # A leaf below one that is known stands for it; anything else stands for itself.
    assert fields.record_fields(["index.postings.codes", "secret"]) == ["corpus", "secret"]


def test_the_default_contracts_read_no_field_that_is_not_recorded():
    for reads in fields.contract_fields(build_contracts(Manifest()), None):
        assert set(reads) <= {field for known in fields.RECORD_FIELDS.values() for field in known}
