"""Whole updates: resumed to the bit, logged as an audit reads them, credited where it says."""

import json
import shutil
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from train_setups import silent_draw, silent_say, small_config, small_setup

from herald_jax.audit.operators import OPERATORS
from herald_jax.audit.staging import prepare as prepare_audit
from herald_jax.audit.staging import stage
from herald_jax.manifest import load_manifest
from herald_jax.manifest.contracts import build_contracts
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool
from herald_jax.train.checkpoints import CheckpointError
from herald_jax.train.run import train
from herald_jax.train.trainer import DivergedError, Trainer
from herald_jax.types import ManifestError


def run(out, **changes):
    return train(small_config(**changes), out, say=silent_say, draw=silent_draw)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of two updates."""
    out = tmp_path_factory.mktemp("whole")
    run(out)
    return out


def rollouts(out):
    return {
        path.name: path.read_bytes() for path in sorted((out / "log").glob("trajectories-*.jsonl"))
    }


def numbers(out):
    """Metrics without clocks."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if "second" not in k} for line in lines]


def policy(out, step):
    from herald_jax.train.checkpoint_policy import open_run

    states = open_run(out, step=step)[1]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(states)]


def test_a_run_that_goes_on_is_the_run_that_never_stopped(whole, tmp_path):
    run(tmp_path, run={"updates": 1})
    assert len(rollouts(tmp_path)) == 1
    run(tmp_path)
    assert rollouts(tmp_path) == rollouts(whole)
    assert numbers(tmp_path) == numbers(whole)
    for one, other in zip(policy(tmp_path, 2), policy(whole, 2), strict=True):
        assert np.array_equal(one, other)


def test_a_run_that_was_killed_goes_on(whole, tmp_path):
    settings = tmp_path / "config.toml"
    from train_setups import SMALL

    settings.write_text(
        "\n".join(
            f"[{name}]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in table.items())
            for name, table in SMALL.items()
        )
    )
    out = tmp_path / "run"
    command = [sys.executable, "-m", "herald_jax.cli", "train", str(settings), "-o", str(out), "-q"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # Killed once the first update is logged: its checkpoint may be whole, half-written or missing.
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        if (out / "log" / "trajectories-00000001.jsonl").exists():
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.02)
    assert process.wait() in (-signal.SIGKILL, 0)
    assert not (out / "summary.json").exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert rollouts(out) == rollouts(whole)
    assert numbers(out) == numbers(whole)


