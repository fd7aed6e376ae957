"""Encoded rows as ArrayRecord files that TensorFlow Datasets describes, and Grain reads.

One row is one example: scalars, sequences of integers, names. Neither writing nor reading needs
TensorFlow. `tensorflow_datasets` is imported where it is used: it is an extra, and slow to load.
"""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from herald_jax.data.extras import require_tfds
from herald_jax.data.ragged import Ragged
from herald_jax.pool.encoded_parquet import CHUNK_ROWS, NAMED, SCALARS
from herald_jax.pool.rows import LISTS, ROW, Rows
from herald_jax.pool.sections import Names

NAME, RELEASE, SPLIT = "encoded_rows", "1.0.0", "train"
_INTEGERS = tuple(name for name in SCALARS if ROW[name].kind != "f")
# Examples keep float32 alone, so that these go as the bytes of float64.
_FLOATS = tuple(name for name in SCALARS if ROW[name].kind == "f")
_TEXTS = ("trajectory_id", *NAMED)
_DESCRIPTION = """Logged trajectories of a search agent as integers, one example each.

Ids of passages are ranks in corpus.parquet; numbers from there on are ids that the corpus does not
have, which compare within one row. `question` is the row of oracle.parquet."""


class RecordRows:
    """Writes rows into a TFDS data directory, `CHUNK_ROWS` in each shard.

    Attributes:
        parts: rows of each shard that was begun, by its path in the directory.
    """

    batch = 4096  # rows that are best written at once

    def __init__(self, folder: Path, models: Names, pools: Names) -> None:
        """Begins to write below `folder`.

        Raises:
            HeraldError: TensorFlow Datasets is not installed.
        """
        tfds = require_tfds()
        self.parts: dict[str, int] = {}
        self._builder = _builder(tfds, folder, {"model": models.all, "pool": pools.all})
        Path(self._builder.data_dir).mkdir(parents=True)
        self._writer = tfds.core.SequentialWriter(
            self._builder.info, max_examples_per_shard=CHUNK_ROWS, file_format="array_record"
        )
        self._writer.initialize_splits([SPLIT])

    def __enter__(self) -> "RecordRows":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close_all()

    def write(self, rows: Rows) -> None:
        """Add rows.

        Raises:
            OSError: they cannot be written.
        """
        self._writer.add_examples(
            {SPLIT: [example for _, example in self._builder._generate_examples(rows)]}
        )
        left = len(rows)
        while left:
            shard = next(reversed(self.parts), "")
            if not shard or self.parts[shard] == CHUNK_ROWS:
                shard = f"{NAME}/{RELEASE}/{NAME}-{SPLIT}.array_record-{len(self.parts):05d}"
                self.parts[shard] = 0
            now = min(left, CHUNK_ROWS - self.parts[shard])
            self.parts[shard] += now
            left -= now


def read_record_rows(path: Path, models: Names, pools: Names, terms: bool) -> Rows:
    """The rows of one shard, in the order in which they were written.

    Args:
        path: what `RecordRows` wrote.
        models: names of models of the pool.
        pools: names of its pools.
        terms: whether term ids are wanted; else the lists are empty.

    Raises:
        HeraldError: TensorFlow Datasets is not installed.
        OSError: the shard cannot be read.
    """
    require_tfds()
    from array_record.python.array_record_module import ArrayRecordReader
    from tensorflow_datasets.proto import tf_example_pb2

    reader = ArrayRecordReader(str(path))
    try:
        records = reader.read_all()
    finally:
        reader.close()
    scalars: list[list[int]] = []
    floats: list[bytes] = []
    texts: list[list[bytes]] = []
    values: dict[str, list[int]] = {name: [] for name in LISTS}
    ends: dict[str, list[int]] = {name: [0] for name in LISTS}
    wanted = [name for name in LISTS if terms or name != "terms"]
    for record in records:
        feature = tf_example_pb2.Example.FromString(record).features.feature
        scalars.append([feature[name].int64_list.value[0] for name in _INTEGERS])
        floats += [feature[name].bytes_list.value[0] for name in _FLOATS]
        texts.append([feature[name].bytes_list.value[0] for name in _TEXTS])
        for name in wanted:
            values[name].extend(feature[name].int64_list.value)
        for name in LISTS:
            ends[name].append(len(values[name]))
    table = np.zeros(len(records), ROW)
    for name, column in zip(_INTEGERS, np.array(scalars, np.int64).T, strict=True):
        table[name] = column
    numbers = np.frombuffer(b"".join(floats), "<f8").reshape(len(records), len(_FLOATS))
    for name, column in zip(_FLOATS, numbers.T, strict=True):
        table[name] = column
    ids, *named = zip(*texts, strict=True)
    for name, column, names in zip(NAMED, named, (models, pools), strict=True):
        table[name] = names.numbers([text.decode() for text in column])
    lists = (
        Ragged(np.array(values[name], np.int32), np.array(ends[name], np.int64)) for name in LISTS
    )
    return Rows(table, pa.array(ids, pa.large_binary()), *lists)


def _builder(tfds: ModuleType, folder: Path, names: dict[str, tuple[str, ...]]) -> Any:
    """A builder of rows below `folder`; examples are generated as the rows come, by RecordRows."""
    features = tfds.features

    class EncodedRows(  # type: ignore[call-arg]
        tfds.core.GeneratorBasedBuilder,  # type: ignore[name-defined, misc]
        skip_registration=True,
    ):
        name = NAME
        VERSION = tfds.core.Version(RELEASE)

        def _info(self) -> Any:
            kinds = {name: features.Text() for name in _TEXTS}
            for name in _INTEGERS:
                kinds[name] = features.Scalar(dtype=ROW[name].type)
            for name in _FLOATS:
                kinds[name] = features.Tensor(shape=(), dtype=np.float64, encoding="bytes")
            for name in LISTS:
                kinds[name] = features.Tensor(shape=(None,), dtype=np.int32)
            return tfds.core.DatasetInfo(
                builder=self,
                description=_DESCRIPTION,
                features=features.FeaturesDict(kinds),
                disable_shuffling=True,
            )

        def _split_generators(self, dl_manager: Any) -> Any:
            raise NotImplementedError("there is nothing to download: herald encode writes the rows")

        def _generate_examples(self, rows: Rows) -> Iterator[tuple[int, dict[str, Any]]]:
            columns: dict[str, Any] = {
                "trajectory_id": [name.decode() for name in rows.names.to_pylist()],
                **{name: np.ascontiguousarray(rows.table[name]) for name in SCALARS},
                **dict(zip(LISTS, rows.lists, strict=True)),
            }
            for name in NAMED:
                columns[name] = [names[name][code] for code in rows.table[name].tolist()]
            for row in range(len(rows)):
                yield row, {name: column[row] for name, column in columns.items()}

    return EncodedRows(data_dir=str(folder), file_format="array_record")
