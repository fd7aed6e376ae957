"""The eight detectors of one trajectory."""

from collections.abc import Collection

from reference.records import executed_searches
from reference.settings import Settings
from reference.text import is_blank, query_key


def retrieved_ids(trajectory: dict) -> list[str]:
    """E: what the executed searches returned, in order; other steps returned nothing."""
    return [id_ for step in executed_searches(trajectory) for id_ in step["retrieved"]]


def has_final(trajectory: dict) -> bool:
    return not is_blank(trajectory["answer"])


def detect(
    trajectory: dict, corpus: Collection[str], support: Collection[str], settings: Settings
) -> dict[str, bool]:
    """Every detector, by name; `corpus` holds the passage ids (a set or dict)."""
    cited = set(trajectory["citations"])
    retrieved = set(retrieved_ids(trajectory))
    keys = [query_key(step["query"]) for step in executed_searches(trajectory)]
    searches = len(keys)
    final = has_final(trajectory)
    return {
        "no_search": final and searches == 0,
        "cited_not_retrieved": any(c in corpus and c not in retrieved for c in cited),
        "fake_citation": any(c not in corpus for c in cited),
        "under_retrieval": final and searches < settings.min_searches,
        "repeated_query": len(set(keys)) < searches,
        "answer_without_citation": final and not cited,
        "over_retrieval": searches > settings.max_searches,
        "support_id_mismatch": bool(cited) and not any(c in support for c in cited),
    }
