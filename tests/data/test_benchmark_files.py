"""Benchmark files become a corpus and an oracle, or are refused with every fault."""

import itertools
import json
import random
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.data.imports import source
from herald_jax.data.imports.benchmark import FORMATS, Imported, import_benchmark
from herald_jax.data.imports.hotpotqa import joined
from herald_jax.data.imports.passages import Passages, passage_ids
from herald_jax.data.imports.source import read_objects
from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory
from herald_jax.data.tables import read_table
from herald_jax.data.validate import validate_files
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool
from herald_jax.types import Fault, HeraldError, InputError

Object = dict[str, Any]

LAMP = ["Lamp Island", ["Lamp Island lies off Torrin.", " Its keeper is Ada Moor."]]
ADA = ["Ada Moor", ["Ada Moor was born in Vell.", " She keeps a lamp."]]
BELL = ["Bell Island", ["Bell Island has no lamp."]]
HOTPOT: list[Object] = [
    {
        "_id": "h1",
        "question": "Where was the keeper of Lamp Island born?",
        "answer": "Vell",
        "supporting_facts": [["Lamp Island", 1], ["Ada Moor", 0], ["Lamp Island", 0]],
        "context": [BELL, ADA, LAMP],
        "type": "bridge",
        "level": "easy",
    },
    {
        "_id": "h2",
        "question": "Which island has no lamp?",
        "answer": "Bell Island",
        "supporting_facts": [["Bell Island", 0]],
        "context": [BELL, LAMP],
        "type": "comparison",
        "level": "hard",
    },
]
MUSIQUE: list[Object] = [
    {
        "id": "3hop__1_2_3",
        "paragraphs": [
            {"idx": 0, "title": "Vell", "paragraph_text": "Vell grows tea.", "is_supporting": True},
            {"idx": 1, "title": "Moor", "paragraph_text": "A moor is wet.", "is_supporting": False},
            {"idx": 2, "title": "Moor", "paragraph_text": "Ada of Vell.", "is_supporting": True},
            {"idx": 3, "title": "Lamp", "paragraph_text": "Kept by Ada.", "is_supporting": True},
        ],
        "question": "What grows where the keeper of Lamp was born, and does she drink it?",
        "question_decomposition": [
            {"id": 9, "question": "Lamp >> keeper", "answer": "Ada", "paragraph_support_idx": 3},
            {"id": 4, "question": "#1 >> born", "answer": "Vell", "paragraph_support_idx": 2},
            {"id": 7, "question": "#2 for #1, #2?", "answer": "tea", "paragraph_support_idx": 0},
        ],
        "answer": "tea",
        "answer_aliases": ["chai", "tea"],
        "answerable": True,
    }
]


def array(path: Path, objects: Sequence[Any]) -> Path:
    path.write_text(json.dumps(list(objects), ensure_ascii=False), encoding="utf-8")
    return path


def lines(path: Path, objects: Sequence[Any]) -> Path:
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)
    path.write_text(text, encoding="utf-8")
    return path


def changed(original: Object, **fields: Any) -> Object:
    return {**original, **fields}


def without(original: Object, *fields: str) -> Object:
    return {name: value for name, value in original.items() if name not in fields}


def corpus(out: Path) -> dict[str, Passage]:
    text = (out / "corpus.jsonl").read_bytes().splitlines()
    records = [msgspec.json.decode(line, type=Passage) for line in text]
    assert [record.passage_id for record in records] == sorted(r.passage_id for r in records)
    return {record.passage_id: record for record in records}


def oracle(out: Path) -> dict[str, OracleRow]:
    text = (out / "oracle.jsonl").read_bytes().splitlines()
    records = [msgspec.json.decode(line, type=OracleRow) for line in text]
    return {record.question_id: record for record in records}


def faults_of(name: str, path: Path, **options: Any) -> list[Fault]:
    """Faults of an import that must fail and leave nothing behind."""
    out = path.parent / "refused"
    with pytest.raises(InputError) as caught:
        import_benchmark(name, [path], out, **options)
    assert not out.exists()
    return list(caught.value.faults)


def where(faults: Sequence[Fault]) -> list[tuple[int, str, str]]:
    return [(fault.line, fault.field, fault.code) for fault in faults]


