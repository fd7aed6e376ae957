import numpy as np
import pytest

from herald_jax.data.arrays_file import ArraysFile, DamagedFileError, write_arrays

ARRAYS = {
    "ids": np.arange(1000, dtype=np.int32),
    "pairs": np.arange(60, dtype=np.float64).reshape(20, 3),
    "bits": np.array([True, False, True]),
    "none": np.zeros((0, 4), np.int64),
    "one": np.array(7, np.uint64),
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.arrays"
    write_arrays(path, ARRAYS, {"what": "rows", "n": 1000})
    return path


def test_arrays_come_back(file):
    opened = ArraysFile(file)
    assert opened.meta == {"what": "rows", "n": 1000}
    assert opened.names == list(ARRAYS)
    for name, array in ARRAYS.items():
        for found in (opened.read(name), opened.map(name)):
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, array)


def test_part_of_an_array(file):
    np.testing.assert_array_equal(ArraysFile(file).part("pairs", 3, 9), ARRAYS["pairs"][3:9])
    assert ArraysFile(file).part("none", 0, 0).shape == (0, 4)


def test_columns_need_not_be_contiguous(tmp_path):
    write_arrays(tmp_path / "a", {"t": ARRAYS["pairs"].T}, {})
    np.testing.assert_array_equal(ArraysFile(tmp_path / "a").read("t"), ARRAYS["pairs"].T)


def test_every_flipped_byte_is_found(file):
    whole = file.read_bytes()
    unused, named = 0, ""
    for at in range(0, len(whole), 7):
        broken = bytearray(whole)
        broken[at] ^= 0x10
        file.write_bytes(broken)
        try:
            ArraysFile(file).check()
            unused += 1
        except DamagedFileError as error:
            named = str(error)
    assert named.startswith(str(file))
    # Only the padding between arrays holds nothing.
    assert unused * 7 < 64 * len(ARRAYS)


def test_a_file_cut_short_is_refused(file):
    whole = file.read_bytes()
    for keep in (0, 5, 40, 200, len(whole) - 64):
        file.write_bytes(whole[:keep])
        with pytest.raises(DamagedFileError, match=r"rows\.arrays"):
            ArraysFile(file)


def test_nothing_is_left_when_writing_fails(tmp_path):
    (tmp_path / "rows.arrays").mkdir()
    with pytest.raises(OSError, match=r"rows\.arrays"):
        write_arrays(tmp_path / "rows.arrays", ARRAYS, {})
    assert [path.name for path in tmp_path.iterdir()] == ["rows.arrays"]
