"""Question sets of TensorFlow Datasets, prepared on the disk without a network."""

import json
import struct
import sys
from pathlib import Path

import pytest

from herald_jax.data.imports.tfds import ImportedQuestions, import_questions
from herald_jax.data.imports.tfrecord import read_records
from herald_jax.types import HeraldError, InputError

tfds = pytest.importorskip("tensorflow_datasets")

FORMS = ("array_record", "tfrecord")
TRIVIA, NATURAL = "trivia_qa/rc.nocontext", "natural_questions_open"


def trivia(question_id, question, value, aliases=()):
    """An example with all features of the set; pages and results are empty in this one."""
    pages = {name: [] for name in ("doc_source", "filename", "title", "wiki_context")}
    results = ("description", "filename", "rank", "title", "url", "search_context")
    answer = {
        "aliases": list(aliases),
        "normalized_aliases": [name.lower() for name in aliases],
        "matched_wiki_entity_name": "",
        "normalized_matched_wiki_entity_name": "",
        "normalized_value": value.lower(),
        "type": "WikipediaEntity",
        "value": value,
    }
    return {
        "question": question,
        "question_id": question_id,
        "question_source": "http://example.org/",
        "entity_pages": pages,
        "search_results": {name: [] for name in results},
        "answer": answer,
    }


def prepare(data_dir: Path, name: str, splits: dict[str, list[dict]], form: str) -> Path:
    """Write a set as its own builder describes it; where it lies."""
    builder = tfds.builder(name, data_dir=str(data_dir), file_format=form)
    place = Path(builder.data_dir)
    place.mkdir(parents=True)
    if form == "array_record":
        writer = tfds.core.SequentialWriter(builder.info, 2, file_format=form)
        writer.initialize_splits(list(splits))
        writer.add_examples(splits)
        writer.close_all()
        return place
    infos = []
    for split, examples in splits.items():
        template = builder._get_filename_template(split)
        records = [
            builder.info.features.serialize_example(builder.info.features.encode_example(example))
            for example in examples
        ]
        path = Path(template.sharded_filepath(shard_index=0, num_shards=1))
        path.write_bytes(b"".join(map(framed, records)))
        infos.append(
            tfds.core.SplitInfo(
                name=split,
                shard_lengths=[len(records)],
                num_bytes=sum(map(len, records)),
                filename_template=template,
            )
        )
    builder.info.set_splits(tfds.core.splits.SplitDict(infos))
    builder.info.write_to_directory(place)
    return place


def framed(record: bytes) -> bytes:
    return struct.pack("<QI", len(record), 1) + record + struct.pack("<I", 2)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def oracle_row(question_id, answers):
    return {"question_id": question_id, "answers": answers, "support_ids": [], "nodes": []}


@pytest.mark.parametrize("form", FORMS)
def test_trivia_qa(form, tmp_path):
    examples = [
        trivia("tc_2", "Who founded Arden?", "Ada É", ["Ada É", "A. É", "ada"]),
        trivia("tc_10", "Where is Brill?", "North"),
        trivia("tc_2", "Who founded Arden?", "Ada É", ["Lady Ada"]),  # of another source
    ]
    prepare(tmp_path, TRIVIA, {"train": examples[:1], "validation": examples}, form)
    out = tmp_path / "out"
    done = import_questions(TRIVIA, out, data_dir=tmp_path)
    assert done == ImportedQuestions(questions=2, repeated=1)
    assert lines(out / "oracle.jsonl") == [
        oracle_row("tc_10", ["North"]),
        oracle_row("tc_2", ["Ada É", "A. É", "ada", "Lady Ada"]),
    ]
    assert lines(out / "questions.jsonl") == [
        {"question_id": "tc_10", "question": "Where is Brill?"},
        {"question_id": "tc_2", "question": "Who founded Arden?"},
    ]
    assert "tensorflow" not in sys.modules


