import jax.numpy as jnp
import numpy as np
import pytest
import trajectory_strategies as strategies
from hypothesis import given, settings
from kernel_trials import (
    ALL_CONTRACTS,
    attempt,
    contract_matrix,
    reference_edits,
)
from reference.rewards import judge, margin, reward
from reference.settings import Settings
from trajectory_arrays import Row, Rows, Widths, encode, rules

from herald_jax.audit.fields import moved_columns
from herald_jax.audit.operators import OPERATORS
from herald_jax.kernels import programs
from herald_jax.kernels.rewards import COLUMNS, Contracts, told_apart
from herald_jax.types import DETECTORS, FEATURES

ROWS = 4
MATRIX = contract_matrix(ALL_CONTRACTS)
CHOSEN = Settings()


def judged(trajectory, row, block):
    return judge(trajectory, row.gold, block.corpus, CHOSEN)


def test_columns_are_features_then_detectors():
    assert (*FEATURES, *DETECTORS) == COLUMNS


@given(strategies.blocks(ROWS))
def test_rewards_against_the_reference(block):
    visible, oracle, codes = encode(block, Widths())
    state = programs.describe(visible, codes.passages)
    measured = programs.measure_originals(state, oracle, rules())
    found = np.asarray(programs.rewards(MATRIX, measured, None))
    expected = [
        [reward(judged(row.trajectory, row, block), contract) for row in block.rows]
        for contract in ALL_CONTRACTS.values()
    ]
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=30)
@given(block=strategies.blocks(ROWS))
def test_margins_against_the_reference(name, block):
    trial = attempt(name, block)
    values = np.asarray(programs.pair_margins(trial.originals, trial.edits, MATRIX, None))
    made = np.asarray(trial.made)
    for number, row in enumerate(block.rows):
        original = judged(row.trajectory, row, block)
        edits = [judged(edit, row, block) for edit in reference_edits(name, row, block.corpus)]
        expected = [
            [margin(original, edit, contract) for edit in edits]
            for contract in ALL_CONTRACTS.values()
        ]
        found = values[:, made[:, number], number]
        np.testing.assert_allclose(
            found, np.reshape(expected, (len(ALL_CONTRACTS), len(edits))), atol=2e-6
        )
    # What an operator is said to leave alone has no part in its margins.
    moved = {column: trial.edits[column] for column in moved_columns(OPERATORS[name])}
    fewer = np.asarray(programs.pair_margins(trial.originals, moved, MATRIX, None))
    np.testing.assert_allclose(fewer[:, made], values[:, made], atol=1e-6)


def lone_citation(support, seen="seen"):
    """One search that found `seen`, cited alone; `more` and `other` are candidates."""
    trajectory = {
        "trajectory_id": "t",
        "steps": [{"query": "mill", "retrieved": [seen], "valid": True}],
        "answer": "Ada",
        "citations": [seen],
        "malformed_citations": 0,
    }
    row = Row(trajectory, {"answers": ["Ada"], "support_ids": support})
    return Rows(("more", "other", "seen"), (row,))


def margins_of_laundering(support):
    trial = attempt("citation_laundering", lone_citation(support))
    values = programs.pair_margins(trial.originals, trial.edits, MATRIX, None)
    made = np.asarray(trial.made)[:, 0]
    return {name: np.asarray(values)[j, made, 0].tolist() for j, name in enumerate(ALL_CONTRACTS)}


def test_worked_case_of_the_paper():
    # The lone citation moves onto one of two support ids: precision 0 -> 1, recall 0 -> 1/2,
    # grounding 0 -> 0.55 + 0.45/2 = 0.775. L turns on and M off: the hacking rate stays.
    # R0: 1.05 * 0.775 = 0.81375. R[L]: 0.81375 - 1.2 = -0.38625.
    # R_full: 0.8 of M comes back: -0.38625 + 0.8 = 0.41375.
    # Float32 has steps of 1.2e-7 at 1.2.
    found = margins_of_laundering(["other", "more"])
    assert found["R0"] == pytest.approx([0.81375] * 2, abs=1e-7)
    assert found["R[L]"] == pytest.approx([-0.38625] * 2, abs=2e-7)
    assert found["R_full"] == pytest.approx([0.41375] * 2, abs=2e-7)


def test_a_lone_flip_of_l_costs_a_seventh_of_the_hacking_rate():
    # No support at all: grounding stays 0 and M stays on; L alone flips: R0 moves -0.55/7.
    found = margins_of_laundering([])
    assert found["R0"] == pytest.approx([-0.55 / 7] * 2, abs=1e-8)
    assert found["R[U+L+F]"] == pytest.approx([-0.55 / 7 - 1.2] * 2, abs=1e-7)
    # outcome_only pays for neither search nor citation: an exact tie, to the last bit.
    assert found["outcome_only"] == [0.0, 0.0]


