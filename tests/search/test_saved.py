"""An index in a file: opened as it was built, and never in place of another."""

import os
from pathlib import Path

import jax
import numpy as np
import pytest

from herald_jax.data.arrays_file import ArraysFile, DamagedFileError, write_arrays
from herald_jax.data.ragged import Ragged
from herald_jax.search import CorpusIndex, open_index
from herald_jax.search.passages import index_key
from herald_jax.search.saved import IndexRefusedError

PASSAGES = [("", f"the {word} mill by straße {i % 7}") for i, word in enumerate("abcdefghij" * 5)]
SETTINGS = {"k1": 1.5, "b": 0.75, "epsilon": 0.25, "variant": "okapi"}
TEXTS = ["c mill 3", "STRASSE j", "", "zebra", "the the the a"]
EXCLUDE = Ragged.of_lists([[2], [9, 19], range(50), [], [0]])


def answers(index):
    return [*index.bm25(TEXTS, EXCLUDE, 60), *index.lexical(TEXTS, EXCLUDE, 4)]


def same(results, others):
    return all(np.array_equal(a, b) for a, b in zip(results, others, strict=True))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "corpus.index"


@pytest.fixture(scope="module")
def built():
    return CorpusIndex(PASSAGES)


@pytest.fixture
def no_building(monkeypatch):
    def build(*_, **__):
        raise AssertionError("built, though it was saved")

    monkeypatch.setattr("herald_jax.search.index.build_parts", build)


def test_it_ranks_as_it_did_before(path, built):
    built.save(path)
    loaded = CorpusIndex.load(path, built.key)
    assert same(answers(loaded), answers(built))
    assert dict(loaded.vocabulary) == dict(built.vocabulary)
    assert (loaded.n_passages, loaded.key) == (50, built.key)
    for name in ("bm25_index", "lexical_index"):
        theirs = jax.tree.leaves(getattr(loaded, name))
        assert same(theirs, jax.tree.leaves(getattr(built, name)))


def test_what_was_loaded_can_be_saved(path, built, tmp_path):
    built.save(path)
    CorpusIndex.load(path, built.key).save(tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("passages", [[], [("", "")], [("", " ;"), ("", "")]])
def test_an_index_of_nothing(path, passages):
    built = CorpusIndex(passages)
    built.save(path)
    assert same(answers(CorpusIndex.load(path, built.key)), answers(built))


def test_the_key_is_known_without_the_index(built):
    assert built.key == index_key(PASSAGES, **SETTINGS)
    assert built.key == index_key(PASSAGES, **{**SETTINGS, "k1": np.float64(1.5)})


@pytest.mark.parametrize(
    "passages",
    [
        PASSAGES[:-1],
        [*PASSAGES, ("", "")],
        PASSAGES[::-1],
        [*PASSAGES[:-1], ("", "the j mill by strasse 0")],
        [("", "ab"), ("", "c")],
        [("", "a"), ("", "bc")],
        [("", "\ud83d")],
    ],
)
def test_the_key_tells_passages_apart(passages):
    others = [PASSAGES, [("", "a"), ("", "b c")], [("", "ab c")], [("", "\ud83e")]]
    keys = {index_key(other, **SETTINGS) for other in others}
    assert index_key(passages, **SETTINGS) not in keys


@pytest.mark.parametrize(
    "setting", [{"k1": 1.2}, {"b": 0.7}, {"epsilon": 0.0}, {"variant": "lucene"}]
)
def test_the_key_tells_settings_apart(setting):
    assert index_key(PASSAGES, **SETTINGS) != index_key(PASSAGES, **SETTINGS | setting)


def test_the_key_tells_versions_apart(monkeypatch):
    before = index_key(PASSAGES, **SETTINGS)
    monkeypatch.setattr("herald_jax.search.passages.FORMAT", 0)
    other = index_key(PASSAGES, **SETTINGS)
    monkeypatch.setattr("unicodedata.unidata_version", "1.1")
    assert len({before, other, index_key(PASSAGES, **SETTINGS)}) == 3


def test_an_index_of_something_else_is_refused_by_name(path, built):
    built.save(path)
    other = index_key(PASSAGES[1:], **SETTINGS)
    with pytest.raises(IndexRefusedError, match=r"corpus\.index: index of other passages") as error:
        CorpusIndex.load(path, other)
    assert other[:12] in str(error.value)
    assert built.key[:12] in str(error.value)


def test_a_file_of_other_arrays_is_refused_by_name(path, built):
    write_arrays(path, {"peak": np.zeros(3)}, {"key": built.key})
    with pytest.raises(IndexRefusedError, match=r"corpus\.index: not a search index"):
        CorpusIndex.load(path, built.key)


def test_damage_is_refused_by_name_wherever_it_is(path, built):
    built.save(path)
    whole = path.read_bytes()
    names = ArraysFile(path).names
    assert len(names) == 13
    for name in names:
        broken = bytearray(whole)
        broken[ArraysFile(path).map(name).offset] ^= 1
        path.write_bytes(broken)
        with pytest.raises(DamagedFileError, match=r"corpus\.index: array"):
            CorpusIndex.load(path, built.key)
        path.write_bytes(whole)
    for keep in (0, 10, len(whole) // 2, len(whole) - 64):
        path.write_bytes(whole[:keep])
        with pytest.raises(DamagedFileError, match=r"corpus\.index"):
            CorpusIndex.load(path, built.key)


def test_no_file_is_no_index(path, built):
    with pytest.raises(FileNotFoundError):
        CorpusIndex.load(path, built.key)


def test_what_is_open_is_not_built_again(path, built, no_building, monkeypatch):
    built.save(path)
    assert same(answers(open_index(path, PASSAGES)), answers(built))
    with pytest.raises(AssertionError, match="built"):
        open_index(path, PASSAGES, b=0.5)
    with pytest.raises(AssertionError, match="built"):
        open_index(None, PASSAGES)


def test_the_first_to_open_saves(path, built):
    opened = open_index(path, PASSAGES)
    assert same(answers(opened), answers(built))
    assert CorpusIndex.load(path, built.key).n_passages == 50
    assert os.listdir(path.parent) == [path.name]


def test_a_file_that_is_refused_is_said_and_replaced(path, built):
    said = []
    open_index(path, PASSAGES, variant="lucene", refused=said.append)
    assert said == []
    opened = open_index(path, PASSAGES, refused=said.append)
    assert len(said) == 1
    assert "index of other passages, of other settings of BM25" in said[0]
    assert same(answers(opened), answers(built))

    path.write_bytes(path.read_bytes()[:-64])
    assert same(answers(open_index(path, PASSAGES, refused=said.append)), answers(built))
    assert len(said) == 2
    assert f"{path}: cut short" in said[1]
    # What replaced them is whole.
    open_index(path, PASSAGES, refused=said.append)
    assert len(said) == 2


def test_kept_nowhere(tmp_path, built):
    assert same(answers(open_index(None, PASSAGES)), answers(built))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="tells where memory comes from")
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="other devices have memory of their own")
def test_the_arrays_are_used_where_they_lie(path, built):
    built.save(path)
    loaded = CorpusIndex.load(path, built.key)
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    spans = [line.split()[0].split("-") for line in lines if line.endswith(str(path))]
    mapped = [range(int(first, 16), int(last, 16)) for first, last in spans]
    for index in (loaded.bm25_index, loaded.lexical_index):
        for field in ("row", "start", "passage", "value", "dense"):
            address = getattr(index.postings, field).unsafe_buffer_pointer()
            assert any(address in span for span in mapped), field
