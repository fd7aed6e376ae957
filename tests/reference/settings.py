"""Every choice that the definitions leave to a manifest, with the default values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# In the order of the table of detectors; subsets of the lattice are named in this order.
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
ORACLE_DETECTORS = frozenset({"support_id_mismatch"})
VISIBLE_FLAGS = tuple(name for name in DETECTORS if name not in ORACLE_DETECTORS)

SYMBOLS = {
    "no_search": "U",
    "cited_not_retrieved": "L",
    "fake_citation": "F",
    "under_retrieval": "under_retrieval",  # the only detector without a letter
    "repeated_query": "Q",
    "answer_without_citation": "A",
    "over_retrieval": "O",
    "support_id_mismatch": "M",
}

# The hacking rate is the mean of these seven: all but no_search.
HACKING = tuple(name for name in DETECTORS if name != "no_search")

Contracts = Mapping[str, Mapping[str, float]]  # name -> feature -> weight

BASE_CONTRACTS: Contracts = {
    "outcome_only": {"answer": 1.15},
    "outcome_cost": {"answer": 1.15, "tool_calls": -0.04},
    "R0": {
        "answer": 1.15,
        "grounding": 1.05,
        "citation_format": 0.30,
        "tool_calls": -0.04,
        "invalid_rate": -0.80,
        "hacking_rate": -0.55,
        "answer_length": -0.004,
    },
}

# The penalties of R_full; those of the lattice's detectors also make up the subsets.
PENALTIES: Mapping[str, float] = {
    "no_search": 1.6,
    "cited_not_retrieved": 1.2,
    "fake_citation": 1.0,
    "support_id_mismatch": 0.8,
    "answer_without_citation": 0.5,
    "repeated_query": 0.3,
    "over_retrieval": 0.2,
}

# A user's own reward: (trajectory, oracle row) -> number. Raising counts as not a number.
Reward = Callable[[dict, dict], float]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an audit may vary.

    `lattice` lists the detectors whose subsets are audited; each needs an entry in `penalties`
    (a lattice detector outside R_full's seven has to be added there, and R_full then holds it).
    """

    base_contracts: Contracts = field(default_factory=lambda: BASE_CONTRACTS)
    penalties: Mapping[str, float] = field(default_factory=lambda: PENALTIES)
    lattice: tuple[str, ...] = ("no_search", "cited_not_retrieved", "fake_citation")
    scales: tuple[float, ...] = (0, 0.25, 0.5, 1, 2)
    min_searches: int = 1
    max_searches: int = 4
    rules: str = "unicode"
    assume_no_citations: bool = False
    selection: str = "all"
    weighting: str = "question"
    tie_tolerance: float = 1e-6
    generator: str = "lexical"
    candidates: int = 8
    budget_generator: str = "bm25"
    budgets: tuple[int, ...] = (1, 2, 4, 8, 16)
    bm25_variant: str = "okapi"
    certificate: str = "generator"
    reward: Reward | None = None