def test_the_checkpoint_of_other_settings_is_refused_by_name(whole, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    with pytest.raises(CheckpointError, match=r"checkpoints/2: expected settings"):
        run(out, grpo={"clip_low": 0.1})


def test_half_written_checkpoints_are_named_and_not_used(whole, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    (out / "checkpoints" / "9.orbax-checkpoint-tmp-17").mkdir()
    (out / "checkpoints" / "9.orbax-checkpoint-tmp-17" / "state").mkdir()
    said = []
    train(small_config(), out, say=said.append, draw=silent_draw)
    assert any("9.orbax-checkpoint-tmp-17" in line for line in said)
    assert any("going on from" in line and "2" in line for line in said)


def test_a_damaged_checkpoint_is_refused_by_name(whole, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    shutil.rmtree(out / "checkpoints" / "2" / "state" / "d")
    with pytest.raises(CheckpointError, match=r"checkpoints/2: damaged"):
        run(out)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """A run paid by a contract of one's own, and the manifest."""
    folder = tmp_path_factory.mktemp("weighted")
    path = folder / "audit.toml"
    path.write_text(
        "[contracts.mine]\nbase = true\nweights = { grounding = 0.5, invalid_rate = -0.4 }\n"
        "penalties = { no_search = 0.7, cited_not_retrieved = 0.3 }\n"
    )
    run(folder / "run", reward={"manifest": str(path), "contract": "mine"})
    return folder / "run", path


def audited_rewards(out, manifest, contract):
    """Every reward of a run's log as the audit's own blocks have it."""
    pool = load_pool(*find_pool_files(out / "log"))
    contracts = build_contracts(manifest)
    setup = prepare_audit(pool, manifest, contracts, None)
    found = {}
    for block in stage(setup, pool.whole):
        for at, row in enumerate(block.place.rows.tolist()):
            if row >= 0:
                name = pool.rows.name(row)
                found[name] = float(block.rewards[contracts.index(contract), at])
    return found


def logged_rewards(out):
    return {
        row["trajectory_id"]: row["reward"]
        for lines in rollouts(out).values()
        for row in map(json.loads, lines.decode().splitlines())
    }


def test_the_audit_of_its_log_gives_every_reward(weighted):
    out, path = weighted
    logged = logged_rewards(out)
    audited = audited_rewards(out, load_manifest(path), "mine")
    assert logged.keys() == audited.keys() and len(logged) == 16
    for name, reward in logged.items():
        assert abs(reward - audited[name]) <= 1e-6


def test_a_changed_weight_changes_both(weighted, tmp_path):
    out, path = weighted
    other = tmp_path / "other.toml"
    other.write_text(path.read_text().replace("invalid_rate = -0.4", "invalid_rate = -2.4"))
    audited = audited_rewards(out, load_manifest(other), "mine")
    logged = logged_rewards(out)
    assert any(abs(audited[name] - logged[name]) > 0.5 for name in logged)
    run(tmp_path / "run", reward={"manifest": str(other), "contract": "mine"}, run={"updates": 1})
    again = logged_rewards(tmp_path / "run")
    for name, reward in again.items():
        assert abs(reward - audited[name]) <= 1e-6


def test_terms_add_up_to_the_reward(weighted):
    out, _ = weighted
    for lines in rollouts(out).values():
        for row in map(json.loads, lines.decode().splitlines()):
            assert abs(sum(row["terms"].values()) - row["reward"]) < 1e-5


def test_a_contract_that_is_not_there_is_named():
    with pytest.raises(ManifestError, match=r"R_full"):
        run(None, reward={"contract": "R_ful"})


def test_budget_stops_at_the_first_update_at_or_past_it(tmp_path):
    outcome = run(tmp_path, run={"updates": 100, "budget": 100}, warm_start={"steps": 0})
    spent = [line["tokens/action"] for line in numbers(tmp_path)]
    assert sum(spent) == outcome.spent >= 100
    assert sum(spent[:-1]) < 100


def trainer_with(rewards, **changes):
    """A trainer whose rewards are set by hand."""
    setup, states = small_setup()
    from dataclasses import replace

    setup = replace(setup, config=small_config(**changes), reward=rewards(setup.reward))
    return Trainer(setup, jax.tree.map(lambda leaf: leaf.copy(), states))


class Given:
    """Rewards that take the place of the contract's."""

    def __init__(self, model, values):
        self._model, self._values = model, values
        self.penalties = model.penalties

    def __call__(self, records):
        from dataclasses import replace

        found = self._model(records)
        return replace(found, reward=np.resize(np.float32(self._values), len(records)))


def test_gradients_that_stay_not_finite_stop_the_run():
    trainer = trainer_with(
        # So far apart that the square of a gradient is more than float32 holds.
        lambda model: Given(model, [3e38, 0.0, 1.0, 2.0]),
        optimizer={"skips": 2},
        grpo={"scale": "none"},
    )
    before = [np.asarray(leaf).copy() for leaf in jax.tree.leaves(trainer.states)]
    update = trainer.update()
    assert update.metrics["grad/skipped"] == 1
    with pytest.raises(DivergedError, match="2 gradients in a row"):
        trainer.update()
    for one, other in zip(jax.tree.leaves(trainer.states), before, strict=True):
        assert np.array_equal(np.asarray(one), other)


def test_a_rollout_without_reward_has_no_part_in_its_group():
    trainer = trainer_with(lambda model: Given(model, [1.0, np.nan, 0.0, 0.5]))
    update = trainer.update()
    assert update.metrics["rollouts/unscored"] == 2
    advantage = np.asarray(update.credited.advantage).reshape(2, 4)
    assert np.all(advantage[:, 1] == 0)
    # By hand: mean 1/2, sd with n - 1 of (1, 0, 1/2) is 1/2.
    assert np.allclose(advantage[:, [0, 2, 3]], [[1, -1, 0]] * 2, atol=1e-5)


def test_tied_outcomes_give_no_update_at_all_without_credit():
    trainer = trainer_with(lambda model: Given(model, [0.3]), credit={"signal": "none"})
    update = trainer.update()
    assert update.metrics["grad/norm"] == 0
    assert update.metrics["groups/flat"] == 1


def test_every_operator_can_read_the_log(whole):
    from herald_jax.audit import run as audit
    from herald_jax.manifest import Manifest

    report = audit(load_pool(*find_pool_files(whole / "log")), Manifest())
    assert report.data["rows"] == 16
    assert set(report.data["operators"]) == set(OPERATORS)
