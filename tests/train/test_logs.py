"""Files of a run: lines and rollouts behind the checkpoint go, what was cut off goes too."""

import json
import math

import pytest
from tensorboardX import SummaryWriter

from herald_jax.data.records import OracleRow, Passage
from herald_jax.train.logs import RunLog, read_metrics, write_json

PASSAGES = [Passage(passage_id="p1", text="x")]


def written(out, updates=3):
    log = RunLog(out, 0)
    log.write_pool(PASSAGES, [OracleRow("q", ["x"], ["p1"])])
    for update in range(1, updates + 1):
        log.write_rollouts(update, [{"trajectory_id": f"{update}/0"}, {"trajectory_id": "ä"}])
        log.write_metrics({"update": update, "loss": 0.5 * update, "gap": math.nan})
    log.close()


def updates(out):
    return [line["update"] for line in read_metrics(out)]


def files(out):
    return sorted(path.name for path in (out / "log").iterdir())


def test_a_line_an_update_and_a_file_of_rollouts_each(tmp_path):
    written(tmp_path)
    # What is not finite is null: JSON has no NaN.
    assert read_metrics(tmp_path)[1] == {"update": 2, "loss": 1.0, "gap": None}
    assert files(tmp_path) == [
        "corpus.jsonl",
        "oracle.jsonl",
        *(f"trajectories-0000000{n}.jsonl" for n in (1, 2, 3)),
    ]
    lines = (tmp_path / "log" / "trajectories-00000002.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["trajectory_id"] for line in lines] == ["2/0", "ä"]
    assert list((tmp_path / "tensorboard").iterdir())


def test_what_lies_behind_the_checkpoint_is_written_again(tmp_path):
    written(tmp_path)
    log = RunLog(tmp_path, 1)
    assert updates(tmp_path) == [1]
    assert files(tmp_path)[2:] == ["trajectories-00000001.jsonl"]
    log.write_metrics({"update": 2, "loss": 7.0})
    log.close()
    assert [line["loss"] for line in read_metrics(tmp_path)] == [0.5, 7.0]


def test_going_on_from_the_last_update_drops_nothing(tmp_path):
    written(tmp_path)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    RunLog(tmp_path, 3).close()
    assert (tmp_path / "metrics.jsonl").read_bytes() == before
    assert len(files(tmp_path)) == 5


@pytest.mark.parametrize("rest", ['{"update": 4, "lo', '{"update": 4}', "{"])
def test_a_last_line_that_was_cut_off_is_left_out(tmp_path, rest):
    written(tmp_path)
    with (tmp_path / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(rest)
    assert updates(tmp_path) == [1, 2, 3]
    log = RunLog(tmp_path, 3)
    log.write_metrics({"update": 4, "loss": 0.0})
    log.close()
    assert updates(tmp_path) == [1, 2, 3, 4]


def test_corpus_and_gold_labels_are_written_once(tmp_path):
    written(tmp_path)
    log = RunLog(tmp_path, 3)
    log.write_pool([*PASSAGES, Passage(passage_id="p2", text="y")], [])
    log.close()
    assert len((tmp_path / "log" / "corpus.jsonl").read_text().splitlines()) == 1


def test_tensorboard_begins_anew_with_what_is_kept(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(SummaryWriter, "add_scalar", lambda self, *point: shown.append(point))
    written(tmp_path, updates=2)
    # Not what is not finite, and not the number of the update itself.
    assert shown == [("loss", 0.5, 1), ("loss", 1.0, 2)]
    shown.clear()
    RunLog(tmp_path, 1).close()
    assert shown == [("loss", 0.5, 1)]


def test_there_are_no_metrics_of_no_run(tmp_path):
    assert read_metrics(tmp_path) == []


def test_a_file_is_whole_or_not_there(tmp_path):
    write_json(tmp_path / "a.json", {"x": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"x": math.inf})
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