@pytest.mark.parametrize("form", FORMS)
def test_natural_questions_open(form, tmp_path):
    examples = [{"question": f"who is {name}", "answer": [name, name.upper()]} for name in "abcde"]
    prepare(tmp_path, NATURAL, {"train": examples, "validation": examples[::-1]}, form)
    told = []
    found = {}
    for split in ("train", "validation", "train[1:3]"):
        done = import_questions(
            NATURAL,
            tmp_path / "out",
            split=split,
            data_dir=tmp_path,
            progress=lambda *stage: told.append(stage),
        )
        found[split] = [
            (tmp_path / "out" / name).read_bytes() for name in ("oracle.jsonl", "questions.jsonl")
        ]
    # Ids are of the texts: another order of the same questions changes nothing.
    assert found["train"] == found["validation"]
    texts = lines(tmp_path / "out" / "questions.jsonl")
    assert {row["question"] for row in texts} == {"who is b", "who is c"}
    golds = {row["question_id"]: row["answers"] for row in lines(tmp_path / "out/oracle.jsonl")}
    assert [golds[row["question_id"]] for row in texts] == [
        [row["question"][-1], row["question"][-1].upper()] for row in texts
    ]
    assert done.questions == 2
    assert told == [("read questions", 5, 5)] * 2 + [("read questions", 2, 2)]


def refusal(tmp_path, *arguments, **options) -> str:
    with pytest.raises(HeraldError) as caught:
        import_questions(*arguments, tmp_path / "out", data_dir=tmp_path / "sets", **options)
    assert not (tmp_path / "out").exists()
    return str(caught.value)


def test_what_is_refused(tmp_path):
    unlabelled = trivia("tc_1", "Who?", "<unk>")
    disagreeing = [trivia("tc_1", "Who?", "Ada"), trivia("tc_1", "Where?", "Ada")]
    splits = {"test": [unlabelled], "validation": disagreeing}
    prepare(tmp_path / "sets", TRIVIA, splits, "array_record")
    assert "expected one of trivia_qa, natural_questions_open, got squad" in refusal(
        tmp_path, "squad"
    )
    assert "has no split train; it has test, validation" in refusal(tmp_path, TRIVIA, split="train")
    message = refusal(tmp_path, TRIVIA, split="test")
    assert "got none in 1, as in a test split; use the train or validation split" in message
    message = refusal(tmp_path, TRIVIA)
    assert "trivia_qa/rc.nocontext/1.1.0 validation:2: question: question_disagrees" in message


def test_without_data_and_network_it_is_said_what_to_do(tmp_path, monkeypatch):
    def offline(*arguments, **options):
        raise ConnectionError("no route to host\nmore")

    monkeypatch.setattr(tfds.core.GeneratorBasedBuilder, "download_and_prepare", offline)
    message = refusal(tmp_path, NATURAL)
    assert f"natural_questions_open: not prepared in {tmp_path}" in message
    assert "could not be downloaded (no route to host); name the folder with --data-dir" in message
    message = refusal(tmp_path, "trivia_qa/no_such_config")
    assert "trivia_qa/no_such_config: not prepared" in message


def test_without_the_extra_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    assert "pip install 'herald-jax[tfds]'" in refusal(tmp_path, NATURAL)


def test_a_file_of_records_that_was_cut_is_named(tmp_path):
    path = tmp_path / "records"
    records = [b"first", b"", b"third"]
    whole = b"".join(map(framed, records))
    path.write_bytes(whole)
    for skip in range(4):
        for take in range(4 - skip):
            assert list(read_records(path, skip, take)) == records[skip : skip + take]
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(HeraldError, match=r"records: ends within record \d of 3"):
            list(read_records(path, 0, 3))


def test_a_set_that_was_cut_is_refused(tmp_path):
    examples = [{"question": "who", "answer": ["a"]}]
    place = prepare(tmp_path / "sets", NATURAL, {"validation": examples}, "tfrecord")
    (path,) = place.glob("*.tfrecord-*")
    path.write_bytes(path.read_bytes()[:-5])
    assert "ends within record 1 of 1" in refusal(tmp_path, NATURAL)


def test_other_kinds_of_files_are_refused(tmp_path, monkeypatch):
    place = prepare(
        tmp_path / "sets", NATURAL, {"validation": [{"question": "q", "answer": ["a"]}]}, "tfrecord"
    )
    info = place / "dataset_info.json"
    info.write_text(info.read_text().replace('"tfrecord"', '"riegeli"'))
    assert "as riegeli; prepare it as array_record" in refusal(tmp_path, NATURAL)


def test_faults_are_input_errors(tmp_path):
    prepare(tmp_path, TRIVIA, {"test": [trivia("tc_1", "Who?", "<unk>")]}, "array_record")
    with pytest.raises(InputError) as caught:
        import_questions(TRIVIA, tmp_path / "out", split="test", data_dir=tmp_path)
    assert [fault.code for fault in caught.value.faults] == ["no_answers"]
