"""Statistical faults that people met, each run through the project's own functions.

Not concerned yet: the sign-flip and Monte-Carlo p-values of `exact-inference` (nothing in an audit
is a test against a null hypothesis), `noninferiority-gate` (the comparison of two trained policies
brings it) and the sums over several reward functions of `grpo-missing-reward` (a run with a
learner brings them; its rule for members without a reward is checked here).
"""

import json
import math
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
import pytest

from herald_jax.kernels.bootstrap import (
    bootstrap_intervals,
    bootstrap_replicates,
    point_estimates,
)
from herald_jax.kernels.bounds import clopper_pearson, clopper_pearson_upper
from herald_jax.kernels.exact import ExactSum
from herald_jax.kernels.groups import advantages_by_question, group_advantages

CASES = Path(__file__).parents[2] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is absent")


def cases(kind):
    """Every file of a kind, or one parameter that skips when there is none."""
    return sorted(CASES.glob(f"{kind}-*.json")) or [CASES / f"{kind}-open.json"]


def load(path):
    case = json.loads(path.read_text(encoding="utf-8"))
    return case["input"], case["expected"]["values"]


def number(value):
    """A number of a case as a fraction: `{"frac": "9/28"}` or a float."""
    return Fraction(value["frac"] if isinstance(value, dict) else value)


def by_case(kind):
    return pytest.mark.parametrize("path", cases(kind), ids=lambda path: path.stem)


def clusters_of(groups):
    """Sums and numbers of rows of the clusters, as the engine hands them to the bootstrap."""
    sums = np.array([[math.fsum(group["margins"])] for group in groups])
    return sums, np.array([float(len(group["margins"])) for group in groups])


@by_case("bootstrap-cluster")
def test_bootstrap_of_clusters(path):
    given, expected = load(path)
    sums, rows = clusters_of(given["clusters"])
    assert point_estimates(sums, rows)[0] == pytest.approx(float(number(expected["point"])))

    replicates = 20_000
    found = bootstrap_replicates(sums, rows, seed=0, replicates=replicates)[:, 0]
    variance = float(number(expected["exact_variance"]))
    mean_error = abs(found.mean() - float(number(expected["exact_mean"])))
    assert mean_error <= 5 * math.sqrt(variance / replicates)
    assert found.var() == pytest.approx(variance, rel=0.06)

    support = [float(number(point["value"])) for point in expected["distribution"]]
    place = np.abs(np.subtract.outer(found, support)).argmin(axis=1)
    np.testing.assert_allclose(found, np.array(support)[place], atol=1e-12)
    ends = bootstrap_intervals(sums, rows, seed=0, replicates=replicates, level=given["level"])[0]
    for end, right in zip(ends, expected["ci95"], strict=True):
        step = np.abs(np.subtract(support, end)).argmin()
        exact = np.abs(np.subtract(support, float(number(right)))).argmin()
        assert abs(int(step) - int(exact)) <= 1


@by_case("bootstrap-cluster")
def test_bootstrap_without_spread_or_of_one_cluster(path):
    given, expected = load(path)
    ends = bootstrap_intervals(*clusters_of(given["degenerate_clusters"]), seed=0)[0]
    assert ends.tolist() == [float(number(end)) for end in expected["degenerate"]["ci95"]]
    assert expected["single_cluster"]["ci95"] is None
    with pytest.raises(ValueError, match="clusters"):
        bootstrap_intervals(*clusters_of(given["single_cluster"]), seed=0)


@by_case("exact-inference")
def test_exact_binomial_bounds(path):
    given, expected = load(path)
    for table, two_sided, one_sided in zip(
        given["tables"], expected["cp95"], expected["upper95_one_sided"], strict=True
    ):
        successes, n = table["successes"], table["n"]
        assert clopper_pearson(successes, n) == pytest.approx(tuple(two_sided), abs=1e-9)
        assert clopper_pearson_upper(successes, n) == pytest.approx(one_sided, abs=1e-9)
    assert clopper_pearson(expected["successes"], expected["valid"]) == pytest.approx(
        tuple(expected["cp95_of_asr"]), abs=1e-9
    )


