"""Turns: the tokens that come out, their probabilities, rows that know nothing of each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from train_setups import small_setup

from herald_jax.train.rollout import Sampling
from herald_jax.train.sampler import kept_logits
from herald_jax.train.sequences import sequences_of
from herald_jax.train.setup import sampler_of
from herald_jax.train.spans import POLICY, PROMPT, QUERY, TOOL, author_mask
from herald_jax.train.update import token_logps


@pytest.fixture(scope="module")
def parts():
    setup, states = small_setup()
    return setup, states, sampler_of(setup)


SAMPLED = Sampling(turns=3, turn_tokens=12)


@pytest.fixture(scope="module")
def runs(parts):
    setup, states, sampler = parts
    tasks = [task for task in setup.tasks.train[:3] for _ in range(4)]
    return sampler.run(states, tasks, SAMPLED, seed=3, update=5)


def test_rollouts_line_up(runs):
    for run in runs:
        assert run.stop in ("answer", "turns", "length")
        own = author_mask(run.spans, POLICY, len(run.tokens))
        assert own.sum() == len(run.logps) > 0
        authors = [author_mask(run.spans, a, len(run.tokens)) for a in (PROMPT, POLICY, TOOL)]
        assert np.array_equal(np.sum(authors, axis=0), np.ones(len(run.tokens)))
        assert run.tokens[: int(authors[0].sum())] == run.tokens[: run.spans[0].last]


def test_what_was_sampled_has_the_trainers_probabilities(parts, runs):
    setup, states, _ = parts
    rows = sequences_of(runs)
    policy = nnx.merge(setup.graph, *states)
    logps, _ = token_logps(policy, rows.tokens, rows.length, rows.places, 1.0)
    mask = np.asarray(rows.places) >= 0
    assert np.allclose(np.asarray(logps)[mask], np.asarray(rows.logps)[mask], atol=2e-5)


def test_a_row_does_not_depend_on_its_batch(parts, runs):
    _, states, sampler = parts
    chosen = [1, 6, 11]
    for at in chosen:
        (alone,) = sampler.run(states, [runs[at].task], SAMPLED, seed=3, update=5, first_row=at)
        assert alone.tokens == runs[at].tokens
        assert alone.stop == runs[at].stop


def test_seed_update_and_row_change_what_is_drawn(parts, runs):
    _, states, sampler = parts
    task = runs[0].task
    same = sampler.run(states, [task], SAMPLED, seed=3, update=5)[0].tokens
    assert same == runs[0].tokens
    for other in ({"seed": 4, "update": 5}, {"seed": 3, "update": 6}):
        assert sampler.run(states, [task], SAMPLED, **other)[0].tokens != same
    assert sampler.run(states, [task], SAMPLED, seed=3, update=5, first_row=9)[0].tokens != same


def test_greedy_takes_the_likeliest_token(parts):
    setup, states, sampler = parts
    sampling = Sampling(turns=1, turn_tokens=6, greedy=True)
    (run,) = sampler.run(states, [setup.tasks.train[0]], sampling, seed=0, update=0)
    policy = nnx.merge(setup.graph, *states)
    tokens = jnp.asarray([run.tokens], jnp.int32)
    width = tokens.shape[1]
    positions = jnp.arange(width, dtype=jnp.int32)[None]
    hidden, _ = policy.hidden(tokens, positions, jnp.tril(jnp.ones((1, width, width), bool)))
    best = np.asarray(jnp.argmax(policy.logits(hidden), axis=-1))[0]
    first = run.spans[0].last
    assert run.tokens[first:] == best[first - 1 : -1].tolist()


def test_a_turn_without_end_is_truncated(parts):
    setup, states, sampler = parts
    (run,) = sampler.run(
        states, [setup.tasks.train[0]], Sampling(turns=3, turn_tokens=1), seed=0, update=0
    )
    assert run.stop == "length" and run.truncated
    assert len(run.logps) == 1


def test_queries_are_found_in_tokens(parts):
    setup, _, sampler = parts
    from herald_jax.train.chat import search_turn
    from herald_jax.train.rollout import Rollout

    run = Rollout(setup.tasks.train[0], 0)
    ids = setup.tokeniser.encode("so " + search_turn("River Duffa, the second"))
    tokens = np.array([*ids, setup.tokeniser.end], np.int32)
    turn = sampler._write(run, tokens, np.zeros(len(tokens), np.float32), True)
    assert turn.query == "River Duffa, the second"
    (span,) = [span for span in run.spans if span.kind == QUERY]
    assert setup.tokeniser.decode(run.tokens[span.first : span.last]) == "River Duffa, the second"
    assert run.searches[0].query == (span.first, span.last)
    assert run.searches[0].call == (0, len(tokens))


def test_top_p_keeps_the_smallest_set():
    logits = jnp.log(jnp.array([[0.5, 0.3, 0.15, 0.05]]))
    assert np.isfinite(kept_logits(logits, 1.0)).all()
    assert np.isfinite(kept_logits(logits, 0.79))[0].tolist() == [True, True, False, False]
    assert np.isfinite(kept_logits(logits, 0.81))[0].tolist() == [True, True, True, False]
    assert np.isfinite(kept_logits(logits, 0.01))[0].tolist() == [True, False, False, False]


def test_a_record_is_one_of_the_log_format(runs):
    for run in runs:
        record = run.record("t", "policy", run.row)
        assert record.logged
        assert record.generated_tokens == len(run.logps)
        assert len(record.steps) == len(run.steps)
        assert (record.answer is None) == (run.final is None)


def test_programs_do_not_grow_with_the_rollouts(parts):
    setup, states, sampler = parts
    from herald_jax.train.sampler import take_turn

    tasks = [setup.tasks.train[0]] * 4
    sampler.run(states, tasks, SAMPLED, seed=0, update=0)
    before = take_turn._cache_size()
    for update in range(1, 4):
        sampler.run(states, tasks, SAMPLED, seed=0, update=update)
    assert take_turn._cache_size() - before <= 2
    assert jax.device_count() >= 1
