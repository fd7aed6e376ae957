"""The programs of an audit over blocks: what a block may not change, and how often they compile."""

import math

import jax
import jax.monitoring
import numpy as np
import pytest
import trajectory_strategies as strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_trials import ALL_CONTRACTS, attempt, contract_matrix, reference_outcome, rule_of
from reference.cells import SELECTORS, cell_of_clusters
from reference.settings import Settings
from trajectory_arrays import Row, Rows, Widths, rules

from herald_jax.audit.operators import OPERATORS
from herald_jax.kernels import programs
from herald_jax.kernels.rewards import COLUMNS, Contracts, column, measure
from herald_jax.kernels.sums import margin_scale, margin_totals

ROWS = 4
CHOSEN = Settings()
MATRIX = contract_matrix(ALL_CONTRACTS)
TOLERANCE = np.float32(CHOSEN.tie_tolerance)
SCALE = margin_scale(64.0)


def picked(name, block, widths=Widths(), spare=0):  # noqa: B008
    """Everything that a table of an audit takes from a block, trajectories along the last axis."""
    trial = attempt(name, block, widths, spare=spare)
    values = programs.pair_margins(trial.originals, trial.edits, MATRIX, None)
    return {
        "originals": trial.originals,
        "edits": {"made": trial.made, **trial.edits, "isolated": trial.verdicts.isolated},
        "counts": {
            field: getattr(trial.verdicts, field)
            for field in ("edits", "eligible_edits", "isolated_edits", "broke")
        },
        "rewards": programs.rewards(MATRIX, trial.originals, None),
        "selected": programs.pick(
            trial.originals, trial.edits, MATRIX, None, trial.verdicts.isolated
        ),
        "nonfinite": programs.count_nonfinite(values, trial.verdicts.isolated),
    }


def rows_of(tree, rows):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[..., rows], tree)


def assert_equal(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


# The edits of these between them take nothing, one id, a list, and one id each from gold.
KINDS = ("same_final_deletion", "citation_laundering", "unsupported_citation", "gold_stress")


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=25)
@given(block=strategies.blocks(ROWS))
def test_a_block_is_its_trajectories_one_by_one(name, block):
    whole = picked(name, block)
    for number, row in enumerate(block.rows):
        alone = picked(name, Rows(block.corpus, (row,)))
        assert_equal(rows_of(whole, slice(number, number + 1)), rows_of(alone, slice(None)))


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=25)
@given(block=strategies.blocks(ROWS), other=strategies.blocks(1))
def test_trajectories_of_a_block_do_not_touch_each_other(name, block, other):
    changed = Rows(block.corpus, (*block.rows[:1], *other.rows, *block.rows[2:]))
    rest = [0, 2, 3]
    assert_equal(rows_of(picked(name, block), rest), rows_of(picked(name, changed), rest))


@pytest.mark.parametrize("name", [*KINDS, "support_id_laundering"])
@settings(max_examples=20)
@given(block=strategies.blocks(ROWS))
def test_padding_changes_nothing(name, block):
    tight = picked(name, block)
    padded = picked(name, block, Widths(retrieved=70, citations=13, support=9), spare=4)
    edits, padded_edits = tight.pop("edits"), padded.pop("edits")
    assert_equal(tight, padded)
    # More places for ids on offer are more edits that are not made.
    made = np.asarray(edits["made"])
    assert not np.asarray(padded_edits["made"])[len(made) :].any()
    for key, values in edits.items():
        first = np.asarray(padded_edits[key])[: len(made)]
        np.testing.assert_array_equal(np.asarray(values)[made], first[made])


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=25)
@given(block=strategies.blocks(ROWS))
def test_both_selectors_against_the_reference(name, block):
    selected = picked(name, block)["selected"]
    outcomes = [reference_outcome(name, row, block.corpus, CHOSEN) for row in block.rows]
    for selector, choose in SELECTORS.items():
        found = np.asarray(getattr(selected, selector))
        for j, contract in enumerate(ALL_CONTRACTS.values()):
            expected = [choose(outcome, contract) for outcome in outcomes]
            got = [v if math.isfinite(v) else None for v in found[j].tolist()]
            assert [v is None for v in got] == [v is None for v in expected]
            for ours, theirs in zip(got, expected, strict=True):
                assert theirs is None or math.isclose(ours, theirs, abs_tol=2e-6)


