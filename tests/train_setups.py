"""Small training runs that tests share."""

from functools import cache

from herald_jax.train.config_load import parse_config
from herald_jax.train.setup import prepare

SMALL = {
    "data": {"questions": 60, "kinds": ["single"]},
    "policy": {"vocab": 400},
    "environment": {"turns": 3, "results": 1, "passage_tokens": 48},
    "rollouts": {"group": 4, "questions": 2, "turn_tokens": 12},
    "grpo": {"micro_rows": 4},
    "warm_start": {"steps": 4, "rows": 8, "tokens": 256},
    "evaluation": {"questions": 4, "samples": 1},
    "run": {"updates": 2, "checkpoint_every": 1, "keep": 5},
}


def small_config(**changes):
    """The small settings, tables changed key by key."""
    tables = {name: {**table, **changes.get(name, {})} for name, table in SMALL.items()}
    tables |= {name: table for name, table in changes.items() if name not in tables}
    return parse_config(tables, "test")


@cache
def small_setup():
    """The parts of such a run, and the policy's states."""
    return prepare(small_config())


def silent_say(line):
    del line


def silent_draw(stage, done, total, numbers):
    del stage, done, total, numbers
