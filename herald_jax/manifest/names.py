"""Names a manifest may use, in the order of docs/SPEC.md, sections 4 to 6 and 9.

The audit's registries implement them; a test holds the lists together.
"""

OPERATORS = (
    "same_final_deletion",
    "citation_laundering",
    "fake_id",
    "repeated_query",
    "citation_drop",
    "unsupported_citation",
    "support_id_laundering",
    "gold_stress",
)
PRIMARY_OPERATORS = OPERATORS[:3]

GENERATORS = ("lexical", "bm25", "stored", "exhaustive")
# Generators that never read a gold label: only these may be the primary one.
VISIBLE_GENERATORS = ("lexical", "bm25", "stored")

SELECTIONS = ("all", "stored", "first", "hash_random", "r0_best", "gold_informed")

# Contracts that every audit reports. Lattice contracts are further reserved: `R[...]`.
BUILT_IN_CONTRACTS = ("outcome_only", "outcome_cost", "R0", "R_full")
