"""A pool encoded once, and its rows ready for an audit, against the files of strings.

Ready are rows that sections have been loaded of, all checks passed: digests, settings, originals.
The same pool (`pools.py`) is loaded from its Parquet files of strings, and from what `herald
encode` wrote of them, as Parquet and as ArrayRecord. Rows of all three are compared in the same
run. ArrayRecord is for training: an example for each row, each decoded by itself.

  python benchmarks/encoded.py --quick
  python benchmarks/encoded.py --rows 1048576 --out benchmarks/results/encoded.json
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from machine import machine
from measured import Row, arguments, finish, lowest, medians, seconds, turns
from pools import Shape, write_pool

from herald_jax.pool.encoded import Contents
from herald_jax.pool.encoded_load import load_encoded
from herald_jax.pool.encoded_parquet import SCALARS
from herald_jax.pool.encoded_write import write_encoded
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool
from herald_jax.pool.pool import Pool
from herald_jax.pool.rows import LISTS, Rows
from herald_jax.pool.sections import cut

FORMS = ("parquet", "array_record")
SECTION_ROWS = 1 << 17  # as an audit takes


def ready(pool: Pool) -> Pool:
    """The pool, all sections loaded once and let go."""
    sections = pool.sections(cut(pool.counts, SECTION_ROWS))
    for number in range(len(sections)):
        sections.load(number)
    return pool


def require_equal(found: Rows, expected: Rows, name: str) -> None:
    """End the benchmark where rows differ."""
    same = [np.array_equal(found.table[field], expected.table[field]) for field in SCALARS]
    for lists in LISTS:
        ours, theirs = getattr(found, lists), getattr(expected, lists)
        same.append(np.array_equal(ours.values, theirs.values))
        same.append(np.array_equal(ours.offsets, theirs.offsets))
    same.append(found.names.equals(expected.names))
    if not all(same):
        raise SystemExit(f"{name}: rows differ from those of the strings")


def described(contents: Contents, spent: float) -> str:
    """How fast it was encoded, and how large it is."""
    sizes: dict[str, int] = {}
    for name, file in contents.files.items():
        part = name.split("/")[0]
        sizes[part] = sizes.get(part, 0) + file.size
    shares = ", ".join(f"{part} {size / contents.rows:.0f} B" for part, size in sizes.items())
    return f"encoded at {contents.rows / spent:,.0f} rows/s; a row takes: {shares}"


def measure(folder: Path, shape: Shape, record_rows: int, rounds: int) -> list[Row]:
    """Both forms against strings; records, which are slow, on fewer rows."""
    rows: list[Row] = []
    for form, size in zip(FORMS, (shape, Shape.of(record_rows)), strict=True):
        logs, out = folder / f"{form}-logs", folder / form
        write_pool(logs, size)
        files = find_pool_files(logs)
        found: list[Contents] = []
        encoding = seconds(
            lambda files=files, out=out, form=form, found=found: found.append(
                write_encoded(out, *files, form=form, make_index=None)
            )
        )
        ways: dict[str, Callable[[], Pool]] = {
            form: lambda out=out: ready(load_encoded(out, make_index=None)),
            "strings": lambda files=files: ready(load_pool(*files, make_index=None)),
        }
        require_equal(ways[form]().rows, ways["strings"]().rows, form)
        spent = turns(ways, rounds)
        middle = medians(spent)
        detail = (
            f"{size.rows:,} rows: {size.rows / middle[form]:,.0f} rows/s, strings "
            f"{size.rows / middle['strings']:,.0f}; lowest ratio of a round "
            f"{lowest(spent[form], spent['strings']):.2f}; {described(found[0], encoding)}"
        )
        rows.append(
            Row(
                name=f"encoded rows ready, {form}",
                seconds=middle[form],
                against="Parquet of strings",
                peer_seconds=middle["strings"],
                detail=detail,
            )
        )
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=262_144)
    parser.add_argument("--record-rows", type=int, default=32_768)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.quick:
        options.rows, options.record_rows, options.rounds = 65_536, 4_096, 3
    before = machine()
    with tempfile.TemporaryDirectory() as name:
        rows = measure(Path(name), Shape.of(options.rows), options.record_rows, options.rounds)
    about = {"rows_of_data": options.rows, "rounds": options.rounds}
    finish(options, "encoded pools to rows ready for an audit", before, rows, **about)


if __name__ == "__main__":
    main()
