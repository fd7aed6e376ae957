"""`herald import`: from benchmark files to an audit, and what a user sees on the way."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herald_jax.cli.import_ import Benchmark
from herald_jax.data.imports.benchmark import FORMATS

Herald = Callable[..., Any]

PLACES = ["Arden", "Brill", "Corfe", "Dunmow"]


def questions() -> list[dict[str, Any]]:
    """Two hops each: the keeper of a lamp, and where that keeper was born."""
    made = []
    for at, place in enumerate(PLACES):
        context = [
            [f"Lamp {at}", [f"Lamp {at} is kept by Keeper {at}."]],
            [f"Keeper {at}", [f"Keeper {at} was born in {place}."]],
            ["Lamps", ["A lamp has a keeper born somewhere."]],
        ]
        made.append(
            {
                "_id": f"q{at}",
                "question": f"Where was the keeper of Lamp {at} born?",
                "answer": place,
                "supporting_facts": [[f"Lamp {at}", 0], [f"Keeper {at}", 0]],
                "context": context,
            }
        )
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dev.json").write_text(json.dumps(questions()), encoding="utf-8")
    return tmp_path


def test_an_import_can_be_audited(folder: Path, herald: Herald) -> None:
    done = herald("import", "hotpotqa", "dev.json", "pool", folder=folder)
    assert done.code == 0, done.err
    assert done.out == ""
    assert "read dev.json (MB): 1" in done.err
    assert "wrote pool: 9 passages, 4 questions" in done.err
    logs = [
        {
            "trajectory_id": f"t{at}",
            "question_id": f"q{at}",
            "question": question["question"],
            "steps": [{"query": f"Lamp {at}", "retrieved": [f"Lamp {at}", f"Keeper {at}"]}],
            "answer": question["answer"],
            "citations": [f"Keeper {at}"],
        }
        for at, question in enumerate(questions())
    ]
    text = "".join(json.dumps(row) + "\n" for row in logs)
    (folder / "pool" / "trajectories.jsonl").write_text(text, encoding="utf-8")
    done = herald("audit", "pool", "--quiet", folder=folder)
    assert done.code == 0, done.err
    report = json.loads((folder / "herald-report" / "report.json").read_bytes())
    assert (report["rows"], report["questions"], report["set_aside"]) == (4, 4, {})
    # F1 1 and, of two support ids, one cited: grounding 0.55 * 1 + 0.45 * 1/2 = 0.775.
    # 1.15 + 1.05 * 0.775 + 0.3 for the format - 0.04 for a search - 0.004 for a word
    reward = 1.15 + 1.05 * 0.775 + 0.3 - 0.04 - 0.004
    assert report["mean_reward"]["R0"] == pytest.approx(reward, abs=1e-5)
    assert report["operators"]["citation_laundering"]["status"]["isolated"] == 4


def test_what_is_left_out_or_odd_is_said(folder: Path, herald: Herald) -> None:
    odd = questions()
    odd[0]["supporting_facts"] = [["Lamp 0", 5], ["Elsewhere", 0]]
    odd[1]["supporting_facts"] = [["Inn", 0]]
    odd[1]["context"] += [["Inn", ["One."]], ["Inn", ["Two."]]]
    (folder / "odd.json").write_text(json.dumps(odd), encoding="utf-8")
    done = herald("import", "2wiki", "odd.json", "pool", "-q", folder=folder)
    assert done.code == 0
    assert done.err.splitlines() == [
        "herald: wrote pool: 11 passages, 3 questions",
        "herald: left out, support_ambiguous: 1 question",
        "herald: noted, fact_past_last_sentence: 1",
        "herald: noted, support_outside_corpus: 1",
        "herald: next: put trajectories.jsonl beside them, then herald audit pool",
    ]


def test_several_files_share_one_corpus(folder: Path, herald: Herald) -> None:
    for name, rows in (("a.json", questions()[:2]), ("b.json", questions()[2:])):
        (folder / name).write_text(json.dumps(rows), encoding="utf-8")
    assert herald("import", "hotpotqa", "b.json", "a.json", "two", folder=folder).code == 0
    assert herald("import", "hotpotqa", "dev.json", "one", folder=folder).code == 0
    for name in ("corpus.jsonl", "oracle.jsonl"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()


def test_faults_are_listed_and_nothing_is_written(folder: Path, herald: Herald) -> None:
    bad = [{**question, "context": 3} for question in questions()[:2]]
    (folder / "bad.json").write_text(json.dumps(bad), encoding="utf-8")
    done = herald("import", "hotpotqa", "bad.json", "pool", "--quiet", folder=folder)
    assert (done.code, done.out) == (2, "")
    assert "bad.json:1: context: wrong_type" in done.err
    assert "bad.json:2: context: wrong_type" in done.err
    assert not (folder / "pool").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["squad", "dev.json", "pool"], "'2wiki'"),
        (["hotpotqa", "dev.json"], "Missing argument"),
        (["hotpotqa", "dev.json", "dev.json"], "is a file"),
        (["musique", "dev.json", "pool", "--aliases", "dev.json"], "--aliases is for 2wiki"),
        (["hotpotqa", "none.json", "pool"], "check the path"),
        (["hotpotqa", "dev.json", "pool", "--split", "train"], "--split is for tfds"),
        (["musique", "dev.json", "pool", "--data-dir", "."], "--data-dir is for tfds"),
        (["tfds", "trivia_qa", "natural_questions_open", "pool"], "name one data set, not 2"),
        (["tfds", "squad", "pool"], "expected one of trivia_qa, natural_questions_open, got squad"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_why(
    arguments: list[str], message: str, folder: Path, herald: Herald
) -> None:
    done = herald("import", *arguments, folder=folder)
    assert done.code == 2
    assert message in done.err
    assert [path.name for path in folder.iterdir()] == ["dev.json"]


def test_help_names_every_format(herald: Herald, tmp_path: Path) -> None:
    done = herald("import", "--help", folder=tmp_path)
    assert done.code == 0
    assert {f"  herald import {name} " in done.out for name in Benchmark} == {True}
    assert list(Benchmark) == [*FORMATS, "tfds"]


def test_a_question_set_becomes_an_oracle(folder: Path, herald: Herald) -> None:
    tfds = pytest.importorskip("tensorflow_datasets")
    builder = tfds.builder(
        "natural_questions_open", data_dir=str(folder / "sets"), file_format="array_record"
    )
    Path(builder.data_dir).mkdir(parents=True)
    writer = tfds.core.SequentialWriter(builder.info, 10, file_format="array_record")
    writer.initialize_splits(["train"])
    asked = ["who keeps lamp 1", "who keeps lamp 2", "who keeps lamp 1"]
    writer.add_examples({"train": [{"question": q, "answer": ["Keeper", "K."]} for q in asked]})
    writer.close_all()
    arguments = ("tfds", "natural_questions_open", "nq", "--data-dir", "sets")
    done = herald("import", *arguments, "--split", "train", folder=folder)
    assert done.code == 0, done.err
    assert done.out == ""
    assert "read questions: 3" in done.err
    assert "wrote nq: 2 questions, without support" in done.err
    assert "noted, repeated: 1" in done.err
    oracle = (folder / "nq" / "oracle.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["answers"] for line in oracle] == [["Keeper", "K."]] * 2
    done = herald("import", *arguments, folder=folder)
    assert done.code == 2
    assert "natural_questions_open/1.0.0: has no split validation; it has train" in done.err
