"""Checkpoints: the last whole one, to the bit, of this run alone."""

import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from herald_jax.train.checkpoints import CheckpointError, Checkpoints

IDENTITY = {"settings": "0123456789abcdef", "tasks": "fedcba9876543210"}
STATE = {
    "weights": jnp.asarray(np.random.default_rng(0).standard_normal((3, 4)), jnp.float32),
    "narrow": jnp.asarray([1.5, -2.25], jnp.bfloat16),
    "step": jnp.int32(7),
}


def opened(run, keep=3, **identity):
    return Checkpoints(run, keep=keep, identity=IDENTITY | identity)


def saved(run, *steps, keep=3):
    checkpoints = opened(run, keep)
    for step in steps:
        checkpoints.save(step, STATE | {"step": jnp.int32(step)}, {"updates": step, "spent": 2**40})
    checkpoints.finish()
    checkpoints.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Checkpoints of updates 0, 9 and 10."""
    run = tmp_path_factory.mktemp("whole")
    saved(run, 0, 9, 10)
    return run


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def test_the_state_comes_back_to_the_bit(whole):
    checkpoints = opened(whole)
    assert checkpoints.latest() == 10  # numbers, not names: "9" would be the last of these
    state, loop = checkpoints.restore(10, STATE)
    assert loop == {"updates": 10, "spent": 2**40}
    for name in ("weights", "narrow"):
        assert state[name].dtype == STATE[name].dtype
        assert np.array_equal(state[name], STATE[name])
    assert state["step"] == 10
    assert checkpoints.restore(9, STATE)[0]["step"] == 9
    assert checkpoints.incomplete() == []
    checkpoints.close()


def test_a_state_that_changes_while_it_is_saved_is_saved_as_it_was(tmp_path):
    import jax

    checkpoints = opened(tmp_path)
    state = {"weights": jnp.ones((64, 64))}
    checkpoints.save(1, state, {})
    move = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf * 5, tree), donate_argnums=0)
    state = move(state)
    checkpoints.finish()
    found = checkpoints.restore(1, state)[0]["weights"]
    checkpoints.close()
    assert (np.asarray(found) == 1).all() and (np.asarray(state["weights"]) == 5).all()


def test_a_few_last_ones_stay_and_the_first(tmp_path):
    saved(tmp_path, 0, 1, 2, 3, 4, keep=2)
    kept = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert kept == {"0", "3", "4"}


def test_there_is_none_before_the_first(tmp_path):
    checkpoints = opened(tmp_path)
    assert checkpoints.latest() is None and checkpoints.incomplete() == []
    checkpoints.close()


@pytest.mark.parametrize(("name", "digest"), [("settings", "a" * 64), ("tasks", "b" * 64)])
def test_the_checkpoint_of_another_run_is_refused_by_name(whole, name, digest):
    checkpoints = opened(whole, **{name: digest})
    with pytest.raises(
        CheckpointError,
        match=rf"checkpoints/10: expected {name} {digest[:12]}, got {IDENTITY[name][:12]}: .*--out",
    ):
        checkpoints.restore(10, STATE)
    checkpoints.close()


def test_half_written_and_foreign_folders_are_named_and_left_alone(copy):
    folder = copy / "checkpoints"
    for name in ("11.orbax-checkpoint-tmp-17", "10b", "notes", "step_12"):
        shutil.copytree(folder / "10", folder / name)
    checkpoints = opened(copy)
    assert checkpoints.latest() == 10
    assert checkpoints.incomplete() == ["10b", "11.orbax-checkpoint-tmp-17", "notes", "step_12"]
    assert checkpoints.restore(10, STATE)[0]["step"] == 10
    checkpoints.close()
    assert (folder / "10b" / "state").is_dir()


@pytest.mark.parametrize("part", ["state", "loop", "state/d", "loop/metadata", "."])
def test_a_damaged_one_is_refused_by_name(copy, part):
    place = copy / "checkpoints" / "10"
    if part == ".":
        shutil.rmtree(place)
        place.mkdir()
    elif (place / part).is_dir():
        shutil.rmtree(place / part)
    else:
        (place / part).write_text("{")
    checkpoints = opened(copy)
    with pytest.raises(CheckpointError, match=r"checkpoints/10: damaged \(.*; delete it"):
        checkpoints.restore(checkpoints.latest(), STATE)
    checkpoints.close()


def test_one_of_another_number_is_refused_by_name(copy):
    shutil.copytree(copy / "checkpoints" / "9", copy / "checkpoints" / "98")
    checkpoints = opened(copy)
    assert checkpoints.latest() == 98
    with pytest.raises(CheckpointError, match=r"checkpoints/98: expected .* 98 updates, got 9"):
        checkpoints.restore(98, STATE)
    checkpoints.close()


def test_one_of_another_shape_is_refused_by_name(whole):
    checkpoints = opened(whole)
    other = STATE | {"weights": jnp.zeros((5, 4))}
    with pytest.raises(CheckpointError, match="checkpoints/10: damaged"):
        checkpoints.restore(10, other)
    checkpoints.close()