@given(strategies.blocks(ROWS))
def test_an_edit_that_changes_nothing_gains_exactly_nothing(block):
    trial = attempt("citation_drop", block)
    same = {
        name: jnp.asarray(getattr(side, name))[None]
        for side, names in (
            (trial.originals.features, FEATURES),
            (trial.originals.flags, DETECTORS),
        )
        for name in names
    }
    assert not np.asarray(programs.pair_margins(trial.originals, same, MATRIX, None)).any()


def test_a_base_reward_as_numbers():
    trial = attempt("citation_laundering", lone_citation(["other", "more"]))
    own = Contracts(
        weights=jnp.stack([MATRIX.weights[0], jnp.zeros(len(COLUMNS)), MATRIX.weights[0]]),
        base=jnp.array([0.0, 1.0, 2.0], jnp.float32),
    )
    edits = trial.made.shape[0]
    base = np.full((edits, 1), np.nan, np.float32)
    base[0] = 0.25
    base[1] = np.inf
    values = np.asarray(programs.pair_margins(trial.originals, trial.edits, own, base))[:, :, 0]
    linear = np.asarray(programs.pair_margins(trial.originals, trial.edits, own, None))[:, :, 0]
    # A contract without the base stays what it was, whatever the base is.
    assert np.array_equal(values[0], linear[0])
    assert values[1, 0] == 0.25
    assert values[2, 0] == linear[2, 0] + np.float32(0.5)
    assert np.isposinf(values[1:, 1]).all()
    assert np.isnan(values[1:, 2:]).all()
    rewards = programs.rewards(own, trial.originals, np.array([0.25], np.float32))
    plain = programs.rewards(own, trial.originals, None)
    np.testing.assert_allclose(rewards - plain, [[0], [0.25], [0.5]], atol=1e-7)


# What laundering moves, and what deletion does.
LAUNDERED = ("grounding", "hacking_rate", "cited_not_retrieved", "fake_citation")
DELETED = ("tool_calls", "hacking_rate", "no_search", "cited_not_retrieved")


@pytest.mark.parametrize(
    ("columns", "kinds"),
    [
        # Only penalties of L and F tell the lattice's contracts apart; R_full has both.
        (LAUNDERED, "outcome_only R0 R[L] R[F] R[L+F]"),
        (DELETED, "outcome_only outcome_cost R0 R[U] R[L] R[U+L]"),
        ((), "outcome_only"),
    ],
)
def test_contracts_that_edits_tell_apart(columns, kinds):
    names = list(ALL_CONTRACTS)
    rows, alike = told_apart(np.asarray(MATRIX.weights), np.zeros(len(names), bool), columns)
    assert [names[row] for row in rows] == kinds.split()
    for j, kind in enumerate(alike.tolist()):
        changed = [COLUMNS.index(name) for name in columns]
        one, other = (np.asarray(MATRIX.weights)[row, changed] for row in (j, rows[kind]))
        assert one.tolist() == other.tolist()


def test_a_base_reward_tells_contracts_apart_and_the_sign_of_a_zero_does_not():
    weights = np.zeros((4, len(COLUMNS)))
    weights[1] = -0.0
    rows, alike = told_apart(weights, np.array([False, False, True, False]), COLUMNS)
    assert rows == [0, 2]
    assert alike.tolist() == [0, 0, 1, 0]


@given(block=strategies.blocks(3))
def test_contracts_of_one_kind_have_the_same_margins_to_the_bit(block):
    trial = attempt("citation_laundering", block)
    columns = moved_columns(OPERATORS["citation_laundering"])
    moved = {name: trial.edits[name] for name in columns}
    rows, alike = told_apart(
        np.asarray(MATRIX.weights), np.zeros(len(ALL_CONTRACTS), bool), columns
    )
    assert len(rows) == 6
    kinds = Contracts(weights=MATRIX.weights[np.array(rows)], base=MATRIX.base[np.array(rows)])
    whole = programs.pick(trial.originals, moved, MATRIX, None, trial.verdicts.isolated)
    few = programs.pick(trial.originals, moved, kinds, None, trial.verdicts.isolated)
    for name in ("first_visible", "oracle_worst"):
        np.testing.assert_array_equal(getattr(whole, name), np.asarray(getattr(few, name))[alike])


def test_weights_of_another_width_are_refused():
    trial = attempt("citation_drop", lone_citation([]))
    narrow = Contracts(weights=jnp.zeros((2, len(COLUMNS) - 1)), base=jnp.zeros(2))
    with pytest.raises(AssertionError):
        programs.rewards(narrow, trial.originals, None)