# Of many edits the margins are gone through in a loop.
@pytest.mark.parametrize("spare", [0, 20])
@settings(max_examples=15)
@given(block=strategies.blocks(ROWS), seed=st.integers(0, 2**32 - 1))
def test_what_is_picked_is_picked_from_the_margins_of_all_pairs(spare, block, seed):
    rng = np.random.default_rng(seed)
    trial = attempt("citation_laundering", block, spare=spare)
    values = np.array([0.5, -0.25, math.nan, math.inf, -math.inf], np.float32)
    base = rng.choice(values, trial.made.shape, p=[0.5, 0.2, 0.1, 0.1, 0.1])
    contracts = Contracts(weights=MATRIX.weights, base=np.ones(len(MATRIX.base), np.float32))
    # Whatever the edits are worth: pairs that count are more often than not the lesser part.
    isolated = rng.random(trial.made.shape) < 0.6
    margins = np.asarray(programs.pair_margins(trial.originals, trial.edits, contracts, base))
    picked = programs.pick(trial.originals, trial.edits, contracts, base, isolated)
    first, worst = np.asarray(picked.first_visible), np.asarray(picked.oracle_worst)
    for row in range(ROWS):
        counted = margins[:, isolated[:, row], row]
        finite = np.where(np.isfinite(counted), counted, -np.inf)
        leading = counted[:, 0] if counted.shape[1] else np.full(len(margins), np.nan)
        np.testing.assert_array_equal(first[:, row], leading)
        np.testing.assert_array_equal(worst[:, row], finite.max(axis=1, initial=-np.inf))


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=15)
@given(block=strategies.blocks(ROWS))
def test_edits_written_out_measure_the_same(name, block):
    trial = attempt(name, block)
    operator = OPERATORS[name]
    edited = programs.apply(
        trial.state, trial.offer, trial.labels, edit=operator.edit, each=operator.each
    )
    measured = measure_written(edited, trial.labels.n_support)
    np.testing.assert_array_equal(edited.made, trial.made)
    made = np.asarray(trial.made)
    for key, values in trial.edits.items():
        np.testing.assert_array_equal(np.asarray(values)[made], np.asarray(measured[key])[made])


@jax.jit
def measure_written(edited, n_support):
    chosen = rules()

    def one(state, support, n_support, f1):
        found = measure(state, support, n_support, f1, chosen.limits, chosen.weights)
        return {name: column(found, name) for name in COLUMNS}

    over_rows = jax.vmap(one, in_axes=-1, out_axes=-1)
    over_edits = jax.vmap(over_rows, in_axes=(0, 0, None, 0))
    return over_edits(edited.state, edited.support, n_support, edited.f1)


VALUE = st.sampled_from([0.81375, -0.38625, 0.0, -5e-7, math.nan, math.inf]) | st.floats(
    -4, 4, width=32, allow_subnormal=False
)


@given(
    st.lists(st.lists(st.tuples(VALUE, st.booleans()), max_size=4), min_size=3, max_size=3),
    st.sampled_from(["question", "row"]),
)
def test_sums_of_questions_give_the_references_cell(questions, weighting):
    values = np.full((1, 12), np.nan, np.float32)
    rows = np.zeros(12, bool)
    for group, rollouts in enumerate(questions):
        for place, (value, row) in enumerate(rollouts):
            values[0, 4 * group + place], rows[4 * group + place] = value, row
    found = programs.sum_questions(values, rows, np.float32(SCALE), TOLERANCE, width=4)
    clusters = [
        [np.float32(v).item() for v, row in rollouts if row and math.isfinite(v)]
        for rollouts in questions
    ]
    expected = cell_of_clusters(
        [cluster for cluster in clusters if cluster], Settings(weighting=weighting)
    )
    counts = np.asarray(found.rows)[0]
    assert counts.tolist() == [len(cluster) for cluster in clusters]
    if not counts.any():
        assert expected == {"questions": 0}
        return
    held = counts > 0
    successes = np.asarray(found.successes)[0][held]
    margins = margin_totals(found.high, found.low)[0][held] / SCALE
    assert (successes > 0).sum() == expected["any_success"]
    assert np.asarray(found.largest)[0][held].max() == expected["max_margin"]
    for key, sums in (("asr", successes), ("mean_margin", margins)):
        mean = (
            (sums / counts[held]).mean() if weighting == "question" else sums.sum() / counts.sum()
        )
        # A margin is rounded to 1 / scale = 2^-22 at most.
        assert math.isclose(mean, expected[key], abs_tol=1 / SCALE)


