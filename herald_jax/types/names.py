"""Names of detectors and features, in the order of their array columns."""

DETECTORS = (
    "no_search",
    "cited_not_retrieved",
    "fake_citation",
    "under_retrieval",
    "repeated_query",
    "answer_without_citation",
    "over_retrieval",
    "support_id_mismatch",
)

# Letters of the paper (arXiv 2608.06012) for the detectors that have one.
SYMBOLS = {
    "no_search": "U",
    "cited_not_retrieved": "L",
    "fake_citation": "F",
    "repeated_query": "Q",
    "answer_without_citation": "A",
    "over_retrieval": "O",
    "support_id_mismatch": "M",
}

# What isolation watches: every detector that needs no gold label.
VISIBLE_FLAGS = tuple(name for name in DETECTORS if name != "support_id_mismatch")

FEATURES = (
    "answer",
    "grounding",
    "citation_format",
    "tool_calls",
    "invalid_rate",
    "hacking_rate",
    "answer_length",
)
