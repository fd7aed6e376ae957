import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trajectory_strategies as strategies
from hypothesis import given, settings
from kernel_trials import ALL_CONTRACTS, attempt, contract_matrix, reference_outcome
from reference import cancellation as reference
from reference.operators import OPERATORS as REFERENCE
from reference.settings import Settings
from trajectory_arrays import Row, Rows

from herald_jax.kernels import programs
from herald_jax.kernels.cancellation import Steps, readmit
from herald_jax.kernels.detectors import Flags
from herald_jax.types import DETECTORS

ROWS = 4
CHOSEN = Settings()
MATRIX = contract_matrix(ALL_CONTRACTS)
STEPS = list(reference.steps(CHOSEN))
TOLERANCE = np.float32(CHOSEN.tie_tolerance)


def steps_of(named):
    """Steps of the kernel from (from, to, detectors added)."""
    names = list(ALL_CONTRACTS)
    weights = [
        [CHOSEN.penalties[name] if name in added else 0.0 for name in DETECTORS]
        for _, _, added in named
    ]
    return Steps(
        start=jnp.array([names.index(start) for start, _, _ in named], jnp.int32),
        end=jnp.array([names.index(end) for _, end, _ in named], jnp.int32),
        added=jnp.array(weights, jnp.float32),
    )


def counted(name, block, named=STEPS):
    trial = attempt(name, block)
    values = programs.pair_margins(trial.originals, trial.edits, MATRIX, None)
    return programs.count_readmitted(
        values, trial.verdicts.isolated, trial.originals, trial.edits, steps_of(named), TOLERANCE
    )


@pytest.mark.parametrize("name", ["citation_laundering", "fake_id", "citation_drop"])
@settings(max_examples=40)
@given(block=strategies.blocks(ROWS))
def test_against_the_reference(name, block):
    found = jax.tree.map(np.asarray, counted(name, block))
    outcomes = [reference_outcome(name, row, block.corpus, CHOSEN) for row in block.rows]
    for number, (start, end, added) in enumerate(STEPS):
        expected = reference.entry(
            start, end, added, outcomes, REFERENCE[name], ALL_CONTRACTS, CHOSEN
        )
        assert found.pairs[number] == expected["pairs"]
        assert found.readmitted[number] == expected["readmitted"]
        paid = dict(zip(DETECTORS, found.paid[number].tolist(), strict=True))
        assert {flag: count for flag, count in paid.items() if count} == expected["paid_by"]


def test_worked_case_of_the_paper():
    # R[L] refuses at -0.38625; R_full pays 0.8 back for M and admits at 0.41375. No other
    # detector turns off.
    trajectory = {
        "trajectory_id": "t",
        "steps": [{"query": "mill", "retrieved": ["seen"], "valid": True}],
        "answer": "Ada",
        "citations": ["seen"],
        "malformed_citations": 0,
    }
    row = Row(trajectory, {"answers": ["Ada"], "support_ids": ["other", "more"]})
    named = [step for step in STEPS if step[:2] in (("R[L]", "R_full"), ("R0", "R[L]"))]
    found = counted("citation_laundering", Rows(("more", "other", "seen"), (row,)), named)
    place = {step[:2]: number for number, step in enumerate(named)}
    full, alone = place["R[L]", "R_full"], place["R0", "R[L]"]
    assert found.pairs.tolist() == [2, 2]
    assert (found.readmitted[full], found.readmitted[alone]) == (2, 0)
    paid = found.paid[full].tolist()
    assert paid == [2 if name == "support_id_mismatch" else 0 for name in DETECTORS]


compiled = jax.jit(readmit)


def by_hand(low, high, *, isolated=True, added=0.5, turned_off=True):
    flags = dict.fromkeys(DETECTORS, jnp.zeros(1, bool))
    before = Flags(**flags | {"repeated_query": jnp.array([turned_off])})
    after = {name: value[None] for name, value in flags.items()}
    step = Steps(
        start=jnp.zeros(1, jnp.int32),
        end=jnp.ones(1, jnp.int32),
        added=jnp.array([[added if name == "repeated_query" else 0 for name in DETECTORS]]),
    )
    margins = jnp.array([[[low]], [[high]]], jnp.float32)
    found = compiled(margins, jnp.array([[isolated]]), before, after, step, TOLERANCE)
    return found.pairs.item(), found.readmitted.item(), found.paid.sum().item()


def test_what_counts():
    assert by_hand(-0.1, 0.4) == (1, 1, 1)
    assert by_hand(-0.1, 0.4, turned_off=False) == (1, 1, 0)
    assert by_hand(-0.1, 0.4, added=0.0) == (1, 1, 0)
    assert by_hand(-0.1, 0.4, isolated=False) == (0, 0, 0)
    assert by_hand(-0.1, -0.2) == (1, 0, 0)
    # A tie succeeds: it cannot be re-admitted, and it can re-admit.
    assert by_hand(0.0, 0.4) == by_hand(-5e-7, 0.4) == (1, 0, 0)
    assert by_hand(-0.1, 0.0) == by_hand(-0.1, -5e-7) == (1, 1, 1)
    # Unknown under either contract: no pair.
    for unknown in (np.nan, np.inf, -np.inf):
        assert by_hand(unknown, 0.4) == by_hand(-0.1, unknown) == (0, 0, 0)


@settings(max_examples=30)
@given(strategies.blocks(2))
def test_rows_add_up(block):
    whole = counted("citation_laundering", block)
    parts = [counted("citation_laundering", Rows(block.corpus, (row,))) for row in block.rows]
    added = jax.tree.map(lambda *leaves: sum(leaves), *parts)
    assert jax.tree.all(jax.tree.map(np.array_equal, whole, added))
