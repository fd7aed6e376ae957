"""The same records in Parquet: the columns of SPEC section 1 under an explicit Arrow schema.

The schema is derived from the record classes and never inferred, so that a list that is null stays
apart from an empty one. Files of other writers are read as well: large lists, dictionary columns
and integer id columns hold the same values. Parquet has no missing field, so null in an optional
column reads as its default.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import inspect

from herald_jax.data.checks import Report, convert_all, read_object, reporter
from herald_jax.data.jsonl import Batch
from herald_jax.data.sources import open_input
from herald_jax.types import Fault

R = TypeVar("R", bound=msgspec.Struct)

BATCH_ROWS = 4096


def arrow_schema(kind: type[msgspec.Struct]) -> pa.Schema:
    """Arrow schema of a record class; fields that may be None are nullable, all others are not."""
    return pa.schema(list(_arrow_type(inspect.type_info(kind))[0]))


def write_parquet(path: Path | str, records: Iterable[R], kind: type[R]) -> None:
    """Write records of one class, `BATCH_ROWS` at a time."""
    schema = arrow_schema(kind)
    rows = iter(records)
    with pq.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, BATCH_ROWS)):
            objects = [msgspec.to_builtins(record) for record in batch]
            writer.write_batch(pa.RecordBatch.from_pylist(objects, schema=schema))


def read_parquet(
    path: Path | str, kind: type[R], *, batch_rows: int = BATCH_ROWS
) -> Iterator[Batch[R]]:
    """Stream the records of a Parquet file; the twin of `read_jsonl`, with rows for lines.

    Args:
        path: the file; faults name it as given.
        kind: class of the records.
        batch_rows: rows that are read at a time.

    Yields:
        Batches in the order of the file. Columns that are missing or named twice are faults of the
        whole file, in one batch without records.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: it is not a Parquet file.
    """
    with open_input(path) as source, pq.ParquetFile(source) as file:
        faults = schema_faults(str(path), file.schema_arrow, kind)
        if faults:
            yield Batch([], [], faults, file.metadata.num_rows)
            return
        names = wanted_columns(file.schema_arrow, kind)
        row = 1
        for part in file.iter_batches(batch_size=batch_rows, columns=names):
            yield read_part(str(path), row, part, kind)
            row += part.num_rows


def _arrow_type(kind: inspect.Type) -> tuple[pa.DataType, bool]:
    """The type, and whether it is nullable."""
    match kind:
        case inspect.Metadata(type=inner):
            return _arrow_type(inner)
        case inspect.UnionType(types=(inner, inspect.NoneType())):
            return _arrow_type(inner)[0], True
        case inspect.ListType(item_type=item):
            return pa.list_(pa.field("item", _arrow_type(item)[0], nullable=False)), False
        case inspect.StructType():
            fields = [
                pa.field(field.encode_name, *_arrow_type(field.type)) for field in kind.fields
            ]
            return pa.struct(fields), False
        case inspect.StrType():
            return pa.string(), False
        case inspect.BoolType():
            return pa.bool_(), False
        case inspect.IntType():
            return pa.int64(), False
    raise TypeError(f"records have no field of type {kind}")


def wanted_columns(schema: pa.Schema, kind: type[msgspec.Struct]) -> list[str]:
    """The columns of a file that a record class has fields for."""
    return [name for name in arrow_schema(kind).names if name in schema.names]


def schema_faults(file: str, schema: pa.Schema, kind: type[msgspec.Struct]) -> list[Fault]:
    """Faults of a file as a whole: columns that are missing or named twice."""
    faults: list[Fault] = []
    report = reporter(file, 0, faults)
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        if field.required and name not in schema.names:
            got = f"the columns {', '.join(schema.names)}"
            report(name, "missing_field", f"a column {name}", got, "add or rename the column")
    _repeated_names(list(schema), "", report)
    return faults


def _repeated_names(fields: list[pa.Field], path: str, report: Report) -> None:
    names = [field.name for field in fields]
    for name in sorted({name for name in names if names.count(name) > 1}):
        place = f"{path}.{name}" if path else name
        got = f"{names.count(name)} columns"
        report(place, "duplicate_key", "each column once", got, "keep the one that is meant")
    for field in fields:
        inner = field.type
        while hasattr(inner, "value_type"):
            inner = inner.value_type
        if pa.types.is_struct(inner):
            place = f"{path}.{field.name}" if path else field.name
            nested = [inner.field(at) for at in range(inner.num_fields)]
            _repeated_names(nested, place, report)


def read_part(file: str, first: int, part: pa.RecordBatch, kind: type[R]) -> Batch[R]:
    """The records of one stretch of a file, `first` being the number of its first row."""
    batch: Batch[R] = Batch([], [], [], part.num_rows)
    try:
        records = convert_all(part.to_pylist(), kind)
    except UnicodeDecodeError:
        records = None
    if records is not None:
        return Batch(records, list(range(first, first + part.num_rows)), [], part.num_rows)
    for row in range(part.num_rows):
        report = reporter(file, first + row, batch.faults)
        try:
            (value,) = part.slice(row, 1).to_pylist()
        except UnicodeDecodeError as error:
            got = f"byte 0x{error.object[error.start]:02x}"
            report("", "not_utf8", "UTF-8 text", got, "write the column as UTF-8 strings")
            continue
        record = read_object(value, kind, report, null_is_missing=True)
        if record is not None:
            batch.records.append(record)
            batch.lines.append(first + row)
    return batch
