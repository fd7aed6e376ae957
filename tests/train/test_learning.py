"""The three-minute version of `benchmarks/learning.py`: what is paid for is learned.

A policy from nothing imitates the scripted agents for a while and is then trained on the reward of
the benchmark. In so short a time it hardly learns to copy answers, which the benchmark shows; what
must rise is the reward on held-out questions, the lower end of its question-clustered interval
above zero, and with shuffled advantages it must not rise like that.
"""

import json
from pathlib import Path

import pytest
from train_setups import silent_draw, silent_say

from herald_jax.train.config_load import load_config, read_config
from herald_jax.train.evaluate import paired_difference
from herald_jax.train.run import train

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SHORT = [
    "data.questions=400",
    "policy.vocab=512",
    "environment.passage_tokens=48",
    "rollouts.questions=8",
    "rollouts.turn_tokens=32",
    "warm_start.tokens=192",
    "evaluation.questions=60",
    "evaluation.samples=2",
    "run.budget=1000000000",
]


def settings(*more):
    """The benchmark's settings, shortened; its paths are those of a checkout."""
    reward = f"reward.manifest={BENCHMARKS / 'learning_reward.toml'}"
    return read_config(BENCHMARKS / "learning.toml", [*SHORT, reward, *more])


def moved(out):
    """How the held-out reward moved from the first to the last evaluation."""
    paths = sorted((out / "evaluations").glob("*.json"))
    before, after = (json.loads(path.read_text()) for path in (paths[0], paths[-1]))
    return paired_difference(before, after, "reward")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("learning") / "run"
    train(settings("warm_start.steps=150", "run.updates=25"), out, say=silent_say, draw=silent_draw)
    return out


def test_what_is_paid_for_is_learned(trained):
    found = moved(trained)
    assert found["questions"] == 60
    assert found["interval"][0] > 0.05, found


def test_shuffled_advantages_teach_nothing(trained, tmp_path):
    shuffled = settings(
        "warm_start.steps=0",
        f"policy.start={trained / 'checkpoints' / '0'}",
        "grpo.shuffle_advantages=true",
        "run.updates=25",
    )
    train(shuffled, tmp_path / "run", say=silent_say, draw=silent_draw)
    assert moved(tmp_path / "run")["mean"] < moved(trained)["mean"] / 2


def test_the_benchmarks_settings_are_valid():
    config = load_config(BENCHMARKS / "learning.toml")
    assert config.reward.contract == "grounded"
    assert config.policy.preset == "tiny"
