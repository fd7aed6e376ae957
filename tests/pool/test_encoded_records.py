"""ArrayRecord files of rows as TensorFlow Datasets and Grain see them, without TensorFlow."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from encoded_pools import both, written
from reference import hostile

from herald_jax.pool import encoded_records
from herald_jax.pool.encoded_write import write_encoded
from herald_jax.types import HeraldError

PLACE = Path("rows") / "encoded_rows" / "1.0.0"
SEEDS = [0, 1, 3, 10]


@pytest.fixture(params=SEEDS, ids=hostile.shape_name)
def encoded(request, tmp_path, monkeypatch):
    """One pool in both forms: the folder of records, and the rows of the Parquet one."""
    monkeypatch.setattr(encoded_records, "CHUNK_ROWS", 5)  # several shards
    records = hostile.pool(request.param)
    both(tmp_path / "a", records)
    _, folder, _ = both(tmp_path / "b", records, "array_record")
    return folder, pq.read_table(tmp_path / "a" / "encoded" / "rows" / "00000.parquet").to_pylist()


def plain(example):
    """An example as Python values."""

    def value(item):
        if isinstance(item, np.ndarray):
            return item.tolist()
        return item.decode() if isinstance(item, bytes) else item

    return {name: value(item) for name, item in example.items()}


def test_tfds_opens_what_was_written_and_gives_the_rows_back(encoded):
    import tensorflow_datasets as tfds

    folder, rows = encoded
    builder = tfds.builder_from_directory(folder / PLACE)
    assert builder.info.splits["train"].num_examples == len(rows)
    assert builder.info.splits["train"].shard_lengths == [
        min(5, len(rows) - first) for first in range(0, len(rows), 5)
    ]
    source = builder.as_data_source("train")
    assert [plain(source[at]) for at in range(len(source))] == rows
    source = tfds.data_source("encoded_rows", data_dir=folder / "rows", split="train")
    assert [plain(example) for example in source] == rows
    (first,) = source.__getitems__([0])
    assert first["retrieved"].dtype == np.int32
    assert first["f1"].dtype == np.float64


def test_grain_reads_it(encoded):
    grain = pytest.importorskip("grain")
    import tensorflow_datasets as tfds

    folder, rows = encoded
    source = tfds.data_source("encoded_rows", data_dir=folder / "rows", split="train")
    lines = grain.MapDataset.source(source).map(lambda example: example["line"])
    assert list(lines) == [row["line"] for row in rows]
    shuffled = list(lines.seed(1).shuffle())
    assert sorted(shuffled) == sorted(lines)
    loader = grain.DataLoader(
        data_source=source,
        sampler=grain.samplers.IndexSampler(len(source), num_epochs=1, seed=0),
        operations=[],
        worker_count=0,
    )
    assert sorted(example["line"] for example in loader) == sorted(row["line"] for row in rows)


def test_nothing_of_it_needs_tensorflow(tmp_path):
    written(tmp_path / "logs", hostile.pool(1))
    program = """
import sys
from pathlib import Path
from herald_jax.pool.encoded_load import load_encoded
from herald_jax.pool.encoded_write import write_encoded
from herald_jax.pool.find import find_pool_files
write_encoded(Path("encoded"), *find_pool_files("logs"), form="array_record")
print(load_encoded(Path("encoded")).n_rows)
import tensorflow_datasets as tfds
print(len(tfds.data_source("encoded_rows", data_dir="encoded/rows", split="train")))
print("tensorflow" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second, loaded = done.stdout.split()
    assert first == second and int(first) > 0
    assert loaded == "False"


def test_without_the_extra_it_is_said_what_to_install(tmp_path, monkeypatch):
    files = written(tmp_path / "logs", hostile.pool(1))
    for module in ("tensorflow_datasets", "array_record.python.array_record_module"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(HeraldError, match=r"pip install 'herald-jax\[tfds\]'"):
                write_encoded(tmp_path / "encoded", *files, form="array_record")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs"]


def test_a_pool_without_rows_is_written_and_read(tmp_path):
    logs, folder, contents = both(tmp_path, hostile.pool(13), "array_record")
    assert logs.n_rows == contents.rows == 0
    assert contents.parts == {}
    assert (folder / PLACE / "dataset_info.json").exists()