def test_hotpotqa(tmp_path: Path) -> None:
    done = import_benchmark("hotpotqa", [array(tmp_path / "dev.json", HOTPOT)], tmp_path / "out")
    assert done == Imported(passages=3, questions=2, left_out={}, noted={})
    passages = corpus(tmp_path / "out")
    assert set(passages) == {"Ada Moor", "Bell Island", "Lamp Island"}
    assert passages["Ada Moor"] == Passage(
        passage_id="Ada Moor",
        title="Ada Moor",
        text="Ada Moor was born in Vell. She keeps a lamp.",
    )
    rows = oracle(tmp_path / "out")
    assert rows["h1"] == OracleRow("h1", ["Vell"], ["Lamp Island", "Ada Moor"])
    assert rows["h2"] == OracleRow("h2", ["Bell Island"], ["Bell Island"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "corpus.jsonl",
        "oracle.jsonl",
    ]


def test_musique_decomposition_becomes_evidence(tmp_path: Path) -> None:
    done = import_benchmark("musique", [lines(tmp_path / "dev.jsonl", MUSIQUE)], tmp_path / "out")
    assert done == Imported(passages=4, questions=1, left_out={}, noted={})
    # "A moor is wet." < "Ada of Vell.": a space comes before "d".
    assert corpus(tmp_path / "out")["Moor"].text == "A moor is wet."
    [row] = oracle(tmp_path / "out").values()
    assert row.answers == ["tea", "chai"]
    assert row.support_ids == ["Vell", "Moor#2", "Lamp"]
    nodes = [(node.node_id, node.depends_on, node.support_ids, node.answers) for node in row.nodes]
    assert nodes == [
        ("1", [], ["Lamp"], ["Ada"]),
        ("2", ["1"], ["Moor#2"], ["Vell"]),
        ("3", ["1", "2"], ["Vell"], ["tea"]),
    ]


def test_a_number_sign_that_names_no_earlier_hop_is_text(tmp_path: Path) -> None:
    hops = MUSIQUE[0]["question_decomposition"]
    odd = [changed(hops[0], question="Who had the #1 song of #0?"), *hops[1:]]
    path = lines(tmp_path / "m.jsonl", [changed(MUSIQUE[0], question_decomposition=odd)])
    done = import_benchmark("musique", [path], tmp_path / "out")
    assert done.noted == {"number_sign_without_hop": 2}
    [row] = oracle(tmp_path / "out").values()
    assert [node.depends_on for node in row.nodes] == [[], ["1"], ["1", "2"]]


def test_musique_full_gives_what_its_answerable_half_gives(tmp_path: Path) -> None:
    twin = changed(
        MUSIQUE[0],
        answerable=False,
        paragraphs=[
            *MUSIQUE[0]["paragraphs"][:1],
            {"idx": 1, "title": "Else", "paragraph_text": "Else.", "is_supporting": False},
        ],
        question_decomposition=[
            changed(hop, paragraph_support_idx=None) for hop in MUSIQUE[0]["question_decomposition"]
        ],
    )
    full = lines(tmp_path / "full.jsonl", [twin, *MUSIQUE])
    done = import_benchmark("musique", [full], tmp_path / "full")
    assert done.left_out == {"unanswerable": 1}
    import_benchmark("musique", [lines(tmp_path / "ans.jsonl", MUSIQUE)], tmp_path / "ans")
    for name in ("corpus.jsonl", "oracle.jsonl"):
        assert (tmp_path / "full" / name).read_bytes() == (tmp_path / "ans" / name).read_bytes()
    [fault] = faults_of("musique", lines(tmp_path / "none.jsonl", [twin]))
    assert (fault.code, fault.got) == ("no_questions", "none; left out: 1 unanswerable")


def test_2wiki_takes_other_names_of_the_answer(tmp_path: Path) -> None:
    first = changed(
        HOTPOT[0],
        answer_id="Q7",
        evidences=[["Ada Moor", "place of birth", "Vell"]],
        entity_ids="Q1_Q2",
    )
    path = array(tmp_path / "dev.json", [first, changed(HOTPOT[1], answer_id=None)])
    names = lines(
        tmp_path / "id_aliases.json",
        [
            {"Q_id": "Q7", "aliases": ["Vell Town", "Vell"], "demonyms": ["Vellian"]},
            {"Q_id": "Q8", "aliases": ["Elsewhere"], "demonyms": []},
        ],
    )
    import_benchmark("2wiki", [path], tmp_path / "plain")
    assert oracle(tmp_path / "plain")["h1"].answers == ["Vell"]
    import_benchmark("2wiki", [path], tmp_path / "named", aliases=names)
    rows = oracle(tmp_path / "named")
    assert rows["h1"].answers == ["Vell", "Vell Town", "Vellian"]
    assert rows["h2"].answers == ["Bell Island"]
    [fault] = faults_of("2wiki", array(tmp_path / "old.json", HOTPOT), aliases=names)
    assert fault.code == "no_answer_ids"
    names.write_text('{"Q_id": "Q7", "aliases": "Vell"}\n', encoding="utf-8")
    assert where(faults_of("2wiki", path, aliases=names)) == [
        (1, "aliases", "wrong_type"),
        (1, "demonyms", "missing_field"),
    ]
    [fault] = faults_of("2wiki", path, aliases=tmp_path / "none.json")
    assert (Path(fault.file).name, fault.code) == ("none.json", "unreadable")
    with pytest.raises(ValueError, match="only 2wiki"):
        import_benchmark("hotpotqa", [path], tmp_path / "x", aliases=names)


def by_columns(question: Object, sentences: str) -> Object:
    """As the mirrors with columns hold it."""
    titles, texts = zip(*question["context"], strict=True)
    facts, indices = zip(*question["supporting_facts"], strict=True)
    return changed(
        without(question, "_id"),
        id=question["_id"],
        context={"title": list(titles), sentences: list(texts)},
        supporting_facts={"title": list(facts), "sent_id": list(indices)},
    )


@pytest.mark.parametrize("write", [array, lines])
@pytest.mark.parametrize("shape", ["pairs", "sentences", "content"])
def test_every_shape_gives_the_same_bytes(shape: str, write: Any, tmp_path: Path) -> None:
    import_benchmark("hotpotqa", [array(tmp_path / "a.json", HOTPOT)], tmp_path / "a")
    objects = HOTPOT if shape == "pairs" else [by_columns(each, shape) for each in HOTPOT]
    import_benchmark("2wiki", [write(tmp_path / "b.json", objects)], tmp_path / "b")
    for name in ("corpus.jsonl", "oracle.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_order_of_files_questions_and_paragraphs_changes_no_byte(tmp_path: Path) -> None:
    shared = [
        changed(HOTPOT[0], _id=f"q{at}", context=[*HOTPOT[0]["context"], ["Inn", [f"Inn {at}."]]])
        for at in range(6)
    ]
    seen = set()
    for seed in range(5):
        order = random.Random(seed)
        mixed = [changed(q, context=order.sample(q["context"], k=4)) for q in shared]
        order.shuffle(mixed)
        cut = order.randrange(1, 5)
        paths = [
            array(tmp_path / "1.json", mixed[:cut]),
            lines(tmp_path / "2.jsonl", mixed[cut:]),
        ]
        order.shuffle(paths)
        out = tmp_path / f"out{seed}"
        import_benchmark("hotpotqa", paths, out)
        seen.add(tuple((out / name).read_bytes() for name in ("corpus.jsonl", "oracle.jsonl")))
    assert len(seen) == 1
    passages = corpus(tmp_path / "out0")
    assert [passages[name].text for name in ("Inn", "Inn#2", "Inn#6")] == [
        "Inn 0.",
        "Inn 1.",
        "Inn 5.",
    ]


def test_an_id_is_taken_once() -> None:
    passages = Passages()
    for title, text in [
        ("A", "one"),
        ("A", "two"),
        ("A", "three"),
        ("A#2", "four"),
        ("", "five"),
        ("", "six"),
        ("#1", "seven"),
        ("A", "one"),
    ]:
        passages.number(title, text)
    # In code-point order "one" < "three" < "two"; "A#2" and "#1" are titles, "A#3" is reserved.
    assert passage_ids(passages.by_title(), {"A#3"}) == ["A", "A#5", "A#4", "A#2", "#2", "#3", "#1"]


@given(
    pairs=st.lists(st.tuples(st.sampled_from(["", " ", "A", "A#2", "#1", "é"]), st.text())),
    seed=st.randoms(use_true_random=False),
)
def test_ids_depend_on_the_passages_alone(
    pairs: list[tuple[str, str]], seed: random.Random
) -> None:
    pairs = [(title, text) for title, text in pairs if text.isprintable()]
    named = []
    for _ in range(2):
        passages = Passages()
        numbers = [passages.number(*pair) for pair in pairs]
        ids = passage_ids(passages.by_title())
        assert len(set(ids)) == len(ids) == len(set(pairs))
        named.append({pair: ids[number] for pair, number in zip(pairs, numbers, strict=True)})
        assert {(p.title, p.text) for p in passages.records(ids)} == set(pairs)
        seed.shuffle(pairs)
    assert named[0] == named[1]


def test_support_that_the_context_lacks(tmp_path: Path) -> None:
    """As in the fullwiki setting: found elsewhere, nowhere, or in too many places."""
    facts = [["Ada Moor", 0], ["Nowhere", 3]]
    questions = [
        HOTPOT[0],
        changed(HOTPOT[1], supporting_facts=facts),
        changed(HOTPOT[1], _id="h3", supporting_facts=[["Inn", 0]]),
        changed(HOTPOT[1], _id="h4", context=[["Inn", ["One."]]], supporting_facts=[]),
        changed(HOTPOT[1], _id="h5", context=[["Inn", ["Two."]]], supporting_facts=[["Inn", 4]]),
        changed(
            HOTPOT[1],
            _id="h6",
            context=[["Inn", ["One."]], ["Inn", ["Two."]]],
            supporting_facts=[["Inn", 0]],
        ),
    ]
    done = import_benchmark("hotpotqa", [array(tmp_path / "q.json", questions)], tmp_path / "out")
    assert done.left_out == {"support_ambiguous": 2}
    assert done.noted == {
        "fact_past_last_sentence": 1,
        "support_outside_corpus": 1,
        "without_support": 1,
    }
    rows = oracle(tmp_path / "out")
    assert set(rows) == {"h1", "h2", "h4", "h5"}
    assert rows["h2"].support_ids == ["Ada Moor", "Nowhere"]
    assert rows["h5"].support_ids == ["Inn#2"]
    assert "Nowhere" not in corpus(tmp_path / "out")


def test_hops_outside_the_marked_support_are_noted(tmp_path: Path) -> None:
    paragraphs = [changed(each, is_supporting=False) for each in MUSIQUE[0]["paragraphs"]]
    path = lines(tmp_path / "m.jsonl", [changed(MUSIQUE[0], paragraphs=paragraphs)])
    done = import_benchmark("musique", [path], tmp_path / "out")
    assert done.noted == {"hops_outside_support": 3, "without_support": 1}


def test_unicode_is_kept_to_the_letter(tmp_path: Path) -> None:
    composed, decomposed = "Caf\u00e9", "Cafe\u0301"
    context = [[composed, ["naïve – 東京 😀"]], [decomposed, ["\u2028 other\ttab "]]]
    question = changed(HOTPOT[0], context=context, supporting_facts=[[decomposed, 0]])
    plain = array(tmp_path / "q.json", [question])
    escaped = tmp_path / "escaped.json"
    escaped.write_text("\ufeff " + json.dumps([question]), encoding="utf-8")
    for at, path in enumerate([plain, escaped]):
        import_benchmark("hotpotqa", [path], tmp_path / str(at))
        passages = corpus(tmp_path / str(at))
        assert passages[composed].text == "naïve – 東京 😀"
        assert passages[decomposed].text == "\u2028 other\ttab "
        assert oracle(tmp_path / str(at))["h1"].support_ids == [decomposed]


@pytest.mark.parametrize(
    ("sentences", "text"),
    [
        ([], ""),
        (["One.", " Two.", "Three."], "One. Two. Three."),
        (["One. ", "Two."], "One. Two."),
        (["", "One.", "", "Two."], "One. Two."),
    ],
)
def test_sentences_are_joined_by_one_space_where_they_bring_none(
    sentences: list[str], text: str
) -> None:
    assert joined(sentences) == text


def test_every_fault_of_hotpotqa_is_listed(tmp_path: Path) -> None:
    bad: list[Any] = [
        HOTPOT[0],
        changed(
            without(HOTPOT[1], "_id"),
            context=[["Bell Island"], BELL, "x"],
            supporting_facts={"title": []},
        ),
        changed(HOTPOT[1], _id="h3", context=[[5, ["a"]]], supporting_facts=[["Bell Island", "0"]]),
        7,
        without(HOTPOT[1], "_id", "context"),
        changed(HOTPOT[1], _id=True, answer=["a"], supporting_facts=[["Bell Island", -1]]),
        changed(HOTPOT[0], question="again"),
        changed(HOTPOT[1], _id="h8", answer=None),
        changed(HOTPOT[1], _id="h9", context={"title": ["a"], "sentences": []}),
    ]
    found = faults_of("hotpotqa", array(tmp_path / "bad.json", bad))
    assert where(found) == [
        (2, "context[0]", "wrong_type"),
        (2, "context[2]", "wrong_type"),
        (2, "supporting_facts", "wrong_type"),
        (2, "_id", "missing_field"),
        (3, "context[0].title", "wrong_type"),
        (3, "supporting_facts[0].sentence", "wrong_type"),
        (4, "", "wrong_type"),
        (5, "_id", "missing_field"),
        (5, "context", "missing_field"),
        (6, "_id", "bad_id"),
        (6, "answer", "wrong_type"),
        (6, "supporting_facts[0].sentence", "wrong_type"),
        (7, "id", "duplicate_id"),
        (8, "answer", "no_answer"),
        (9, "context", "unequal_columns"),
    ]
    assert {fault.file for fault in found} == {str(tmp_path / "bad.json")}
    assert all(fault.expected and fault.got and fault.remedy for fault in found)
    assert f"first at {tmp_path / 'bad.json'}:1" in found[12].got


def test_every_fault_of_musique_is_listed(tmp_path: Path) -> None:
    paragraphs, hops = MUSIQUE[0]["paragraphs"], MUSIQUE[0]["question_decomposition"]
    bad = [
        changed(MUSIQUE[0], paragraphs=[*paragraphs, changed(paragraphs[0], is_supporting="no")]),
        changed(
            MUSIQUE[0],
            paragraphs=[paragraphs[0], paragraphs[0], *paragraphs[1:3]],
            question_decomposition=hops[:2],
        ),
        changed(
            MUSIQUE[0],
            question_decomposition=[
                changed(hops[0], paragraph_support_idx=None),
                without(hops[1], "answer"),
            ],
        ),
        without(MUSIQUE[0], "question_decomposition", "paragraphs"),
        changed(MUSIQUE[0], answerable="yes"),
    ]
    assert where(faults_of("musique", lines(tmp_path / "bad.jsonl", bad))) == [
        (1, "paragraphs[4].is_supporting", "wrong_type"),
        (2, "paragraphs[1].idx", "duplicate_id"),
        (2, "question_decomposition[0].paragraph_support_idx", "unknown_paragraph"),
        (3, "question_decomposition[0].paragraph_support_idx", "wrong_type"),
        (3, "question_decomposition[1].answer", "missing_field"),
        (4, "paragraphs", "missing_field"),
        (4, "question_decomposition", "missing_field"),
        (5, "answerable", "wrong_type"),
    ]


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize("answer", [{}, {"answer": None}, {"answer": " "}])
def test_a_test_split_is_refused_in_one_sentence(name: str, answer: Object, tmp_path: Path) -> None:
    labels = ("answer", "supporting_facts", "question_decomposition")
    questions = [{**without(each, *labels), **answer} for each in MUSIQUE * 2 + HOTPOT]
    [fault] = faults_of(name, array(tmp_path / "test.json", questions))
    assert (fault.line, fault.code, fault.got) == (0, "no_answers", "none in 4, as in a test split")
    assert "train or dev split" in fault.remedy


def test_files_that_cannot_be_read_are_listed_with_the_others(tmp_path: Path) -> None:
    bad = array(tmp_path / "bad.json", [7])
    with pytest.raises(InputError) as caught:
        import_benchmark("2wiki", [tmp_path / "none.json", tmp_path, bad], tmp_path / "out")
    assert [fault.code for fault in caught.value.faults] == [
        "unreadable",
        "unreadable",
        "wrong_type",
    ]


def test_questions_must_differ_over_all_files(tmp_path: Path) -> None:
    paths = [array(tmp_path / "a.json", HOTPOT), lines(tmp_path / "b.json", HOTPOT[1:])]
    with pytest.raises(InputError) as caught:
        import_benchmark("hotpotqa", paths, tmp_path / "out")
    [fault] = caught.value.faults
    assert (fault.file, fault.line, fault.code) == (str(paths[1]), 1, "duplicate_id")
    assert f"{paths[0]}:2" in fault.got


GOOD = json.dumps(HOTPOT[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [(0, "no_questions")]),
        ("[]", [(0, "no_questions")]),
        (f"[{GOOD}", [(1, "bad_json")]),
        (f"[{GOOD},", [(2, "bad_json")]),
        (f"[{GOOD},]", [(2, "bad_json")]),
        (f"[{GOOD} {GOOD}]", [(1, "bad_json")]),
        (f"[{GOOD[:-9]}", [(1, "bad_json")]),
        (f"[{GOOD[:-1]},,}}, {GOOD}]", [(1, "bad_json")]),
        (f"[{GOOD}] []", [(0, "bad_json")]),
        (
            f"{GOOD[:-5]}\n\n{GOOD} {{}}\n[]\n",
            [(1, "bad_json"), (3, "bad_json"), (4, "wrong_type")],
        ),
        (f'[{GOOD[:-1]}, "answer": "b"}}]', [(1, "duplicate_key")]),
        (f'[{GOOD[:-1]}, "score": NaN}}]', [(1, "nonfinite_number")]),
        (f'[{GOOD[:-1]}, "note": "\\ud800"}}, 3]', [(1, "lone_surrogate"), (2, "wrong_type")]),
        ("[" * 100_000, [(1, "bad_json")]),
        ("[" + "9" * 5_000 + "]", [(1, "bad_json")]),
    ],
)
def test_broken_json(text: str, expected: list[tuple[int, str]], tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text(text, encoding="utf-8")
    assert [(fault.line, fault.code) for fault in faults_of("hotpotqa", path)] == expected


def test_other_bytes_spoil_one_entry_only(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_bytes(
        f"[{GOOD},".encode() + GOOD.replace("Vell", "V\xe9ll").encode("latin-1") + b",7]"
    )
    assert where(faults_of("hotpotqa", path)) == [(2, "", "not_utf8"), (3, "", "wrong_type")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_the_window_may_cut_anywhere(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "WINDOW_BYTES", size)
    values = [{"é": [True, -1.5e-3, '\\"]}{[']}, None, 12345, "😀\n", [], {"a": {"b": "]"}}, "", 0]
    for indent in (None, 1):
        path = tmp_path / f"{indent}.json"
        for escape in (True, False):
            path.write_text(
                json.dumps(values, indent=indent, ensure_ascii=escape), encoding="utf-8"
            )
            faults: list[Fault] = []
            read = list(read_objects(path, faults, None))
            assert faults == []
            assert read == list(enumerate(values, 1))


def test_an_array_is_not_held_in_memory(tmp_path: Path) -> None:
    filler = "word " * 2_000
    path = array(tmp_path / "big.json", [{"at": at, "text": filler} for at in range(2_000)])
    assert path.stat().st_size > 2e7
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_objects(path, [], None))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 2_000
    assert peak < 6e6  # the window, the bytes it is read from and the text that is left over


def test_progress_ends_at_its_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "WINDOW_BYTES", 100)
    told: list[tuple[str, int, int]] = []
    path = lines(tmp_path / "q.jsonl", HOTPOT)
    import_benchmark(
        "hotpotqa", [path], tmp_path / "out", progress=lambda *event: told.append(event)
    )
    stages = {stage: (done, total) for stage, done, total in told}
    assert stages == {
        "read q.jsonl (MB)": (1, 1),
        "write corpus": (3, 3),
        "write oracle": (2, 2),
    }


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = array(tmp_path / "q.json", HOTPOT), tmp_path / "out"
    import_benchmark("hotpotqa", [path], out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    array(path, HOTPOT[:1])
    monkeypatch.setattr("herald_jax.data.together.os.fsync", full)
    with pytest.raises(HeraldError, match="No space left"):
        import_benchmark("hotpotqa", [path], out)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    with pytest.raises(HeraldError, match="No space left"):
        import_benchmark("hotpotqa", [path], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_unknown_benchmark_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="hotpotqa, 2wiki, musique, got squad"):
        import_benchmark("squad", [], tmp_path / "out")


def test_it_loads_beside_trajectories_of_ones_own(tmp_path: Path) -> None:
    out = tmp_path / "pool"
    import_benchmark("musique", [lines(tmp_path / "m.jsonl", MUSIQUE)], out)
    logs = [
        Trajectory(
            trajectory_id=f"t{rollout}",
            question_id="3hop__1_2_3",
            question=MUSIQUE[0]["question"],
            steps=[Step(query="keeper of Lamp", retrieved=["Lamp", "Moor#2"])],
            answer="Tea",
            citations=[cited],
            rollout=rollout,
        )
        for rollout, cited in enumerate(["Lamp", "Moor"])
    ]
    write_jsonl(out / "trajectories.jsonl", logs)
    files = find_pool_files(out)
    assert list(validate_files(list(itertools.chain(*files)))) == []
    pool = load_pool(*files)
    assert (len(pool.rows), len(pool.passages), pool.set_aside) == (2, 4, {})
    assert pool.rows.table["em"].tolist() == [1.0, 1.0]
    (label,) = read_table(files.oracle, OracleRow).records
    assert [node.node_id for node in label.nodes] == ["1", "2", "3"]
