"""Files into a store: each is read once, until it or what its codes depend on changes."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pool_rows import read

from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.parquet import write_parquet
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory
from herald_jax.pool import logs
from herald_jax.pool.load import load_pool
from herald_jax.pool.pool import Pool
from herald_jax.pool.store import Folder
from herald_jax.search import CorpusIndex
from herald_jax.types import HeraldError, InputError

PASSAGES = [Passage("p1", "the mill"), Passage("p2", "a wheel of the mill", "Wheel")]
ORACLE = [OracleRow(f"q{at}", ["Ada"], ["p1", "elsewhere"]) for at in range(5)]


def rows(stem: str, count: int) -> list[Trajectory]:
    """Rows of every kind: some are set aside, some look like something else."""
    return [
        Trajectory(
            f"{stem}{at}",
            f"q{at * 3 % 7}",
            f"The wheel of {at * 3 % 7}?",
            [Step("mill", ["p1", f"{stem} {at}"][: at % 3]), Step(" ", None)],
            (None, "Ada", "a MILL, a mill")[at % 3],
            None if at == 4 else ["P1", "p2"][: at % 3],
            model=f"m{at % 2}",
            pool=stem,
            rollout=-at,
            candidates=[["p2"], None][at % 2],
        )
        for at in range(count)
    ]


@pytest.fixture
def files(tmp_path) -> tuple[list[Path], Path, Path]:
    """Three logs, the second of them Parquet, the third with faults; a corpus and an oracle."""
    names = ("a.jsonl", "b.parquet", "c.jsonl", "corpus.jsonl", "oracle.jsonl")
    a, b, c, corpus, oracle = (tmp_path / name for name in names)
    write_jsonl(a, rows("a", 9))
    write_parquet(b, rows("b", 7), Trajectory)
    write_jsonl(c, rows("c", 8))
    c.write_bytes(b"{\n" + c.read_bytes() + b'{"trajectory_id": 1.5}\n')
    write_jsonl(corpus, PASSAGES)
    write_jsonl(oracle, ORACLE)
    return [a, b, c], corpus, oracle


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """Names of the logs that are read, in chunks of four rows."""
    names = []
    reader = partial(logs.read_flat, batch_rows=4)

    def watched(path):
        names.append(Path(path).name)
        return reader(path)

    monkeypatch.setattr(logs, "read_flat", watched)
    return names


def load(files, say=pytest.fail, folder: Path | None = None, **options) -> Pool:
    paths, corpus, oracle = files
    store = Folder(folder or corpus.parent / "work", say)
    return load_pool(paths, [corpus], [oracle], store=store, skip_bad_rows=True, **options)


def contents(pool: Pool):
    """Everything that an audit sees of a pool."""
    return (
        read(pool.rows),
        pool.records_of(pool.rows),
        pool.counts.tolist(),
        pool.longest,
        (pool.models, pool.pools),
        pool.set_aside,
        pool.skipped,
        pool.warnings,
        pool.inputs,
        pool.key,
    )


@pytest.fixture
def expected(files, opened):
    """The pool without a work folder, in the same chunks."""
    paths, corpus, oracle = files
    pool = load_pool(paths, [corpus], [oracle], skip_bad_rows=True)
    assert pool.set_aside == {"bad_row": 2, "no_oracle": 3, "not_logged": 3}
    assert len(pool.skipped) > 2 and len(pool.warnings) == 1
    opened.clear()
    return contents(pool)


def test_a_file_that_is_there_is_not_read_again(files, opened, expected, monkeypatch):
    assert contents(load(files)) == expected
    assert opened == ["a.jsonl", "b.parquet", "c.jsonl"]

    def reader(path: str) -> Iterator[None]:
        pytest.fail(f"{path} was read again")

    monkeypatch.setattr(logs, "read_flat", reader)
    monkeypatch.setattr(logs, "digest_of", reader)
    assert contents(load(files)) == expected


@pytest.mark.parametrize("change", ["content", "time", "more"])
def test_a_file_that_changed_is_read_again_and_no_other(files, opened, change):
    load(files)
    opened.clear()
    first = files[0][0]
    stat = first.stat()
    if change == "content":
        # The same size: `Ada` is `Eva`.
        first.write_bytes(first.read_bytes().replace(b'"Ada"', b'"Eva"'))
        assert first.stat().st_size == stat.st_size
    elif change == "more":
        write_jsonl(first, rows("a", 10))
    os.utime(first, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    said: list[str] = []
    pool = load(files, said.append)
    assert opened == ["a.jsonl"]
    (message,) = said
    assert "file-00000.arrays: made from other files or settings" in message
    assert contents(pool) == contents(load(files, folder=first.parent / "anew"))
    if change == "content":
        assert any(record.answer == "Eva" for record in pool.records_of(pool.rows))


@pytest.mark.parametrize(
    "options",
    [{"rules": "squad"}, {"assume_no_citations": True}, {"make_index": None}],
)
def test_other_settings_read_all_again(files, opened, options):
    load(files)
    opened.clear()
    said: list[str] = []
    found = contents(load(files, said.append, **options))
    assert opened == ["a.jsonl", "b.parquet", "c.jsonl"]
    assert len(said) == 3
    assert found == contents(load(files, folder=files[1].parent / "anew", **options))


@pytest.mark.parametrize("which", ["corpus", "oracle"])
def test_another_corpus_or_oracle_reads_all_again(files, opened, which):
    load(files)
    opened.clear()
    corpus, oracle = files[1:]
    if which == "corpus":
        write_jsonl(corpus, [*PASSAGES, Passage("p0", "first of all")])
    else:
        write_jsonl(oracle, ORACLE[1:])
    found = contents(load(files, lambda message: None))
    assert opened == ["a.jsonl", "b.parquet", "c.jsonl"]
    assert found == contents(load(files, folder=corpus.parent / "anew"))


def test_settings_of_bm25_read_nothing_again(files, opened, expected):
    load(files)
    opened.clear()
    assert contents(load(files, make_index=partial(CorpusIndex, k1=2.0))) == expected
    assert opened == []


def test_another_order_of_the_files_changes_rows_only_in_their_file(files, expected):
    load(files)
    paths, corpus, oracle = files
    pool = load((paths[::-1], corpus, oracle), lambda message: None)
    assert pool.records_of(pool.rows) == expected[1]
    assert pool.set_aside == expected[5]


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_rows_are_told_by_name_and_read_again(files, opened, expected, damage):
    load(files)
    opened.clear()
    path = files[1].parent / "work" / "rows-00001-00001.arrays"
    content = path.read_bytes()
    half = len(content) // 2
    rest = b"" if damage == "cut" else bytes(byte ^ 1 for byte in content[half:])
    path.write_bytes(content[:half] + rest)
    said: list[str] = []
    assert contents(load(files, said.append)) == expected
    assert opened == ["b.parquet"]
    (message,) = said
    assert str(path) in message and "not used, and done again" in message


def test_a_file_that_was_not_finished_is_read_from_its_beginning(files, opened, expected):
    """As when the process was killed: chunks lie there, but nothing says that they are all."""
    load(files)
    opened.clear()
    (files[1].parent / "work" / "file-00001.arrays").unlink()
    assert contents(load(files)) == expected
    assert opened == ["b.parquet"]


def test_what_was_finished_before_a_full_disk_is_kept(files, opened, expected, monkeypatch):
    put = Folder.put

    def full(store, name, *arguments):
        if name == "rows-00002-00001":
            raise HeraldError("cannot be written (No space left on device)")
        put(store, name, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "put", full)
        with pytest.raises(HeraldError, match="No space left"):
            load(files)
    opened.clear()
    assert contents(load(files)) == expected
    assert opened == ["c.jsonl"]


def test_a_file_that_breaks_off_is_told_and_the_others_are_kept(files, opened, expected):
    paths = files[0]
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError) as caught:
        load(files)
    assert [(Path(f.file).name, f.code) for f in caught.value.faults if not f.line] == [
        ("b.parquet", "unreadable")
    ]
    opened.clear()
    paths[1].write_bytes(whole)
    assert contents(load(files)) == expected
    assert opened == ["b.parquet"]


def test_an_error_while_rows_are_read_is_told_of_the_file(files, monkeypatch, expected):
    reader = logs.read_flat

    def breaking(path):
        batches = reader(path)
        yield next(batches)
        if Path(path).name == "b.parquet":
            raise OSError(5, "Input/output error")
        yield from batches

    with monkeypatch.context() as patch:
        patch.setattr(logs, "read_flat", breaking)
        with pytest.raises(InputError, match=r"b\.parquet.*Input/output error"):
            load(files)
    assert contents(load(files)) == expected


def test_terms_are_the_tokens_of_question_and_answer(files):
    pool = load(files)
    words = list(pool.index.vocabulary)
    assert words == ["the", "mill", "wheel", "a", "of"]
    known = set(words)
    records = pool.records_of(pool.rows)
    assert {record.answer for record in records} == {None, "Ada", "a MILL, a mill"}
    for row, record in enumerate(records):
        text = (
            f"{record.question} {record.answer or ''}".lower().replace(",", " ").replace("?", " ")
        )
        expected = [word for word in text.split() if word in known]
        assert [words[term] for term in pool.rows.terms[row]] == expected
    bare = load(files, folder=files[1].parent / "bare", make_index=None)
    assert bare.index is None
    assert bare.rows.terms.lengths.tolist() == [0] * len(records)
