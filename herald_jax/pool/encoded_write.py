"""Encode once: from log files to a folder of integers, whole or not at all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

import herald_jax
from herald_jax.data.ahead import ahead
from herald_jax.data.extras import require_tfds
from herald_jax.data.sources import Identity, expand, identity, is_remote
from herald_jax.pool.encoded import (
    CORPUS,
    ORACLE,
    PARQUET,
    ROWS,
    STRINGS,
    Contents,
    Original,
    Settings,
    is_encoded,
    strings_of,
    vocabulary_digest,
    write_contents,
)
from herald_jax.pool.encoded_checks import written
from herald_jax.pool.encoded_folder import whole_folder
from herald_jax.pool.encoded_labels import write_corpus, write_questions
from herald_jax.pool.encoded_parquet import CHUNK_ROWS, ParquetRows
from herald_jax.pool.encoded_records import RecordRows
from herald_jax.pool.encoded_strings import write_strings
from herald_jax.pool.load import MakeIndex, Progress, load_pool
from herald_jax.pool.logs import FileLog
from herald_jax.pool.pool import Pool
from herald_jax.pool.sections import cut
from herald_jax.pool.store import Folder, Store
from herald_jax.search import CorpusIndex
from herald_jax.types import Fault, InputError

_WORK = "work"
_UNKEPT = "make room, or name a folder with room: --work, which also keeps what was finished"


def write_encoded(
    out: Path,
    trajectories: Sequence[Path | str],
    corpus: Sequence[Path | str],
    oracle: Sequence[Path | str],
    *,
    form: str = PARQUET,
    rules: str = "unicode",
    assume_no_citations: bool = False,
    skip_bad_rows: bool = False,
    make_index: MakeIndex | None = CorpusIndex,
    store: Store | None = None,
    progress: Progress | None = None,
) -> Contents:
    """Encode a pool into a folder that `encoded_load.load_encoded` reads.

    Args:
        out: the folder; an encoded pool that lies there is replaced once the new one is whole.
        trajectories, corpus, oracle, rules, assume_no_citations, skip_bad_rows: as
            `load.load_pool`.
        form: of the rows, `parquet` or `array_record`.
        make_index: as `load.load_pool`; None where no audit of this pool will search the corpus.
        store: where rows go until all are known; a folder within `out` when None.
        progress: called with a stage, how much of it is done, and how much there is (0: unknown).

    Returns:
        What was written.

    Raises:
        InputError: faults, all of them; or a file was changed meanwhile. Nothing was written.
        HeraldError: `out` cannot be written or holds something else; or TensorFlow Datasets is not
            installed, for `array_record`.
    """
    draw = progress or _silent
    if form != PARQUET:
        require_tfds()
    kinds = {"trajectories": trajectories, "corpus": corpus, "oracle": oracle}
    files = {kind: expand(paths) for kind, paths in kinds.items()}
    with whole_folder(out, is_encoded) as draft:
        before = dict(_identities(files))
        pool = load_pool(
            *files.values(),
            rules=rules,
            assume_no_citations=assume_no_citations,
            skip_bad_rows=skip_bad_rows,
            make_index=make_index,
            store=store or Folder(draft / _WORK, _ignore, remedy=_UNKEPT),
            progress=draw,
        )
        parts = _write_rows(draft, pool, form, draw)
        _write_strings(draft, files["trajectories"], pool, draw)
        write_corpus(draft / CORPUS, pool.passages)
        write_questions(draft / ORACLE, pool.questions, pool.ids)
        _remove(draft / _WORK)
        _require_unchanged(before, dict(_identities(files)))
        names = _files(draft)
        contents = Contents(
            herald_jax=herald_jax.__version__,
            form=form,
            settings=Settings(
                rules=rules,
                assume_no_citations=assume_no_citations,
                skip_bad_rows=skip_bad_rows,
                vocabulary=None if pool.index is None else vocabulary_digest(pool.index),
            ),
            originals=[
                _original(name, kind, before[name], pool)
                for kind, paths in files.items()
                for name in paths
            ],
            rows=pool.n_rows,
            questions=len(pool.questions),
            passages=len(pool.passages),
            longest=pool.longest,
            models=list(pool.models.all),
            pools=list(pool.pools.all),
            set_aside=pool.set_aside,
            skipped=pool.skipped,
            warnings=pool.warnings,
            parts={f"{ROWS}/{name}": rows for name, rows in parts.items()},
            files={name: written(draft / name) for name in _told(names, "digest files", draw)},
        )
        write_contents(draft, contents)
    return contents


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total


def _ignore(message: str) -> None:
    del message  # the store was made a moment ago: nothing in it can be old


def _identities(files: dict[str, list[str]]) -> Iterator[tuple[str, Identity]]:
    for paths in files.values():
        for path in paths:
            with suppress(OSError):  # said where it is read
                yield path, identity(path)


def _require_unchanged(before: dict[str, Identity], after: dict[str, Identity]) -> None:
    """Refuse rows of one state of a file beside strings of another.

    Raises:
        InputError: a file has changed.
    """
    faults = [
        Fault(
            file=name,
            line=0,
            field="",
            code="changed",
            expected="a file that stays as it is while it is encoded",
            got="another size or time of its last change",
            remedy="run the same command again when nobody writes to it",
        )
        for name, found in before.items()
        if after.get(name) != found
    ]
    if faults:
        raise InputError(faults)


def _write_rows(folder: Path, pool: Pool, form: str, draw: Progress) -> dict[str, int]:
    """All rows, section by section; the rows of each file, by its path below `ROWS`."""
    (folder / ROWS).mkdir()
    sections = pool.sections(cut(pool.counts, CHUNK_ROWS))
    writer = ParquetRows if form == PARQUET else RecordRows
    done, total = 0, pool.n_rows
    with writer(folder / ROWS, pool.models, pool.pools) as file:
        for section in ahead(map(sections.load, range(len(sections)))):
            for first in range(0, len(section.rows), writer.batch):
                last = min(first + writer.batch, len(section.rows))
                file.write(section.rows.take(np.arange(first, last)))
                draw("write rows", done + last, total)
            done += len(section.rows)
    return file.parts


def _write_strings(folder: Path, paths: Sequence[str], pool: Pool, draw: Progress) -> None:
    (folder / STRINGS).mkdir()
    total = sum(int(pool.inputs[path]["rows"]) for path in paths)
    before = 0
    for number, path in enumerate(paths):
        done = 0
        for done in write_strings(folder / strings_of(number), FileLog(path)):
            draw("write strings", before + done, total)
        before += done


def _files(folder: Path) -> list[str]:
    """Everything in the folder, by path in it."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _told(names: Sequence[str], stage: str, draw: Progress) -> Iterator[str]:
    for done, name in enumerate(names):
        draw(stage, done, len(names))
        yield name
    draw(stage, len(names), len(names))


def _original(name: str, kind: str, found: Identity, pool: Pool) -> Original:
    entry = pool.inputs[name]
    return Original(
        name=name,
        kind=kind,
        place=name if is_remote(name) else os.path.abspath(name),
        size=found.size,
        changed=found.changed,
        sha256=str(entry["sha256"]),
        rows=int(entry["rows"]),
    )


def _remove(folder: Path) -> None:
    if folder.is_dir():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
