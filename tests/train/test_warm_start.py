"""Imitation: what traces are, in which order they come, and that it learns."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from train_setups import silent_draw, small_config, small_setup

from herald_jax.data.records import Step, Trajectory
from herald_jax.train.chat import (
    END,
    answer_turn,
    prompt,
    search_turn,
    shown,
    tool_message,
)
from herald_jax.train.run import traces_of
from herald_jax.train.tasks import TaskError
from herald_jax.train.warm_start import Traces, batches, make_traces, usable, warm_start
from herald_jax.types import InputError

TURNS, TOKENS = 3, 256


def record(answer="Ilsen", steps=1, citations=("p1",), valid=True, name="t"):
    searches = [Step(query=f"river {n}", retrieved=["p1"], valid=valid) for n in range(steps)]
    return Trajectory(name, "q", "Which river?", searches, answer, list(citations))


@pytest.mark.parametrize(
    ("trace", "shown"),
    [
        (record(), True),
        (record(steps=0), True),
        (record(steps=2), True),
        (record(steps=3), False),  # the answer would be the fourth action
        (record(answer=None), False),
        (record(answer="  "), False),
        (record(valid=False), False),
        (record(citations=()), True),
    ],
)
def test_what_can_be_shown(trace, shown):
    assert usable(trace, TURNS) == shown


@pytest.fixture(scope="module")
def parts():
    setup, _ = small_setup()
    return setup.tokeniser, setup.environment


def test_a_trace_is_the_conversation_that_the_policy_will_have(parts):
    tokeniser, environment = parts
    trace = record(steps=2, citations=("p1", "p7"))
    made = make_traces([trace], tokeniser, environment, TURNS, 10_000)
    replies = environment.search_all(["river 0", "river 1"])
    end = [tokeniser.end]
    turns = [
        *(tokeniser.encode(search_turn(f"river {n}")) + end for n in range(2)),
        tokeniser.encode(answer_turn("Ilsen", ["p1", "p7"])) + end,
    ]
    start = tokeniser.encode(prompt("Which river?"))
    right = [*start, *turns[0], *replies[0].tokens, *turns[1], *replies[1].tokens, *turns[2]]
    assert made.tokens == [right]
    # What is imitated is what the agent wrote, and nothing of prompt and tool.
    own = [right[at] for at in made.places[0]]
    assert own == [token for turn in turns for token in turn]


def test_a_trace_shows_this_environments_results_and_not_what_its_file_says(parts):
    tokeniser, environment = parts
    told = [
        record(name=name, citations=()) for name in ("one", "other")
    ]  # one query, other results in the file
    told[1].steps[0].retrieved = ["p999"]
    made = make_traces(told, tokeniser, environment, TURNS, 10_000)
    assert made.tokens[0] == made.tokens[1]


def test_a_trace_holds_no_gold_label_beyond_what_the_agent_wrote(parts):
    """Everything that is not the agent's is the question or passages that were found."""
    tokeniser, _ = parts
    setup, _ = small_setup()
    traces = traces_of(setup)
    passages = {passage.passage_id: shown(passage) for passage in setup.tasks.passages}
    questions = {task.question + END for task in setup.tasks.train}
    frame = {"", *prompt("").split("\n"), *tool_message("").split("\n")}
    assert len(traces) > 50
    for ids, places in zip(traces.tokens[::9], traces.places[::9], strict=True):
        rest = np.delete(np.array(ids), places)
        for line in tokeniser.decode(rest.tolist()).splitlines():
            if line.startswith("["):
                name = line[1 : line.index("]")]
                assert passages[name].startswith(line.removesuffix(" …"))
            else:
                assert line in questions or line in frame
    # Other gold labels, the same traces: they are no input.
    blank = tuple(replace_gold(row) for row in setup.tasks.oracle)
    again = traces_of(replace(setup, tasks=replace(setup.tasks, oracle=blank)))
    assert again.tokens == traces.tokens


def replace_gold(row):
    return type(row)(row.question_id, ["nothing"], [])


