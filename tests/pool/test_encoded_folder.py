"""A folder that is there whole or not at all."""

import os
import time

import pytest

from herald_jax.pool.encoded_folder import whole_folder
from herald_jax.types import HeraldError


def fill(place, text, replaceable=lambda folder: True):
    with whole_folder(place, replaceable) as draft:
        (draft / "a").mkdir()
        (draft / "a" / "b").write_text(text, encoding="utf-8")


def begin_and(place, act, replaceable=lambda folder: True):
    """Begin to fill a folder, and do something else."""
    with whole_folder(place, replaceable) as draft:
        (draft / "a").write_text("half", encoding="utf-8")
        act()


def raising(error):
    def act():
        raise error

    return act


def held(place):
    return (place / "a" / "b").read_text(encoding="utf-8")


def test_it_takes_its_place_when_it_is_whole(tmp_path):
    place = tmp_path / "new" / "folder"
    with whole_folder(place, lambda folder: False) as draft:
        assert draft.parent == place.parent and list(draft.iterdir()) == []
        assert not place.exists()
    assert os.listdir(place) == []
    fill(place, "first", lambda folder: False)  # an empty folder is nobody's
    fill(place, "second")
    assert held(place) == "second"
    assert os.listdir(tmp_path / "new") == ["folder"]


def test_an_error_leaves_what_was_there(tmp_path):
    place = tmp_path / "folder"
    fill(place, "first")
    for error in (ValueError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            begin_and(place, raising(error))
    with pytest.raises(HeraldError, match=r"No space left on device; .*folder was not written"):
        begin_and(place, raising(OSError(28, "No space left on device")))
    assert held(place) == "first"
    assert os.listdir(tmp_path) == ["folder"]


def test_what_may_not_be_replaced_is_not_even_begun(tmp_path):
    place = tmp_path / "folder"
    fill(place, "first")
    (tmp_path / "file").write_text("", encoding="utf-8")
    for taken, message in ((place, "holds other files"), (tmp_path / "file", "is a file")):
        with pytest.raises(HeraldError, match=message):
            begin_and(taken, pytest.fail, lambda folder: False)
    # It may also have come meanwhile.
    with pytest.raises(HeraldError, match="holds other files"):
        begin_and(tmp_path / "other", lambda: fill(tmp_path / "other", ""), lambda folder: False)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "other"]


def test_where_one_stands_and_behind_a_link(tmp_path, monkeypatch):
    place = tmp_path / "folder"
    fill(place, "first")
    (tmp_path / "link").symlink_to("folder")
    fill(tmp_path / "link", "second")
    assert held(place) == "second" and (tmp_path / "link").is_symlink()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    fill(type(place)("."), "third")
    assert held(tmp_path / "here") == "third"
    assert sorted(os.listdir(tmp_path)) == ["folder", "here", "link"]


def test_what_killed_processes_left_is_removed_after_a_day(tmp_path):
    left = {name: tmp_path / name for name in (".folder.1.partial", ".folder.2.old")}
    young, other = tmp_path / ".folder.3.partial", tmp_path / ".another.1.partial"
    for path in (*left.values(), young, other):
        path.mkdir()
        (path / "file").write_text("", encoding="utf-8")
        if path != young:
            day = time.time() - 2 * 24 * 3600
            os.utime(path, (day, day))
    fill(tmp_path / "folder", "new")
    assert sorted(os.listdir(tmp_path)) == [other.name, young.name, "folder"]
