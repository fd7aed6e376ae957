"""Stores: what was put comes back, and what cannot be trusted is told by name and not used."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from herald_jax.pool import store as store_module
from herald_jax.pool.store import Folder, Memory
from herald_jax.types import HeraldError

ROW = np.dtype([("a", "<i4"), ("b", "?")], align=True)
ARRAYS = {
    "numbers": np.arange(10, dtype=np.int64),
    "table": np.array([[1.5, np.nan], [-0.0, 2.0]]),
    "nothing": np.zeros((0, 3), np.uint8),
    "rows": np.array([(1, True), (2, False)], ROW),
}
META = {"summary": {"rows": 3, "names": ["é", '"']}, "largest": [None, 0.1]}


def stores(folder: Path):
    return Memory(), Folder(folder, pytest.fail)


def same(entry, arrays=ARRAYS, meta=META) -> None:
    assert {name: entry.meta[name] for name in meta} == meta
    assert sorted(entry.names) == sorted(arrays)
    for name, array in arrays.items():
        assert name in entry
        assert entry.length(name) == len(array)
        for first, last in ((0, len(array)), (1, 2), (0, 0)):
            if last <= len(array):
                part = entry.part(name, first, last).view(array.dtype)
                np.testing.assert_array_equal(part, array[first:last])
        np.testing.assert_array_equal(entry.read(name).view(array.dtype), array)
    assert "other" not in entry


def test_what_was_put_comes_back(tmp_path):
    for store in stores(tmp_path):
        assert store.get("one", "key") is None
        store.put("one", "key", ARRAYS, META)
        same(store.get("one", "key"))
        same(store.get("one", "key", check=True))
        assert store.get("two", "key") is None


def test_an_entry_of_the_same_name_is_replaced(tmp_path):
    for store in stores(tmp_path):
        store.put("one", "key", ARRAYS, META)
        store.put("one", "key", {"x": np.arange(3)}, {})
        same(store.get("one", "key"), {"x": np.arange(3)}, {})


def test_a_folder_outlives_its_store(tmp_path):
    Folder(tmp_path / "a" / "b", pytest.fail).put("one", "key", ARRAYS, META)
    for check in (False, True):
        same(Folder(tmp_path / "a" / "b", pytest.fail).get("one", "key", check=check))


def test_an_entry_of_another_key_is_not_used(tmp_path):
    memory = Memory()
    memory.put("one", "key", ARRAYS, META)
    assert memory.get("one", "other") is None
    Folder(tmp_path, pytest.fail).put("one", "key", ARRAYS, META)
    said: list[str] = []
    for _ in range(2):
        assert Folder(tmp_path, said.append).get("one", "other") is None
    (once, again) = said
    assert once == again
    assert str(tmp_path / "one.arrays") in once
    assert "made from other files or settings" in once
    # Made again, it is used.
    store = Folder(tmp_path, pytest.fail)
    store.put("one", "other", ARRAYS, META)
    same(store.get("one", "other"))


def entry_file(folder: Path) -> Path:
    Folder(folder, pytest.fail).put("one", "key", ARRAYS, META)
    (path,) = folder.iterdir()
    return path


def test_a_file_that_was_cut_short_is_not_used_wherever_it_was_cut(tmp_path):
    content = entry_file(tmp_path).read_bytes()
    lengths = [0, 1, 20, 40, 100, len(content) // 2, len(content) - 64]
    for length in lengths:
        (tmp_path / "one.arrays").write_bytes(content[:length])
        said: list[str] = []
        assert Folder(tmp_path, said.append).get("one", "key") is None, length
        (message,) = said
        assert str(tmp_path / "one.arrays") in message
        assert message.endswith("not used, and done again")


def test_any_changed_byte_is_found_when_it_is_asked_for(tmp_path):
    path = entry_file(tmp_path)
    content = path.read_bytes()
    undetected = []
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x20]) + content[at + 1 :])
        said: list[str] = []
        found = Folder(tmp_path, said.append).get("one", "key", check=True)
        if found is None:
            assert len(said) == 1 and str(path) in said[0]
        else:
            undetected.append(at)
            same(found)
    # What is left is the filling between arrays, which holds nothing.
    assert len(undetected) < len(content) / 7 / 2


def test_damage_of_the_arrays_alone_is_found_by_the_check(tmp_path):
    path = entry_file(tmp_path)
    content = path.read_bytes()
    at = content.index(np.arange(10, dtype=np.int64).tobytes()) + 8
    path.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    said: list[str] = []
    assert Folder(tmp_path, said.append).get("one", "key", check=True) is None
    (message,) = said
    assert str(path) in message and "'numbers'" in message


def test_a_foreign_file_is_not_used(tmp_path):
    (tmp_path / "one.arrays").write_bytes(b"PAR1" * 100)
    said: list[str] = []
    assert Folder(tmp_path, said.append).get("one", "key", check=True) is None
    assert str(tmp_path / "one.arrays") in said[0]


def test_a_file_that_cannot_be_read_is_not_used(tmp_path):
    (tmp_path / "one.arrays").mkdir()
    said: list[str] = []
    assert Folder(tmp_path, said.append).get("one", "key") is None
    assert said == [f"{tmp_path / 'one.arrays'}: Is a directory; not used, and done again"]


def test_what_a_killed_process_left_is_never_found(tmp_path):
    whole = entry_file(tmp_path).read_bytes()
    (tmp_path / ".two.arrays.7.partial").write_bytes(whole[:-64])
    assert Folder(tmp_path, pytest.fail).get("two", "key") is None
    same(Folder(tmp_path, pytest.fail).get("one", "key"))


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(HeraldError, match=r"one\.arrays: cannot be written .*make room"):
        Folder(tmp_path / "file", pytest.fail).put("one", "key", ARRAYS, META)


def test_a_full_disk_is_told_and_keeps_what_was_there(tmp_path, monkeypatch):
    Folder(tmp_path, pytest.fail).put("one", "key", ARRAYS, META)

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_module, "write_arrays", full)
    store = Folder(tmp_path, pytest.fail)
    for name in ("one", "two"):
        message = rf"{name}\.arrays: cannot be written \(No space left on device\)"
        with pytest.raises(HeraldError, match=message):
            store.put(name, "key", {}, {})
    same(store.get("one", "key"))
    assert store.get("two", "key") is None