def test_long_traces_are_left_out(parts):
    tokeniser, environment = parts
    traces = [record(name="short", steps=0), record(name="long", steps=2)]
    whole = make_traces(traces, tokeniser, environment, TURNS, 10_000)
    lengths = [len(ids) for ids in whole.tokens]
    assert lengths[0] < lengths[1]
    assert make_traces(traces, tokeniser, environment, TURNS, lengths[0]).tokens == whole.tokens[:1]
    assert len(make_traces(traces, tokeniser, environment, TURNS, lengths[1])) == 2


LENGTHS = np.random.default_rng(0).integers(20, 300, 1003)


@pytest.mark.parametrize("rows", [1, 7, 32])
def test_an_epoch_has_every_row_at_most_once(rows):
    found = batches(LENGTHS, rows, 0, 0)
    assert {len(batch) for batch in found} == {rows}
    everything = np.concatenate(found)
    assert len(np.unique(everything)) == len(everything)
    # What is left over is less than a batch.
    assert len(LENGTHS) - len(everything) < rows


def test_batches_depend_on_seed_and_epoch_alone():
    first = batches(LENGTHS, 32, 0, 0)
    assert all(map(np.array_equal, first, batches(LENGTHS, 32, 0, 0)))
    for other in (batches(LENGTHS, 32, 1, 0), batches(LENGTHS, 32, 0, 1)):
        assert not all(map(np.array_equal, first, other))


def test_rows_of_like_length_are_together():
    found = batches(LENGTHS, 32, 0, 0)
    spread = np.mean([np.ptp(LENGTHS[batch]) for batch in found])
    assert spread < 0.3 * np.ptp(LENGTHS)
    # And batches of like length are not side by side.
    widest = np.array([LENGTHS[batch].max() for batch in found])
    assert abs(np.corrcoef(widest[1:], widest[:-1])[0, 1]) < 0.7


def test_too_few_rows_are_no_epoch():
    assert batches(LENGTHS[:3], 4, 0, 0) == []


def test_imitation_lowers_the_loss():
    setup, states = small_setup()
    config = small_config(warm_start={"steps": 20, "rows": 4, "learning_rate": 0.02})
    setup = replace(setup, config=config)
    # Traces of one shape: one program.
    traces = traces_of(setup)
    alike = [
        at
        for at, ids in enumerate(traces.tokens)
        if 64 < len(ids) <= 128 and len(traces.places[at]) <= 32
    ][:16]
    traces = Traces([traces.tokens[at] for at in alike], [traces.places[at] for at in alike])
    told = []
    own = jax.tree.map(lambda leaf: leaf.copy(), states)
    trained, _ = warm_start(setup, own, traces, lambda *args: told.append(args))
    assert [(stage, done, total) for stage, done, total, _ in told] == [
        ("warm start", 10, 20),
        ("warm start", 20, 20),
    ]
    first, last = (numbers["loss"] for *_, numbers in told)
    assert last < 0.8 * first
    moved = [
        not np.array_equal(one, other)
        for one, other in zip(*map(jax.tree.leaves, (trained, states[0])), strict=True)
    ]
    assert all(moved)


def test_too_few_traces_are_refused():
    setup, states = small_setup()
    traces = Traces([[1, 2]] * 7, [np.array([1])] * 7)
    with pytest.raises(TaskError, match=r"warm_start.rows = 8 traces .* got 7"):
        warm_start(setup, states, traces, silent_draw)


def test_a_file_of_trajectories_takes_the_place_of_the_agents(tmp_path):
    setup, _ = small_setup()
    path = tmp_path / "traces.jsonl"
    lines = [
        {"trajectory_id": f"t{n}", "question_id": "q", "question": "Which river?"}
        | {"steps": [{"query": "river"}], "answer": answer, "citations": ["p1"]}
        for n, answer in enumerate(["Ilsen", None, "Nar"])
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = small_config(warm_start={"traces": str(path)})
    assert len(traces_of(replace(setup, config=config))) == 2
    path.write_text('{"trajectory_id": 1}\n')
    with pytest.raises(InputError, match=r"traces.jsonl:1: question_id: missing"):
        traces_of(replace(setup, config=config))


def test_a_pool_of_ones_own_needs_traces_or_no_warm_start():
    setup, _ = small_setup()
    with pytest.raises(TaskError, match=r"warm_start.traces: .* or set warm_start.steps = 0"):
        traces_of(replace(setup, world=None))
