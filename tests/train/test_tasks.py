"""Questions of the built-in world and of pools of one's own."""

import json
import shutil

import pytest
from train_setups import small_setup

from herald_jax.train.config import Data
from herald_jax.train.tasks import TaskError, is_held_out, make_world, pool_tasks, world_tasks
from herald_jax.types import InputError
from herald_jax.world import write_sample


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    write_sample(folder, questions=40, rollouts=2)
    return folder


@pytest.fixture
def copy(pool, tmp_path):
    shutil.copytree(pool, tmp_path / "pool")
    return tmp_path / "pool"


def rows(folder, name):
    text = (folder / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def write(folder, name, records):
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def ids(tasks):
    return [task.question_id for task in tasks]


def test_the_world_has_questions_of_the_kinds_asked_for_in_two_splits():
    tasks = small_setup()[0].tasks
    assert {task.pool for task in (*tasks.train, *tasks.held_out)} == {"single"}
    assert not set(ids(tasks.train)) & set(ids(tasks.held_out))
    known = {row.question_id for row in tasks.oracle}
    assert set(ids(tasks.train)) | set(ids(tasks.held_out)) <= known
    names = [passage.passage_id for passage in tasks.passages]
    assert names == sorted(names)


def test_kinds_are_mixed_when_several_are_named():
    world = make_world(Data(questions=60, kinds=("single", "chain2")))
    assert {task.pool for task in world_tasks(world).train} == {"single", "chain2"}


def test_a_pool_is_split_by_the_hash_of_ids(pool):
    tasks = pool_tasks(pool, 0.3)
    everything = sorted({row["question_id"] for row in rows(pool, "trajectories")})
    assert sorted(ids(tasks.train) + ids(tasks.held_out)) == everything
    assert ids(tasks.held_out) == [name for name in everything if is_held_out(name, 0.3)]
    assert 0 < len(tasks.held_out) < len(tasks.train)
    assert ids(pool_tasks(pool, 0.0).train) == everything
    assert ids(pool_tasks(pool, 1.0).held_out) == everything
    # A larger share holds out all that a smaller one does.
    assert set(ids(tasks.held_out)) <= set(ids(pool_tasks(pool, 0.6).held_out))
    assert len(tasks.oracle) >= len(everything)
    text = {row["question_id"]: row["question"] for row in rows(pool, "trajectories")}
    assert all(task.question == text[task.question_id] for task in tasks.train)


def test_the_share_is_about_what_was_asked_for():
    held = sum(is_held_out(f"question {n}", 0.2) for n in range(2000))
    assert abs(held - 400) < 60


def test_the_split_depends_on_nothing_else(pool, copy):
    tasks = pool_tasks(pool, 0.3)
    logs = rows(copy, "trajectories")
    gone = tasks.train[0].question_id
    write(copy, "trajectories", [row for row in logs[::-1] if row["question_id"] != gone])
    found = pool_tasks(copy, 0.3)
    assert found.train == tasks.train[1:]
    assert found.held_out == tasks.held_out
    assert found.passages == tasks.passages


def test_questions_without_gold_labels_are_left_out_and_a_pool_of_them_is_refused(pool, copy):
    oracle = rows(copy, "oracle")
    known = {row["question_id"] for row in oracle[:9]}
    write(copy, "oracle", oracle[:9])
    found = pool_tasks(copy, 0.3)
    assert set(ids(found.train)) | set(ids(found.held_out)) == known
    write(copy, "oracle", [row | {"question_id": f"not {row['question_id']}"} for row in oracle])
    with pytest.raises(TaskError, match="logs of questions with gold labels, got none"):
        pool_tasks(copy, 0.3)
    (copy / "oracle.jsonl").unlink()
    with pytest.raises(InputError, match=r"missing_file: expected a file oracle"):
        pool_tasks(copy, 0.3)


def test_faults_of_all_three_files_are_raised_together(copy):
    logs, corpus, oracle = (rows(copy, name) for name in ("trajectories", "corpus", "oracle"))
    del logs[3]["question"]
    write(copy, "trajectories", logs)
    write(copy, "corpus", [*corpus, corpus[0]])
    oracle[2]["answers"] = 7
    write(copy, "oracle", oracle)
    with pytest.raises(InputError) as error:
        pool_tasks(copy, 0.3)
    said = str(error.value)
    assert "trajectories.jsonl:4: question: missing" in said
    assert f"corpus.jsonl:{len(corpus) + 1}: passage_id: duplicate_id" in said
    assert "oracle.jsonl:3: answers: wrong_type" in said


def test_two_texts_of_one_question_are_a_fault(copy):
    logs = rows(copy, "trajectories")
    logs[1]["question"] += " Really?"
    assert logs[1]["question_id"] == logs[0]["question_id"]
    write(copy, "trajectories", logs)
    with pytest.raises(InputError, match=r"trajectories.jsonl:2: question: question_disagrees"):
        pool_tasks(copy, 0.3)