def codes(rows):
    """Question ids as integers, in the order of their first row."""
    first = {row["question_id"]: None for row in rows}
    number_of = {question: code for code, question in enumerate(first)}
    return np.array([number_of[row["question_id"]] for row in rows])


@by_case("grpo-grouping")
def test_advantages_by_question_in_any_order(path):
    given, expected = load(path)
    question = codes(given["rows"])
    rewards = np.array([row["reward"] for row in given["rows"]])
    for scale, key in (("sd", "advantages"), ("none", "centred")):
        right = np.array([float(number(value)) for value in expected[key]])
        found = advantages_by_question(question, rewards, eps=given["eps"], scale=scale)
        np.testing.assert_allclose(found, right, atol=1e-5)
        order = np.random.default_rng(0).permutation(len(rewards))
        again = advantages_by_question(
            question[order], rewards[order], eps=given["eps"], scale=scale
        )
        assert np.array_equal(again, found[order])


@by_case("grpo-zero-spread")
def test_groups_without_spread(path):
    given, expected = load(path)
    members = [(g["question_id"], sum(m["terms"])) for g in given["groups"] for m in g["members"]]
    question = codes([{"question_id": name} for name, _ in members])
    rewards = np.array([reward for _, reward in members])
    right = [a for g in given["groups"] for a in expected["advantages"][g["question_id"]]]
    found = advantages_by_question(question, rewards, eps=given["eps"])
    np.testing.assert_allclose(found, right, atol=1e-5)
    silent = 0
    for code, group in enumerate(given["groups"]):
        rows = question == code
        # On the device, where rewards are float32 from the start.
        reward, mask = rewards[rows].astype(np.float32), np.ones(rows.sum(), bool)
        device = group_advantages(reward, mask, eps=given["eps"])
        gradient = jax.grad(lambda r, m: group_advantages(r, m).sum())(reward, mask)
        assert np.isfinite(gradient).all()
        if not any(expected["advantages"][group["question_id"]]):
            silent += 1
            assert (
                found[rows].tolist() == device.tolist() == gradient.tolist() == [0.0] * len(reward)
            )
    assert silent == expected["n_no_signal"]


@by_case("grpo-missing-reward")
def test_members_without_a_reward_are_left_out(path):
    given, expected = load(path)
    rewards = np.array(
        [
            math.nan if reward is None or not row["trainable_tokens"] else float(number(reward))
            for reward, row in zip(expected["rewards"], given["rows"], strict=True)
        ]
    )
    found = advantages_by_question(codes(given["rows"]), rewards, eps=given["eps"])
    np.testing.assert_allclose(found, expected["advantages"], atol=1e-5)
    assert (found[np.array(expected["weights"]) == 0] == 0).all()


@by_case("accumulation")
def test_sums_do_not_depend_on_order_or_shards(path):
    given, expected = load(path)
    margins = np.array(given["margins"])
    for seed in range(20):
        shuffled = np.random.default_rng(seed).permutation(margins)
        for shards in given["shard_counts"]:
            total = ExactSum()
            for shard in np.array_split(shuffled, shards):
                part = ExactSum()
                part.add(shard)
                total.merge(part)
            assert total.fraction() == number(expected["margin_sum_exact"])
            assert total.value() == expected["margin_sum_float64"]


@by_case("accumulation")
def test_counts_and_means_of_a_stream(path):
    given, expected = load(path)
    total = ExactSum()
    for value, times in given["em_runs"]:
        for start in range(0, times, 1_000_000):
            total.add(np.full(min(1_000_000, times - start), float(value)))
    assert (total.value(), total.count) == (expected["hits"], expected["n"])
    assert total.mean() == pytest.approx(float(number(expected["mean_em"])), abs=1e-9)

    stream = ExactSum()
    for batch in given["batches"]:
        padded = np.pad(np.array(batch, np.float64), (0, given["pad_batches_to"] - len(batch)))
        real = np.arange(len(padded)) < len(batch)
        stream.add(padded[real])
    assert stream.mean() == pytest.approx(float(number(expected["stream_mean"])), abs=1e-9)
