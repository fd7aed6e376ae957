"""Audits of the small pools of cases, with the tables that no case asks for left out."""

from typing import Any

from herald_jax.audit import run
from herald_jax.manifest import parse_manifest
from herald_jax.pool.pool import Pool

BARE = parse_manifest(
    {
        "statistics": {"replicates": 50},
        "sections": {
            "pools": [],
            "split_by_model": False,
            "split_by_pool": False,
            "cancellation": False,
            "scales": False,
            "budgets": False,
            "utility": False,
            "group_signal": False,
            "worst_examples": 0,
        },
    },
    "known faults",
)


def audited(pool: Pool) -> dict[str, Any]:
    """The report on a pool."""
    return run(pool, BARE).data
