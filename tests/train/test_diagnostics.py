"""What detectors do to training, by the kernels that train, in words that tell the cases apart."""

import numpy as np
import pytest
from searched_rollouts import credited, no_searches

from herald_jax.train.advantages import detector_signals
from herald_jax.train.config import Grpo
from herald_jax.train.diagnostics import COUNTS, DetectorSignals
from herald_jax.types import DETECTORS

WATCHED = "cited_not_retrieved"
LAMBDA = 0.5
AT = DETECTORS.index(WATCHED)


def found_of(groups, *, base=None, scale="sd", penalty=LAMBDA, member=None):
    """The signal of one detector in groups of four: rewards as paid are base - penalty."""
    own = np.array(groups, bool)
    bits = np.zeros((len(DETECTORS), own.size), bool)
    bits[AT] = own.reshape(-1)
    base = np.arange(own.size) % 4 if base is None else np.asarray(base).reshape(-1)
    penalties = np.zeros(len(DETECTORS), np.float32)
    penalties[AT] = penalty
    return detector_signals(
        np.float32(base - penalty * bits[AT]),
        bits,
        np.ones(own.size, bool) if member is None else np.array(member, bool).reshape(-1),
        penalties,
        group=own.shape[1],
        grpo=Grpo(scale=scale),
    )


def told(*updates, penalty=LAMBDA):
    signals = DetectorSignals(dict.fromkeys(DETECTORS, 0.0) | {WATCHED: penalty})
    numbers = [signals.add(found) for found in updates]
    return signals, numbers, signals.lines()[AT]


def test_no_signal_in_the_rollouts():
    _, [numbers], line = told(found_of([[0, 0, 0, 0], [0, 0, 0, 0]]))
    assert line == f"{WATCHED}: no signal in the rollouts: true on none of 2 groups"
    assert numbers[f"signal/{WATCHED}/rows"] == 0
    # Constant, at false: so the count alone does not tell the two cases apart.
    assert numbers[f"signal/{WATCHED}/constant"] == 2
    assert numbers[f"signal/{WATCHED}/mean_square"] == 0


def test_erased_by_group_normalisation():
    _, [numbers], line = told(found_of([[1, 1, 1, 1], [0, 0, 0, 0]]))
    assert line == (
        f"{WATCHED}: erased by group normalisation: true on 4 rollouts, 1 of 2 groups, and in each "
        "of them on every rollout, so that the penalty is subtracted with the mean"
    )
    assert numbers[f"signal/{WATCHED}/rows"] == 4
    assert numbers[f"signal/{WATCHED}/changed"] == 0
    assert numbers[f"signal/{WATCHED}/mean_square"] == 0


def test_felt():
    _, [numbers], line = told(found_of([[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]))
    assert line == (
        f"{WATCHED}: true on 5 rollouts, 2 of 3 groups; constant and so erased in 1 of these "
        "groups, changed the advantages of 1"
    )
    # λ² p (1 - p) = 0.25 · 1/4 · 3/4 in one group.
    assert numbers[f"signal/{WATCHED}/mean_square"] == pytest.approx(0.25 * 3 / 16)
    assert (numbers[f"signal/{WATCHED}/holding"], numbers[f"signal/{WATCHED}/constant"]) == (2, 2)


def test_counts_add_up_over_a_run():
    signals, numbers, line = told(
        found_of([[1, 1, 1, 1], [0, 0, 0, 0]]), found_of([[0, 1, 0, 1], [0, 0, 0, 0]])
    )
    assert "6 rollouts, 2 of 4 groups; constant and so erased in 1" in line
    assert signals.sums[WATCHED] == pytest.approx(
        {"groups": 4, "rows": 6, "holding": 2, "constant": 3, "changed": 1, "mean_square": 0.0625}
    )
    assert set(numbers[0]) == {
        f"signal/{name}/{count}" for name in DETECTORS for count in COUNTS if count != "groups"
    }


def test_a_detector_that_is_not_paid_is_no_erased_penalty():
    _, _, line = told(found_of([[1, 0, 0, 0]], penalty=0.0), penalty=0.0)
    assert line == f"{WATCHED}: not paid (λ = 0); true on 1 rollouts, 1 of 1 groups"


def test_nothing_is_measured_without_a_group():
    assert DetectorSignals({}).lines()[AT] == f"{WATCHED}: not measured, no group yet"
    _, _, line = told(found_of([[1, 1, 1, 1]], member=[[0, 0, 0, 0]]))
    assert line == f"{WATCHED}: not measured, no group yet"


def test_rollouts_that_are_no_members_are_not_counted():
    # Of the members alone the detector is constant: nothing of it reaches the advantages.
    _, [numbers], line = told(found_of([[1, 1, 1, 0]], member=[[1, 1, 1, 0]]))
    assert numbers[f"signal/{WATCHED}/rows"] == 3
    assert "erased by group normalisation" in line


def test_without_the_sd_a_penalty_keeps_its_size():
    """A group in which nothing but the penalty differs: its size is lost by the sd alone."""
    flat = np.zeros((1, 4))
    for penalty in (0.5, 0.05):
        rewards = np.float32(flat - penalty * np.array([[1, 0, 0, 0]]))
        by_sd, plain = (advantages(rewards, scale) for scale in ("sd", "none"))
        np.testing.assert_allclose(by_sd, [-1.5, 0.5, 0.5, 0.5], atol=1e-3)
        np.testing.assert_allclose(plain, penalty * np.array([-0.75, 0.25, 0.25, 0.25]), atol=1e-6)


def test_the_sd_of_the_batch_is_common_to_its_groups():
    rewards = np.float32([0, 0, 0, 1, 0, 0, 0, 0.1])
    found = advantages(rewards, "batch")
    # Mean 1.1 / 8; squares 1.01 - 8 · 0.1375² = 0.85875, over 7; the root is 0.350255.
    sd = np.sqrt(0.85875 / 7)
    centred = np.array([-0.25, -0.25, -0.25, 0.75, -0.025, -0.025, -0.025, 0.075])
    np.testing.assert_allclose(found, centred / (sd + 1e-6), rtol=1e-5)


def test_under_the_sd_of_the_batch_a_constant_penalty_is_felt():
    groups, base = [[1, 1, 1, 1], [0, 0, 0, 0]], [0, 1, 2, 3, 0, 1, 2, 3]
    _, _, erased = told(found_of(groups, base=base))
    _, [numbers], felt = told(found_of(groups, base=base, scale="batch"))
    assert "erased by group normalisation" in erased
    assert "changed the advantages of 2" in felt
    assert numbers[f"signal/{WATCHED}/constant"] == 2


def advantages(rewards, scale):
    rows = rewards.size
    found = credited(rewards.reshape(-1), no_searches(rows), grpo=Grpo(scale=scale), signal="none")
    return np.asarray(found.advantage)
