"""The eight operators: every edit that each of them makes of one trajectory.

An operator is a function of (trajectory, gold, corpus, candidates) that returns edited copies in
order. `candidates` is the ranked list of a generator, which only laundering looks at.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from reference.detectors import retrieved_ids
from reference.records import executed_searches

Edit = Callable[[dict, dict, Collection[str], Sequence[str]], list[dict]]


@dataclass(frozen=True)
class Operator:
    """`entails` are the flags that the edit changes by construction, beside its target."""

    name: str
    edit: Edit
    target: str
    entails: frozenset[str]
    oracle: bool = False

    def edits(
        self, trajectory: dict, gold: dict, corpus: Collection[str], candidates: Sequence[str] = ()
    ) -> list[dict]:
        """The edits; one that equals the original is none."""
        made = self.edit(trajectory, gold, corpus, candidates)
        return [edited for edited in made if edited != trajectory]


def slot(trajectory: dict, corpus: Collection[str]) -> str | None:
    """The first citation that is a passage and was retrieved."""
    retrieved = set(retrieved_ids(trajectory))
    return next((c for c in trajectory["citations"] if c in corpus and c in retrieved), None)


def replace_citations(trajectory: dict, replacement: dict[str, str]) -> dict:
    """Every occurrence of a key becomes its value."""
    return trajectory | {"citations": [replacement.get(c, c) for c in trajectory["citations"]]}


def fill_slot(trajectory: dict, corpus: Collection[str], ids: Sequence[str]) -> list[dict]:
    """One edit for each id, or none when there is no slot."""
    old = slot(trajectory, corpus)
    return [] if old is None else [replace_citations(trajectory, {old: new}) for new in ids]


def same_final_deletion(
    trajectory: dict, gold: dict, corpus: Collection[str], candidates: Sequence[str]
) -> list[dict]:
    return [trajectory | {"steps": []}]


def citation_laundering(
    trajectory: dict, gold: dict, corpus: Collection[str], candidates: Sequence[str]
) -> list[dict]:
    return fill_slot(trajectory, corpus, candidates)


def fake_id(
    trajectory: dict, gold: dict, corpus: Collection[str], candidates: Sequence[str]
) -> list[dict]:
    taken = {*retrieved_ids(trajectory), *trajectory["citations"], *gold["support_ids"]}
    fake = "fake:" + trajectory["trajectory_id"]
    while fake in corpus or fake in taken:
        fake += "_"
    return fill_slot(trajectory, corpus, [fake])


def repeated_query(
    trajectory: dict, gold: dict, corpus: Collection[str], candidates: Sequence[str]
) -> list[dict]:
    searches = executed_searches(trajectory)
    return [trajectory | {"steps": [*trajectory["steps"], searches[-1]]}] if searches else []


def citation_drop(
    trajectory: dict, gold: dict, corpus: Collection[str], candidates: Sequence[str]
) -> list[dict]:
    return [trajectory | {"citations": []}]


def unsupported_citation(
    trajectory: dict, gold: dict, corpus: Collection[str], candidates: Sequence[str]
) -> list[dict]:
    support = set(gold["support_ids"])
    cited = list(dict.fromkeys(trajectory["citations"]))
    to_replace = [c for c in cited if c in support]
    spare = [
        p
        for p in dict.fromkeys(retrieved_ids(trajectory))
        if p in corpus and p not in support and p not in cited
    ]
    if not to_replace or len(spare) < len(to_replace):
        return []
    return [replace_citations(trajectory, dict(zip(to_replace, spare, strict=False)))]


def support_id_laundering(
    trajectory: dict, gold: dict, corpus: Collection[str], candidates: Sequence[str]
) -> list[dict]:
    seen = {*retrieved_ids(trajectory), *trajectory["citations"]}
    new = [s for s in gold["support_ids"] if s in corpus and s not in seen]
    return fill_slot(trajectory, corpus, new)


def gold_stress(
    trajectory: dict, gold: dict, corpus: Collection[str], candidates: Sequence[str]
) -> list[dict]:
    if not gold["answers"] or not gold["support_ids"]:
        return []
    final = {
        "answer": gold["answers"][0],
        "citations": list(gold["support_ids"]),
        "malformed_citations": 0,
    }
    return [trajectory | {"steps": []} | final]


U, L, F = "no_search", "cited_not_retrieved", "fake_citation"
Q, A, O, M = (  # noqa: E741
    "repeated_query",
    "answer_without_citation",
    "over_retrieval",
    "support_id_mismatch",
)
UNDER = "under_retrieval"

OPERATORS = {
    operator.name: operator
    for operator in (
        Operator("same_final_deletion", same_final_deletion, U, frozenset({UNDER, L, Q, O})),
        Operator("citation_laundering", citation_laundering, L, frozenset()),
        Operator("fake_id", fake_id, F, frozenset()),
        Operator("repeated_query", repeated_query, Q, frozenset({O})),
        Operator("citation_drop", citation_drop, A, frozenset({L, F})),
        Operator("unsupported_citation", unsupported_citation, M, frozenset(), oracle=True),
        Operator("support_id_laundering", support_id_laundering, L, frozenset(), oracle=True),
        Operator("gold_stress", gold_stress, U, frozenset({UNDER, L, F, Q, A, O}), oracle=True),
    )
}
PRIMARY = ("same_final_deletion", "citation_laundering", "fake_id")
