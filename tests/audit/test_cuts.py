"""However the work is cut, kept or taken up again: the same bytes of the report."""

import importlib
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from audit_comparison import write_pool
from reference import hostile
from reference.records import as_id

from herald_jax.audit import run
from herald_jax.data.jsonl import read_jsonl
from herald_jax.data.parquet import write_parquet
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.manifest import parse_manifest
from herald_jax.pool import logs
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool
from herald_jax.pool.pool import Pool
from herald_jax.pool.store import Folder

# The package's attribute `run` is the function: ask for the module of that name.
RUN = importlib.import_module("herald_jax.audit.run")
MANIFEST = parse_manifest(
    {
        "statistics": {"replicates": 100},
        "generators": {"budget_generators": ["bm25", "stored", "exhaustive"]},
    },
    "test",
)
SHAPES = {
    "mixed": replace(hostile.SHAPES["mixed"], questions=14, rollouts=(0, 17)),
    "no_row_left": hostile.SHAPES["no_gold"],
}
Files = tuple[list[dict], list[dict], list[dict]]


def hostile_files(shape: str) -> Files:
    """A hostile pool of several sections, whose logs propose candidates."""
    rng = random.Random(shape)
    files = hostile.Maker(rng, SHAPES[shape]).pool()
    ids = [as_id(passage["passage_id"]) for passage in files[1]]
    for row in files[0]:
        if rng.random() < 0.8:
            row["candidates"] = rng.choices([*ids, "nowhere"], k=rng.randrange(9))
    return files


def loaded(folder: Path, **options) -> Pool:
    """The pool of a folder; nothing of it was audited before."""
    return load_pool(*find_pool_files(folder), **options)


def bytes_of(pool: Pool, **options) -> bytes:
    """The report but for the names and digests of its files."""
    report = run(pool, MANIFEST, **options)
    report.data.pop("inputs")
    return report.to_json()


@pytest.fixture(scope="module", params=sorted(SHAPES))
def whole(request, tmp_path_factory) -> tuple[Path, bytes]:
    """A folder of files, and their report in one go."""
    folder = tmp_path_factory.mktemp(request.param)
    write_pool(folder, hostile_files(request.param))
    pool = loaded(folder)
    assert pool.n_rows == 0 if request.param == "no_row_left" else pool.n_rows > 60
    return folder, bytes_of(pool)


def sections_of(monkeypatch, rows: int) -> list[int]:
    """Makes sections of about so many rows whatever the block; how many there are is noted."""
    noted = []

    def cut(counts, _):
        bounds = CUT(counts, rows)
        noted.append(len(bounds) - 1)
        return bounds

    monkeypatch.setattr(RUN, "cut", cut)
    return noted


CUT = RUN.cut


@pytest.mark.parametrize("block_rows", [64, 1088])
def test_the_size_of_a_block(whole, block_rows, monkeypatch):
    folder, expected = whole
    assert bytes_of(loaded(folder), block_rows=block_rows) == expected
    monkeypatch.setattr(RUN, "SECTION_ROWS", 1)  # a block is the least that a section holds
    assert bytes_of(loaded(folder), block_rows=block_rows) == expected


@pytest.mark.parametrize("rows", [1, 24])
def test_the_size_of_a_section(whole, rows, monkeypatch):
    folder, expected = whole
    noted = sections_of(monkeypatch, rows)
    pool = loaded(folder)
    assert bytes_of(pool) == expected
    assert noted[0] > 1 or pool.n_rows == 0


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_the_size_of_a_chunk(whole, batch_rows, monkeypatch):
    monkeypatch.setattr(logs, "read_flat", partial(logs.read_flat, batch_rows=batch_rows))
    folder, expected = whole
    assert bytes_of(loaded(folder)) == expected


def split(folder: Path, target: Path, seed: int) -> None:
    """The same records in another order, in several files of either format."""
    rng = random.Random(seed)
    for name, kind in (("trajectories", Trajectory), ("corpus", Passage), ("oracle", OracleRow)):
        lines = (folder / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        rng.shuffle(lines)
        while True:
            count = rng.choice((0, 1, 5, 40)) if seed else len(lines)
            path = target / f"{name}-{rng.randrange(10**6):06}.jsonl"
            path.write_bytes(b"".join(lines[:count]))
            if rng.random() < 0.5:
                records = [one for batch in read_jsonl(path, kind) for one in batch.records]
                assert len(records) == len(lines[:count])
                write_parquet(path.with_suffix(".parquet"), records, kind)
                path.unlink()
            lines = lines[count:]
            if not lines:
                break


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_and_their_files(whole, seed, tmp_path):
    folder, expected = whole
    split(folder, tmp_path, seed)
    pool = loaded(tmp_path)
    assert len(pool.logs) > 1 or seed == 0 or pool.n_rows == 0
    assert bytes_of(pool) == expected


def test_everything_at_once_in_a_work_folder(whole, tmp_path, monkeypatch):
    folder, expected = whole
    files, work = tmp_path / "files", tmp_path / "work"
    files.mkdir()
    split(folder, files, 7)
    sections_of(monkeypatch, 9)
    monkeypatch.setattr(logs, "read_flat", partial(logs.read_flat, batch_rows=5))
    for _ in range(2):  # the second time all is there
        pool = loaded(files, store=Folder(work, pytest.fail))
        assert bytes_of(pool) == expected


class StoppedError(Exception):
    """The audit ended early."""


def interrupted_at(call: int, stage: str = "auditing") -> Callable[[str, int, int], None]:
    """Progress that ends the audit when it is told of a stage for the n-th time."""
    calls = 0

    def progress(name: str, done: int, total: int) -> None:
        nonlocal calls
        calls += name == stage
        if calls == call:
            raise StoppedError

    return progress


def test_an_audit_that_was_interrupted_goes_on(whole, tmp_path, monkeypatch):
    folder, expected = whole
    sections_of(monkeypatch, 24)
    worked = []
    audit = RUN.SectionAudit

    def watched(setup, section, progress):
        worked.append((section.first, section.last))
        return audit(setup, section, progress)

    monkeypatch.setattr(RUN, "SectionAudit", watched)
    for call in (2, 3, 4, 2):
        pool = loaded(folder, store=Folder(tmp_path, pytest.fail))
        if pool.n_rows:
            with pytest.raises(StoppedError):
                run(pool, MANIFEST, progress=interrupted_at(call))
    pool = loaded(folder, store=Folder(tmp_path, pytest.fail))
    assert bytes_of(pool) == expected
    bounds = CUT(pool.counts, 24).tolist()
    # Every section was begun, and none that was finished was begun again.
    assert {first for first, _ in worked} == set(bounds[:-1])
    assert len(worked) <= len(bounds) - 1 + 4


def test_results_that_were_damaged_or_of_other_settings_are_made_again(
    whole, tmp_path, monkeypatch
):
    folder, expected = whole
    sections_of(monkeypatch, 24)
    other = parse_manifest({"detectors": {"max_searches": 1}}, "other")
    run(loaded(folder, store=Folder(tmp_path, pytest.fail)), other)
    said: list[str] = []
    assert bytes_of(loaded(folder, store=Folder(tmp_path, said.append))) == expected
    sections = sorted(tmp_path.glob("section-*.arrays"))
    for path in sections:
        assert any(
            str(path) in message and "other files or settings" in message for message in said
        )
    for path in sections[::2]:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
    said.clear()
    assert bytes_of(loaded(folder, store=Folder(tmp_path, said.append))) == expected
    assert len(said) == len(sections[::2])
    for path, message in zip(sections[::2], said, strict=True):
        assert str(path) in message
