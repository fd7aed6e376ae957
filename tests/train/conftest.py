"""Training compiles the same programs again and again: what one test compiled, others find."""

import os

import jax
import pytest


@pytest.fixture(autouse=True, scope="session")
def compiled_once(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("programs"))
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
    yield
    del os.environ["JAX_COMPILATION_CACHE_DIR"]
    jax.config.update("jax_compilation_cache_dir", None)
