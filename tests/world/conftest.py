import pytest

from herald_jax.world import World, build_world
from herald_jax.world.episodes import index_passages


@pytest.fixture(scope="session")
def world() -> World:
    return build_world(seed=3, questions=105, counties=12)


@pytest.fixture(scope="session")
def index(world):
    return index_passages(world.passages)