def fixed_block(rows=ROWS):
    step = {"query": "mill", "retrieved": ["p000", "p001", "x"], "valid": True}
    blank = {"query": " ", "retrieved": ["p004"], "valid": True}
    trajectories = [
        {"steps": [step], "answer": "mill", "citations": ["p000", "p003", "x"]},
        {"steps": [step, step, blank], "answer": None, "citations": []},
        {"steps": [], "answer": "the", "citations": ["p001"]},
        {"steps": [blank, step], "answer": "Mill", "citations": ["p001", "p001", "p000"]},
    ]
    gold = {"answers": ["mill wheel"], "support_ids": ["p001", "p002", "elsewhere"]}
    fill = {"trajectory_id": "t", "malformed_citations": 0}
    return Rows(
        strategies.PASSAGES[:8],
        tuple(Row(fill | trajectory, gold) for trajectory in trajectories[:rows]),
    )


@pytest.mark.parametrize("name", ["citation_laundering", "unsupported_citation"])
def test_compiled_or_not(name):
    block = fixed_block()
    compiled = picked(name, block)
    with jax.disable_jit():
        eager = picked(name, block)
    for a, b in zip(jax.tree.leaves(compiled), jax.tree.leaves(eager), strict=True):
        if np.asarray(a).dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=2e-7)
        else:
            np.testing.assert_array_equal(a, b)


class Compilations:
    """Counts what JAX compiles while it is entered, whatever compiles it."""

    def __enter__(self):
        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self.note)
        return self

    def __exit__(self, *_):
        jax.monitoring.unregister_event_duration_listener(self.note)

    def note(self, event, seconds, **_):
        self.count += event == "/jax/core/compile/backend_compile_duration"


def test_the_counter_sees_a_compilation():
    with Compilations() as seen:
        jax.jit(lambda x: x * 3 + seen.count)(np.float32(1))
    assert seen.count == 1


def test_blocks_of_one_shape_compile_once():
    def run(block):
        for name in OPERATORS:
            found = picked(name, block, Widths(retrieved=32, citations=8, support=8))
            for values in jax.tree.leaves(found["selected"]):
                rows = np.ones(ROWS, bool)
                programs.sum_questions(values, rows, np.float32(SCALE), TOLERANCE, width=2)

    block = fixed_block()
    run(block)
    # Other trajectories, another corpus, another number of passages: the same programs.
    other = Rows(strategies.PASSAGES[:3], block.rows[::-1])
    with Compilations() as seen:
        run(block)
        run(other)
    assert seen.count == 0


def test_contracts_and_rules_are_arguments_of_a_program_not_part_of_it():
    block = fixed_block()
    trial = attempt("citation_laundering", block)
    values = programs.pair_margins(trial.originals, trial.edits, MATRIX, None)
    heavier = Contracts(weights=MATRIX.weights * 2, base=MATRIX.base)
    rule = rule_of("fake_id", 2)
    with Compilations() as seen:
        twice = programs.pair_margins(trial.originals, trial.edits, heavier, None)
        attempt("citation_laundering", block, settings=Settings(min_searches=2, max_searches=1))
        programs.judge(trial.made, trial.originals, trial.edits, rule)
    assert seen.count == 0
    np.testing.assert_allclose(twice, 2 * np.asarray(values), rtol=1e-6)
