"""An operator tried on a block by the programs of an audit, and by the reference."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from reference import operators
from reference.operators import OPERATORS as REFERENCE
from reference.pairs import Outcome, outcome
from reference.rewards import Contract, Judged, contracts, features, judge
from reference.settings import BASE_CONTRACTS, Settings
from trajectory_arrays import Row, Rows, Widths, encode, rules

from herald_jax.audit.operators import FAKE, GENERATOR, OPERATORS
from herald_jax.kernels import programs
from herald_jax.kernels.pairs import Rule
from herald_jax.kernels.rewards import COLUMNS, Contracts, Measured, Moved
from herald_jax.types import DETECTORS, FEATURES, PAD, Labels, Offer, Oracle, State, Visible

# No id of any test has this code.
FAKE_CODE = 2**31 - 1


@dataclass(frozen=True)
class Trial:
    visible: Visible
    oracle: Oracle
    state: State
    labels: Labels
    offer: Offer
    originals: Measured  # [B]
    made: jax.Array  # bool [E, B]
    edits: Moved  # [E, B]
    verdicts: programs.Verdicts


def candidates(row: Row, corpus: Sequence[str], most: int) -> list[str]:
    """Passages that a generator may propose, in an order that is not that of their codes."""
    trajectory = row.trajectory
    taken = {*operators.retrieved_ids(trajectory), *trajectory["citations"]}
    fresh = [name for name in sorted(corpus) if name not in taken]
    return (fresh[1::2] + fresh[::2])[:most]


def offered_ids(
    name: str, block: Rows, widths: Widths, most: int, places: int, encoded
) -> jax.Array | np.ndarray:
    """int32 [K, B]."""
    operator = OPERATORS[name]
    visible, oracle, codes = encoded
    if callable(operator.offers):
        width = max(widths.support, 8) if operator.each else widths.citations
        return programs.oracle_offers(
            visible, oracle, codes.passages, offers=operator.offers, width=width
        )
    if operator.offers == GENERATOR:
        lists = [candidates(row, block.corpus, most) for row in block.rows]
        return np.stack([codes.padded(ids, places) for ids in lists], axis=-1)
    only = FAKE_CODE if operator.offers == FAKE else PAD
    return np.full((1, len(block.rows)), only, np.int32)


def rule_of(name: str, min_searches: int = 1) -> Rule:
    operator = OPERATORS[name]
    watched = operator.watched(min_searches)
    return Rule(
        target=jnp.array([name == operator.target for name in DETECTORS]),
        watched=jnp.array([name in watched for name in DETECTORS]),
    )


def attempt(
    name: str,
    block: Rows,
    widths: Widths = Widths(),  # noqa: B008
    *,
    most: int = 8,
    spare: int = 0,
    settings: Settings | None = None,
) -> Trial:
    """All edits of a block by the operator of a name.

    A generator proposes at most `most` ids, and `spare` places behind them are padding.
    """
    settings = settings or Settings()
    operator = OPERATORS[name]
    encoded = encode(block, widths, settings)
    visible, oracle, codes = encoded
    offered = offered_ids(name, block, widths, most, most + spare, encoded)
    state = programs.describe(visible, codes.passages)
    offer, labels = programs.describe_offer(offered, visible, oracle, codes.passages)
    measuring = rules(settings)
    made, edits = programs.measure_edits(
        state, offer, labels, measuring, edit=operator.edit, each=operator.each, columns=COLUMNS
    )
    originals = programs.measure_originals(state, oracle, measuring)
    verdicts = programs.judge(made, originals, edits, rule_of(name, settings.min_searches))
    return Trial(visible, oracle, state, labels, offer, originals, made, edits, verdicts)


def reference_edits(name: str, row: Row, corpus: Sequence[str], most: int = 8) -> list[dict]:
    return REFERENCE[name].edits(row.trajectory, row.gold, corpus, candidates(row, corpus, most))


def reference_outcome(
    name: str, row: Row, corpus: Sequence[str], settings: Settings, most: int = 8
) -> Outcome:
    def judged(trajectory: dict) -> Judged:
        return judge(trajectory, row.gold, corpus, settings)

    edits = [judged(edited) for edited in reference_edits(name, row, corpus, most)]
    return outcome(judged(row.trajectory), edits, REFERENCE[name], settings)


def reference_column(trajectory: dict, row: Row, corpus: Sequence[str], settings: Settings):
    """Features and detectors under one another, float64 [X]."""
    flags = judge(trajectory, row.gold, corpus, settings).flags
    values = features(trajectory, row.gold, flags, settings)
    return np.array([values[n] for n in FEATURES] + [float(flags[n]) for n in DETECTORS])


def stacked(moved: Moved) -> np.ndarray:
    """Features and detectors under one another, float32 [X, ...]."""
    return np.stack([np.asarray(moved[name], np.float32) for name in COLUMNS])


def contract_matrix(named: dict[str, Contract]) -> Contracts:
    """The reference's contracts as rows of a matrix."""
    weights = np.zeros((len(named), len(COLUMNS)), np.float32)
    for row, contract in enumerate(named.values()):
        for name, weight in BASE_CONTRACTS[contract.base].items():
            weights[row, COLUMNS.index(name)] = weight
        for name, weight in contract.penalties.items():
            weights[row, COLUMNS.index(name)] = -weight
    return Contracts(weights=jnp.asarray(weights), base=jnp.zeros(len(named), jnp.float32))


ALL_CONTRACTS = contracts(Settings())
