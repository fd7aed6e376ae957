"""Questions of an update, and which rollouts make up mixed groups."""

import inspect

import numpy as np
import pytest

from herald_jax.train.environment import Task
from herald_jax.train.grouping import mixed_groups, questions_of_update

TASKS = [Task(f"q{n}", f"{n}?") for n in range(7)]


def asked(updates, count, seed=0):
    return [
        task.question_id
        for update in range(updates)
        for task in questions_of_update(TASKS, count, update, seed)
    ]


def test_every_question_comes_once_an_epoch():
    found = asked(7, 3)
    for epoch in range(3):
        assert sorted(found[7 * epoch : 7 * epoch + 7]) == [f"q{n}" for n in range(7)]
    assert found[:7] != found[7:14]


def test_an_update_depends_on_its_number_and_the_seed_alone():
    assert questions_of_update(TASKS, 3, 5, 0) == questions_of_update(TASKS, 3, 5, 0)
    assert asked(7, 3, seed=1) != asked(7, 3)
    # More questions than there are: the next epochs follow.
    assert [task.question_id for task in questions_of_update(TASKS, 21, 0, 0)] == asked(7, 3)


@pytest.mark.parametrize(
    ("bits", "kept"),
    [
        # Two of the rarer kind and the first two of the commoner.
        ("11000000", [0, 1, 2, 3]),
        ("00000011", [0, 1, 6, 7]),
        # The rarer one does not last for half: others fill up.
        ("00000001", [0, 1, 2, 7]),
        ("11110111", [0, 1, 2, 4]),
        # More than half of each: no more than half of the kind that is not commoner.
        ("01010101", [0, 1, 2, 3]),
        ("11111000", [0, 1, 5, 6]),
        # All alike: the first ones.
        ("00000000", [0, 1, 2, 3]),
        ("11111111", [0, 1, 2, 3]),
    ],
)
def test_mixed_groups_by_hand(bits, kept):
    own = np.array([bit == "1" for bit in bits])
    assert mixed_groups(own, 8, 4).tolist() == kept
    # Every question by itself.
    both = mixed_groups(np.concatenate([own, ~own]), 8, 4)
    assert both[:4].tolist() == kept
    assert (both[4:] >= 8).all() and len(both) == 8


def test_odd_groups_and_no_rollouts():
    assert mixed_groups(np.array([1, 1, 1, 0, 0, 0], bool), 6, 3).tolist() == [0, 3, 4]
    assert mixed_groups(np.zeros(0, bool), 8, 4).shape == (0,)


def test_as_many_groups_as_can_be_are_mixed():
    bits = np.random.default_rng(0).random(64 * 16) < 0.1
    kept = mixed_groups(bits, 16, 8)
    drawn, found = bits.reshape(64, 16), bits[kept].reshape(64, 8)
    could = drawn.any(axis=1) & ~drawn.all(axis=1)
    assert ((found.any(axis=1) & ~found.all(axis=1)) == could).all()
    assert (kept.reshape(64, 8) // 16 == np.arange(64)[:, None]).all()
    assert (np.diff(kept) > 0).all()


def test_rewards_have_no_way_in():
    assert list(inspect.signature(mixed_groups).parameters) == ["bits", "drawn", "group"]
