"""Rollouts side by side: lengths say what is padding, places say what is trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from herald_jax.train.environment import Task
from herald_jax.train.model import Decoder
from herald_jax.train.model_config import ModelConfig
from herald_jax.train.rollout import Rollout
from herald_jax.train.sequences import padded_places, sequences_of, side_by_side
from herald_jax.train.spans import PLAIN, POLICY, PROMPT, TOOL, MisalignedError, Span
from herald_jax.train.update import causal, token_logps
from herald_jax.types import PAD

# Rows are filled with 0, and 0 is also how this policy ends a turn.
END = 0
TASK = Task("q", "?")


def rollout(row, *parts):
    """A rollout of (author, ids); log-probabilities -1, -2, ..."""
    run = Rollout(TASK, row)
    for author, ids in parts:
        first = len(run.tokens)
        run.tokens += ids
        run.spans.append(Span(author, PLAIN, first, len(run.tokens)))
        if author == POLICY:
            run.logps += [-1.0 - len(run.logps) - at for at in range(len(ids))]
    return run


SHORT = rollout(0, (PROMPT, [5, 6]), (POLICY, [7, END]))
LONG = rollout(
    1, (PROMPT, [5, END]), (POLICY, [END, 8, END]), (TOOL, [END] * 90), (POLICY, [9, END])
)


def test_an_end_token_that_is_the_filling_is_trained_all_the_same():
    found = sequences_of([SHORT, LONG])
    assert found.tokens.shape == (2, 128)
    assert found.length.tolist() == [4, 97]
    assert found.places[0, :3].tolist() == [2, 3, PAD]
    assert found.places[1, :6].tolist() == [2, 3, 4, 95, 96, PAD]
    assert found.logps[0, :3].tolist() == [-1, -2, 0]
    assert found.logps[1, :6].tolist() == [-1, -2, -3, -4, -5, 0]
    assert found.tokens[1, :97].tolist() == LONG.tokens
    assert not found.tokens[0, 4:].any()


def test_what_stands_behind_a_row_reaches_none_of_its_tokens():
    shape = ModelConfig(vocab=12, width=16, layers=1, heads=2, kv_heads=1, head_dim=8, hidden=16)
    policy = Decoder(shape, rngs=nnx.Rngs(0))
    found = sequences_of([SHORT])
    logps = jax.jit(lambda ids: token_logps(policy, ids, found.length, found.places, 1.0)[0])
    other = np.where(np.arange(64) < 4, found.tokens, 11).astype(np.int32)
    assert np.array_equal(logps(found.tokens)[:, :2], logps(other)[:, :2])
    # One token of the row itself does.
    other[0, 1] = 9
    assert not np.array_equal(logps(found.tokens)[:, :2], logps(other)[:, :2])
    seen = causal(jnp.array([4]), 6)[0]
    assert seen.tolist() == (np.tri(6, dtype=bool) & (np.arange(6) < 4)[:, None]).tolist()


def test_long_tool_text_widens_a_row_and_not_what_is_trained():
    run = rollout(0, (PROMPT, [1]), (POLICY, [2]), (TOOL, [3] * 5000), (POLICY, [4, END]))
    found = sequences_of([run, SHORT])
    assert found.tokens.shape == (2, 8192)
    assert found.places.shape == (2, 32)
    assert found.places[0, :4].tolist() == [1, 5002, 5003, PAD]


def test_a_width_that_is_given_holds_or_is_refused():
    assert sequences_of([SHORT], 4).tokens.shape == (1, 4)
    with pytest.raises(ValueError, match="at most 3 tokens, got one of 4"):
        sequences_of([SHORT], 3)


def test_a_rollout_that_does_not_line_up_is_refused_by_its_number():
    odd = rollout(3, (PROMPT, [1, 2]), (POLICY, [3, 4]))
    odd.logps.pop()
    with pytest.raises(MisalignedError, match="rollout 3: expected one log-probability"):
        sequences_of([SHORT, odd])
    odd = rollout(4, (PROMPT, [1, 2]), (POLICY, [3, 4]))
    odd.tokens.append(5)
    with pytest.raises(MisalignedError, match="rollout 4: token 4: expected one author, got 0"):
        sequences_of([SHORT, odd])


def test_the_first_token_of_a_row_is_never_trained():
    found = padded_places([np.array([0, 1, 5]), np.array([], np.int64)])
    assert found.shape == (2, 32)
    assert found[0, :3].tolist() == [1, 5, PAD]
    assert (found[1] == PAD).all()
    # Its log-probability is left out with it, and the others keep their tokens.
    whole = sequences_of([rollout(0, (POLICY, [7, 8, END]))])
    assert whole.places[0, :3].tolist() == [1, 2, PAD]
    assert whole.logps[0, :3].tolist() == [-2, -3, 0]


def test_no_rows_have_shapes_too():
    found = sequences_of([])
    assert found.tokens.shape == (0, 64) and found.places.shape == (0, 32)
    assert side_by_side([[1], []], 2).tolist() == [[1, 0], [0, 0]]
