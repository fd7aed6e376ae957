import math

import jax.numpy as jnp
import numpy as np
import pytest

from herald_jax.train.reward_values import RewardValueError, check_rewards


@pytest.mark.parametrize(
    "returned",
    [
        [1, 0.5, None],
        (True, 0.5, None),
        [np.float32(1), np.float64(0.5), math.nan],
        [jnp.float32(1), np.array(0.5), None],
        np.array([1, 0.5, math.nan], np.float32),
        np.array([1, 0.5, None], object),
        jnp.array([1, 0.5, math.nan], jnp.bfloat16),
    ],
)
def test_one_number_or_null_a_trajectory(returned):
    found = check_rewards("em", returned, 3)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [1, 0.5, math.nan])


def test_numbers_keep_their_digits():
    assert check_rewards("em", [0.1, 2**60], 2).tolist() == [0.1, 2.0**60]
    assert check_rewards("em", [], 0).shape == (0,)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([1.0], "1 of them"),
        ([1.0] * 4, "4 of them"),
        ([], "0 of them"),
        (1.0, "1.0"),
        (None, "None"),
        ("101", "'101'"),
        ({0: 1.0, 1: 0.0, 2: 1.0}, "{0: 1.0"),
        ((x for x in [1.0, 0.0, 1.0]), "generator"),
        ([[1.0], [0.0], [1.0]], "[1.0] at place 0"),
        ([[1.0, 0.0, 1.0]], "1 of them"),
        (np.ones((3, 1)), "shape (3, 1)"),
        (np.float32(1), "shape ()"),
        (jnp.ones(2), "2 of them"),
        ([1.0, "0", 1.0], "'0' at place 1"),
        ([1.0, 1j, 1.0], "1j at place 1"),
        ([1.0, 0.0, math.inf], "inf at place 2"),
        ([1.0, 0.0, 10**400], "at place 2"),
        ([np.ones(1), 0.0, 0.0], "array([1.]) at place 0"),
    ],
)
def test_anything_else_is_an_error_that_names_the_function(returned, said):
    with pytest.raises(RewardValueError) as error:
        check_rewards("citations", returned, 3)
    assert "`citations`" in str(error.value)
    assert "each of 3 trajectories" in str(error.value)
    assert said in str(error.value)


def test_all_wrong_values_are_counted():
    with pytest.raises(RewardValueError, match=r"place 4 and 3 more;"):
        check_rewards("em", ["x"] * 8, 8)
