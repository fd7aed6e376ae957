"""The built-in world: an invented corpus, multi-hop questions over it, and agents that search it.

`docs/world.md` describes what is in it, how it is checked and which random streams it draws from.
"""

from herald_jax.world.build import KIND_WEIGHTS, MAX_QUESTIONS, World, build_world
from herald_jax.world.episodes import Searcher, rollouts
from herald_jax.world.habits import HABITS, Habit
from herald_jax.world.names import WorldError
from herald_jax.world.oracle_agent import oracle_traces
from herald_jax.world.questions import Question
from herald_jax.world.sample import write_sample
from herald_jax.world.splits import SHARES
from herald_jax.world.terms import KINDS, Hop

__all__ = [
    "HABITS",
    "KINDS",
    "KIND_WEIGHTS",
    "MAX_QUESTIONS",
    "SHARES",
    "Habit",
    "Hop",
    "Question",
    "Searcher",
    "World",
    "WorldError",
    "build_world",
    "oracle_traces",
    "rollouts",
    "write_sample",
]
