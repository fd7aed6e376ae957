"""What no shape fits is refused with the place to look at."""

from pathlib import Path

import pytest

from herald_jax.audit import run, staging
from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.pool.load import load_pool
from herald_jax.types import InputError


def test_too_many_rollouts_name_the_question_and_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "MAX_ROLLOUTS", 2)
    first, second = (tmp_path / name for name in ("a.jsonl", "b.jsonl"))
    corpus, oracle = tmp_path / "corpus.jsonl", tmp_path / "oracle.jsonl"
    rows = [Trajectory(f"t{n}", "q7", "?", [], "x", ["p"], rollout=n) for n in range(3)]
    write_jsonl(first, rows[:1])
    write_jsonl(second, rows[1:])
    write_jsonl(corpus, [Passage("p", "t")])
    write_jsonl(oracle, [OracleRow("q7", ["x"], ["p"])])
    with pytest.raises(InputError) as caught:
        run(load_pool([first, second], [corpus], [oracle]))
    [fault] = caught.value.faults
    assert fault.file == f"{first}, {second}"
    assert (fault.expected, fault.got) == (
        "at most 2 rollouts of one question",
        "3 of question 'q7'",
    )
