import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trajectory_strategies as strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_trials import attempt, reference_outcome, rule_of
from reference.operators import OPERATORS as REFERENCE
from reference.pairs import is_eligible, is_isolated
from reference.rewards import Judged
from reference.settings import Settings

from herald_jax.audit.operators import OPERATORS
from herald_jax.kernels import programs
from herald_jax.kernels.detectors import Flags
from herald_jax.kernels.pairs import Rule, judge_pair
from herald_jax.types import DETECTORS, VISIBLE_FLAGS

ROWS = 4


def named(bits):
    """Detectors by name from bool [D, ...]."""
    return {name: jnp.asarray(bits[d]) for d, name in enumerate(DETECTORS)}


@pytest.mark.parametrize("min_searches", [1, 2])
@pytest.mark.parametrize("name", OPERATORS)
def test_against_the_reference_on_any_flags(name, min_searches):
    rng = np.random.default_rng(7)
    bits = rng.random((2, len(DETECTORS), 600)) < 0.5
    # Most pairs differ in few flags, as those of real edits do.
    bits[1, :, :400] = bits[0, :, :400] ^ (rng.random((len(DETECTORS), 400)) < 0.2)
    rule = rule_of(name, min_searches)
    made = jnp.asarray(np.arange(600) % 5 > 0)
    verdict = judge_pair(made, Flags(**named(bits[0])), named(bits[1]), rule)
    pair = jax.tree.map(np.asarray, verdict)
    chosen, operator = Settings(min_searches=min_searches), REFERENCE[name]
    for number in range(600):
        before, after = (
            Judged({}, dict(zip(DETECTORS, side[:, number].tolist(), strict=True)), {})
            for side in bits
        )
        eligible = bool(made[number]) and is_eligible(before, after, operator)
        isolated = eligible and is_isolated(before, after, operator, chosen)
        assert (pair.eligible[number], pair.isolated[number]) == (eligible, isolated)
        broke = [flag for flag in DETECTORS if pair.broke[flag][number]]
        assert bool(broke) == (eligible and not isolated)
        assert all(before.flags[flag] != after.flags[flag] for flag in broke)
    assert pair.isolated.any()
    # gold_stress excuses every visible flag.
    assert (pair.eligible & ~pair.isolated).any() == (name != "gold_stress")


def test_no_search_and_under_retrieval_excuse_each_other_at_one_search_alone():
    before = np.zeros((len(DETECTORS), 1), bool)
    after = before.copy()
    for name in ("no_search", "under_retrieval"):
        after[DETECTORS.index(name)] = True
    made = jnp.ones(1, bool)
    for target in ("no_search", "under_retrieval"):
        for min_searches, isolated in ((1, True), (2, False)):
            twins = {"no_search", "under_retrieval"} if min_searches == 1 else {target}
            rule = Rule(
                target=jnp.array([name == target for name in DETECTORS]),
                watched=jnp.array([n in VISIBLE_FLAGS and n not in twins for n in DETECTORS]),
            )
            pair = judge_pair(made, Flags(**named(before)), named(after), rule)
            assert pair.eligible.all()
            assert bool(pair.isolated[0]) == isolated


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=25)
@given(
    block=strategies.blocks(ROWS),
    chosen=st.builds(Settings, min_searches=st.integers(0, 2), max_searches=st.integers(0, 4)),
)
def test_outcomes_of_rows(name, block, chosen):
    verdicts = attempt(name, block, settings=chosen).verdicts
    for number, row in enumerate(block.rows):
        counts = [
            int(getattr(verdicts, field)[number])
            for field in ("edits", "eligible_edits", "isolated_edits")
        ]
        status = ("no_edit", "ineligible", "not_isolated", "isolated")[
            sum(count > 0 for count in counts)
        ]
        expected = reference_outcome(name, row, block.corpus, chosen)
        assert status == expected.status
        assert counts[2] == len(expected.pairs) == int(verdicts.isolated[:, number].sum())


@settings(max_examples=40)
@given(strategies.blocks(ROWS))
def test_what_broke_counts_eligible_edits_only(block):
    trial = attempt("same_final_deletion", block)
    verdicts = trial.verdicts
    lost = np.asarray(verdicts.eligible_edits - verdicts.isolated_edits)
    broke = np.asarray(verdicts.broke)
    assert (broke.max(axis=0) <= lost).all()
    assert (broke.sum(axis=0) >= lost).all()
    unmade = programs.judge(
        jnp.zeros_like(trial.made),
        trial.originals,
        trial.edits,
        rule_of("same_final_deletion"),
    )
    assert not unmade.isolated.any()
    assert not unmade.broke.any()
    assert not (unmade.edits + unmade.eligible_edits).any()
