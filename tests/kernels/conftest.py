"""Kernels convert no dtype and stretch no rank without saying so."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def strict_promotion():
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield
