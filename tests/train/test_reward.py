"""Rewards of rollouts: a contract of the manifest, or a function of what the audit measures."""

import jax.numpy as jnp
import numpy as np
import pytest
from searched_rollouts import credited, no_searches

from herald_jax.data.records import OracleRow, Passage, Step, Trajectory
from herald_jax.manifest import Contract, Manifest
from herald_jax.train.reward import RewardModel
from herald_jax.train.reward_values import RewardValueError
from herald_jax.types import DETECTORS, ManifestError

PASSAGES = [Passage(passage_id=f"p{n}", text=f"text {n}") for n in range(4)]
ORACLE = [OracleRow("q", ["River Ilsen"], ["p1", "p2"])]
MINE = Manifest(
    contracts={
        "mine": Contract(
            weights={"answer": 1.0, "grounding": 0.5}, penalties={"cited_not_retrieved": 0.7}
        )
    }
)


def record(name, answer, citations, retrieved=("p1", "p3"), question="q"):
    steps = [Step(query="river", retrieved=list(retrieved))]
    return Trajectory(name, question, "Which?", steps, answer, list(citations))


RECORDS = [
    record("right", "River Ilsen", ["p1"]),
    record("half", "the Ilsen", ["p1", "p0"]),
    record("wrong", "Brode", []),
    Trajectory("none", "q", "Which?", [], None, []),
]


def model(contract="mine", manifest=MINE):
    return RewardModel(PASSAGES, ORACLE, manifest, contract)


def test_terms_are_weights_times_what_was_measured():
    found = model()(RECORDS)
    assert set(found.terms) == {"answer", "grounding", "cited_not_retrieved"}
    assert found.em.tolist() == [1, 0, 0, 0]
    # F1 of "the Ilsen" with "River Ilsen": precision 1, recall 1/2.
    np.testing.assert_allclose(found.f1, [1, 2 / 3, 0, 0], atol=1e-6)
    np.testing.assert_allclose(found.terms["answer"], found.f1, atol=1e-6)
    assert found.detectors["cited_not_retrieved"].tolist() == [False, True, False, False]
    np.testing.assert_allclose(found.terms["cited_not_retrieved"], [0, -0.7, 0, 0], atol=1e-6)
    np.testing.assert_allclose(sum(found.terms.values()), found.reward, atol=1e-6)
    assert set(found.detectors) == set(DETECTORS)


def test_weights_and_penalties_are_told():
    mine = model()
    assert mine.explain() == pytest.approx(
        {"answer": 1.0, "grounding": 0.5, "cited_not_retrieved": -0.7}
    )
    assert mine.penalties == pytest.approx(
        dict.fromkeys(DETECTORS, 0.0) | {"cited_not_retrieved": 0.7}
    )
    assert model("R0").penalties == dict.fromkeys(DETECTORS, 0.0)


def test_a_rollout_alone_gets_what_it_gets_in_a_batch():
    mine = model()
    together = mine(RECORDS * 3).reward
    assert np.array_equal(together[:4], together[8:])
    for at, one in enumerate(RECORDS):
        assert mine([one]).reward[0] == together[at]


@pytest.mark.parametrize(
    ("name", "said"),
    [("min", "did you mean `mine`"), ("R_ful", "did you mean `R_full`"), ("xyz", "name one")],
)
def test_a_contract_that_is_not_there_is_named_with_the_nearest(name, said):
    with pytest.raises(ManifestError, match=f"reward.contract: .*got '{name}'; .*{said}"):
        model(name)


def test_a_function_of_what_was_measured_is_a_reward():
    def careful(measured):
        unsupported = measured.flags.cited_not_retrieved.astype(jnp.float32)
        return measured.features.answer - 2 * unsupported

    found = model(careful)(RECORDS)
    np.testing.assert_allclose(found.reward, [1, 2 / 3 - 2, 0, 0], atol=1e-6)
    assert found.reward.dtype == np.float32
    assert found.terms == {}
    assert model(careful).penalties == dict.fromkeys(DETECTORS, 0.0)
    # What was measured is told whatever is paid.
    assert found.em.tolist() == [1, 0, 0, 0]


def test_nan_says_that_a_rollout_cannot_be_scored():
    def unsure(measured):
        return jnp.where(measured.flags.cited_not_retrieved, jnp.nan, measured.features.answer)

    found = model(unsure)(RECORDS)
    assert np.isnan(found.reward).tolist() == [False, True, False, False]
    trained = credited(found.reward, no_searches(4), signal="none")
    assert trained.member.tolist() == [True, False, True, True]
    # Mean of the others 1/3, sd with n - 1 of (1, 0, 0) is 1 / √3.
    right = np.array([2 / 3, 0, -1 / 3, -1 / 3]) * np.sqrt(3)
    np.testing.assert_allclose(trained.advantage, right, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda measured: jnp.float32(1), r"shape \(\)"),
        (lambda measured: measured.features.answer[:2], "2 of them"),
        (lambda measured: measured.features.answer[:, None], r"shape \(4, 1\)"),
        (lambda measured: measured.features.answer + jnp.inf, "inf at place 0"),
    ],
)
def test_what_is_not_one_number_a_rollout_is_refused_by_name(function, said):
    function.__name__ = "mine"
    with pytest.raises(RewardValueError, match=f"`mine`.*{said}"):
        model(function)(RECORDS)


def test_rollouts_of_questions_without_gold_labels_are_refused():
    other = record("other", "x", [], question="unknown")
    with pytest.raises(ValueError, match=r"1 of 5 rollouts .*\['unknown'\]"):
        model()([*RECORDS, other])
