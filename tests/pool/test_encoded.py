"""Encoded pools: the pool of their logs in every field, however they are cut and read."""

import dataclasses
import json
import threading
from functools import partial
from pathlib import Path

import fsspec
import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from encoded_pools import assert_same_pool, assert_same_rows, both, written
from reference import hostile
from tiny_audits import manifest

from herald_jax.audit import run
from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.parquet import write_parquet
from herald_jax.data.records import OracleRow, Passage, Step, Trajectory
from herald_jax.pool import (
    encoded_checks,
    encoded_chunks,
    encoded_load,
    encoded_parquet,
    encoded_records,
    encoded_write,
)
from herald_jax.pool.encoded import is_encoded, read_contents
from herald_jax.pool.encoded_load import load_encoded
from herald_jax.pool.encoded_write import write_encoded
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool
from herald_jax.pool.store import Folder
from herald_jax.types import HeraldError, InputError

SHAPES = len(hostile.SHAPES)
FORMS = ("parquet", "array_record")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(SHAPES), ids=hostile.shape_name)
def test_a_pool_comes_back_in_every_field(seed, form, tmp_path):
    logs, folder, contents = both(tmp_path, hostile.pool(seed), form)
    encoded = load_encoded(folder)
    assert_same_pool(encoded, logs)
    assert (contents.rows, contents.questions) == (logs.n_rows, len(logs.questions))
    assert contents == read_contents(folder)
    places = [(int(row["file"]), int(row["line"])) for row in logs.rows.table]
    assert encoded.records(places) == {
        # The one field that is not kept: no figure depends on it.
        place: msgspec.structs.replace(record, generated_tokens=None)
        for place, record in logs.records(places).items()
    }


@pytest.mark.parametrize(
    ("seed", "primary"), [(0, "lexical"), (2, "stored"), (10, "lexical")], ids=str
)
def test_the_report_is_that_of_the_logs_to_the_byte(seed, primary, tmp_path):
    settings = manifest(generators={"primary": primary}, sections={"worst_examples": 3})
    expected = None
    for form in FORMS:
        logs, folder, _ = both(tmp_path, hostile.pool(seed), form)
        expected = expected or run(logs, settings).to_json()
        assert run(load_encoded(folder), settings).to_json() == expected


def test_settings_reach_the_rows(tmp_path):
    settings = {"rules": "squad", "assume_no_citations": True}
    seed = list(hostile.SHAPES).index("nothing_logged")
    logs, folder, _ = both(tmp_path, hostile.pool(seed), **settings)
    assert_same_pool(load_encoded(folder, **settings), logs)
    plain = load_pool(*find_pool_files(tmp_path / "logs"))
    assert logs.n_rows > plain.n_rows  # the settings matter here


def test_faults_and_clashes_are_settled_when_it_is_written(tmp_path):
    trajectories, passages, oracle = hostile.pool(1)
    first = trajectories[0]
    trajectories += [
        first,
        {**first, "trajectory_id": "another", "question": "another text"},
        {**first, "trajectory_id": 1.5},
    ]
    files = written(tmp_path / "logs", (trajectories, passages, oracle))
    with pytest.raises(InputError) as refused:
        write_encoded(tmp_path / "encoded", *files)
    assert [fault.code for fault in refused.value.faults] == [
        "duplicate_id",
        "question_disagrees",
        "bad_id",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs"]
    logs, folder, _ = both(tmp_path, (trajectories, passages, oracle), skip_bad_rows=True)
    assert logs.set_aside["bad_row"] == 3
    assert_same_pool(load_encoded(folder), logs)


def several_files(folder: Path):
    """Rows of seven questions in three files of both kinds, rollouts of one question in all."""
    folder.mkdir()
    records = [
        Trajectory(
            f"t{at}",
            f"q{at % 7}",
            f"text {at % 7}",
            [Step("s", [f"p{at % 5}", f"x{at % 3}", "p0"])] * (at % 4),
            None if at % 6 == 0 else f"answer {at % 3}",
            [f"p{at % 5}", "y"][: at % 3],
            model=f"m{at % 2}",
            pool="" if at % 3 else "π",
            rollout=at // 7,
            candidates=[f"p{at % 4}"] if at % 2 else None,
        )
        for at in range(90)
    ]
    write_jsonl(folder / "trajectories-a.jsonl", records[:40])
    write_parquet(folder / "trajectories-b.parquet", records[40:41], Trajectory)
    write_jsonl(folder / "trajectories-c.jsonl", records[41:])
    write_parquet(
        folder / "corpus.parquet", [Passage(f"p{at}", "mill wheel") for at in range(5)], Passage
    )
    write_jsonl(
        folder / "oracle.jsonl",
        [OracleRow(f"q{at}", [f"answer {at % 3}"], ["p1", "z"]) for at in range(7)],
    )
    return find_pool_files(folder)


@pytest.fixture
def cut_small(monkeypatch):
    """Chunks of 16 rows and files of two or three chunks, so that there are several of each."""
    for module in (encoded_parquet, encoded_records, encoded_write):
        monkeypatch.setattr(module, "CHUNK_ROWS", 16)
    monkeypatch.setattr(encoded_parquet, "PART_ROWS", 30)
    monkeypatch.setattr(encoded_records.RecordRows, "batch", 5)


@pytest.mark.parametrize("form", FORMS)
def test_several_files_and_chunks(form, tmp_path, cut_small):
    files = several_files(tmp_path / "logs")
    contents = write_encoded(tmp_path / "encoded", *files, form=form)
    assert len(contents.parts) > 2
    assert sum(contents.parts.values()) == contents.rows == 90
    logs, encoded = load_pool(*files), load_encoded(tmp_path / "encoded")
    assert_same_pool(encoded, logs)
    bounds = np.array([0, 1, 1, 5, 7])
    for number in range(4):
        ours, theirs = (pool.sections(bounds).load(number) for pool in (encoded, logs))
        assert ours.numbers.tolist() == theirs.numbers.tolist()
        assert_same_rows(ours.rows, theirs.rows)


class Threads:
    """Processes that are threads: each waits for the others where it exchanges bytes."""

    def __init__(self, count):
        self.count = count
        self._barrier = threading.Barrier(count, timeout=60)
        self._parts = [[] for _ in range(count)]

    def peer(self, index):
        return Peer(self, index)

    def swap(self, index, parts):
        self._parts[index] = list(parts)
        self._barrier.wait()
        received = [sent[index] for sent in self._parts]
        self._barrier.wait()
        return received

    def run(self, work):
        """What `work` gives for each peer; the first error of any is raised."""
        found = [None] * self.count

        def one(index):
            try:
                found[index] = work(self.peer(index))
            except BaseException as error:
                found[index] = error
                if not isinstance(error, HeraldError):
                    self._barrier.abort()

        threads = [threading.Thread(target=one, args=(index,)) for index in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found


@dataclasses.dataclass
class Peer:
    together: Threads
    index: int

    @property
    def count(self):
        return self.together.count

    def exchange(self, parts):
        return self.together.swap(self.index, parts)

    def gather(self, part):
        return self.together.swap(self.index, [part] * self.count)


@pytest.mark.parametrize("count", [2, 4, 7])
def test_several_processes_share_the_files(count, tmp_path, cut_small, monkeypatch):
    files = several_files(tmp_path / "logs")
    contents = write_encoded(tmp_path / "encoded", *files)
    read = []
    plain = encoded_chunks.ParquetChunks.of

    def recorded(self, path):
        read.append(path.name)
        return plain(self, path)

    monkeypatch.setattr(encoded_chunks.ParquetChunks, "of", recorded)
    logs = load_pool(*files)
    pools = Threads(count).run(lambda peer: load_encoded(tmp_path / "encoded", peers=peer))
    assert sorted(read) == sorted(name.split("/")[1] for name in contents.parts)
    assert [pool.counts.tolist() for pool in pools] == [logs.counts.tolist()] * count
    rows = sum(
        entry.length("rows") for pool in pools for file in pool._files for entry in file.entries
    )
    assert rows == 90
    bounds = np.array([0, 3, 7])

    def shared(peer):
        sections = pools[peer.index].sections(bounds)
        sections._peers = peer
        return sections.share([0, 1, *[None] * (count - 2)])

    first, second, *others = Threads(count).run(shared)
    assert others == [None] * (count - 2)
    for number, section in enumerate((first, second)):
        assert_same_rows(section.rows, logs.sections(bounds).load(number).rows)


def test_a_fault_that_one_process_finds_stops_all_of_them(tmp_path, cut_small):
    files = several_files(tmp_path / "logs")
    write_encoded(tmp_path / "encoded", *files)
    damage(tmp_path / "encoded" / "strings" / "00001.parquet")
    found = Threads(3).run(lambda peer: load_encoded(tmp_path / "encoded", peers=peer))
    assert [type(one) for one in found] == [InputError] * 3
    assert len({str(one) for one in found}) == 1
    assert "00001.parquet" in str(found[0])


def test_records_that_lie_in_the_store_are_not_read_again(tmp_path, cut_small, monkeypatch):
    files = several_files(tmp_path / "logs")
    write_encoded(tmp_path / "encoded", *files, form="array_record")
    store = partial(Folder, tmp_path / "work", pytest.fail)
    first = load_encoded(tmp_path / "encoded", store=store())
    monkeypatch.delattr(encoded_load, "read_record_rows")
    assert_same_rows(load_encoded(tmp_path / "encoded", store=store()).rows, first.rows)


def test_each_chunk_is_decoded_once_when_sections_come_in_order(tmp_path, cut_small, monkeypatch):
    write_encoded(tmp_path / "encoded", *several_files(tmp_path / "logs"))
    decoded = []
    plain = encoded_chunks._rows

    def recorded(group, names):
        decoded.append(len(group))
        return plain(group, names)

    monkeypatch.setattr(encoded_chunks, "_rows", recorded)
    pool = load_encoded(tmp_path / "encoded")
    assert decoded == []  # until somebody asks
    sections = pool.sections(np.arange(8))
    assert sum(len(sections.load(number).rows) for number in range(7)) == 90
    assert sum(decoded) == 90


def test_term_ids_are_read_only_by_those_who_search(tmp_path):
    _, folder, _ = both(tmp_path, hostile.pool(1))
    searching, other = load_encoded(folder), load_encoded(folder, make_index=None)
    assert len(searching.rows.terms.values) > 0
    assert len(other.rows.terms.values) == 0 and other.index is None
    assert len(other.rows) == len(searching.rows)


def damage(path: Path, at: int = -20) -> None:
    """Change one byte of a file, and nothing that tells of it."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.fixture
def encoded(tmp_path):
    """An encoded pool of which nothing is stale."""
    _, folder, _ = both(tmp_path, hostile.pool(1))
    load_encoded(folder)
    return folder


def refusal(folder, **settings) -> str:
    with pytest.raises(InputError) as caught:
        load_encoded(folder, **settings)
    assert {fault.code for fault in caught.value.faults} == {"stale"}
    return str(caught.value)


NAMES = ["corpus.parquet", "oracle.parquet", "rows/00000.parquet", "strings/00000.parquet"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_was_changed_cut_or_removed_is_refused_by_name(name, encoded):
    path = encoded / name
    content = path.read_bytes()
    damage(path, len(content) // 2)
    assert f"{path}: stale: expected the digest" in refusal(encoded)
    path.write_bytes(content[:-1])
    assert f"expected {len(content):,} bytes, as written, got {len(content) - 1:,} bytes" in (
        refusal(encoded)
    )
    path.unlink()
    assert f"{path}: stale: expected the file that was written, got No such file" in (
        refusal(encoded)
    )
    path.write_bytes(content)
    load_encoded(encoded)


def test_all_that_is_stale_is_listed(encoded):
    for name in NAMES:
        damage(encoded / name)
    message = refusal(encoded)
    assert [name for name in NAMES if str(encoded / name) not in message] == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"rules": "squad"},
            'settings.rules: stale: expected data.rules = "squad", as the manifest has it, '
            'got rows that were encoded with "unicode"; encode the originals again',
        ),
        (
            {"assume_no_citations": True},
            "expected data.assume_no_citations = true, as the manifest has it, "
            "got rows that were encoded with false",
        ),
    ],
)
def test_other_settings_are_refused(settings, message, encoded):
    assert message in refusal(encoded, **settings)
    assert str(encoded / "encoded.json") in refusal(encoded, **settings)


def test_rows_without_search_terms_are_refused_by_those_who_search(tmp_path):
    _, folder, _ = both(tmp_path, hostile.pool(1), make_index=None)
    assert "expected search terms, for generators of the manifest that search" in refusal(folder)
    load_encoded(folder, make_index=None)


def test_term_ids_of_other_tokens_are_refused(encoded, monkeypatch):
    monkeypatch.setattr(encoded_load, "vocabulary_digest", lambda index: "0" * 64)
    assert "search terms of other tokens" in refusal(encoded)


def rewritten(folder: Path, change) -> None:
    """Change what `encoded.json` says."""
    path = folder / "encoded.json"
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=0), "expected version 1 of the format, got version 0"),
        (lambda d: d.update(version=2), "expected version 1 of the format, got version 2"),
        (lambda d: d.update(kind="x"), "got x"),
        (lambda d: d.pop("digest"), "expected the record of an encoded pool"),
        (lambda d: d["contents"].pop("rows"), "expected version 1 of the format"),
        (lambda d: d["contents"]["settings"].update(rules="squad"), "got other contents"),
    ],
)
def test_a_record_of_another_version_or_with_other_contents_is_refused(change, message, encoded):
    rewritten(encoded, change)
    assert message in refusal(encoded, rules="unicode")


def test_a_record_that_is_no_json_is_refused(encoded):
    (encoded / "encoded.json").write_text('{"kind":', encoding="utf-8")
    assert is_encoded(encoded)
    assert "expected the record of an encoded pool" in refusal(encoded)


def original(encoded: Path) -> Path:
    return encoded.parent / "logs" / "trajectories.jsonl"


def test_an_original_that_has_changed_is_refused(encoded):
    path = original(encoded)
    content = path.read_text(encoding="utf-8")
    path.write_text(content + "\n", encoding="utf-8")  # longer
    size = len(content.encode())
    assert f"{path}: stale: expected {size:,} bytes" in refusal(encoded)
    path.write_text(content.replace("t", "u", 1), encoding="utf-8")  # as long as before
    assert "as encoded, got the digest" in refusal(encoded)
    path.write_text(content, encoding="utf-8")  # written again, the same
    load_encoded(encoded)


def test_an_original_that_is_gone_is_not_missed(encoded):
    for path in original(encoded).parent.iterdir():
        path.unlink()
    pool = load_encoded(encoded)
    place = (int(pool.rows.table["file"][0]), int(pool.rows.table["line"][0]))
    assert pool.records([place])[place].trajectory_id == pool.rows.name(0)


def test_originals_are_looked_for_where_they_lay_not_from_where_an_audit_is_run(
    tmp_path, monkeypatch
):
    written(tmp_path / "logs", hostile.pool(1))
    monkeypatch.chdir(tmp_path)
    write_encoded(Path("encoded"), *find_pool_files("logs"))
    (tmp_path / "logs" / "oracle.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "logs/oracle.jsonl: stale" in refusal(Path("../encoded"))


@pytest.fixture
def remote(tmp_path):
    """The address of a pool of another machine."""
    system = fsspec.filesystem("memory")
    for path in written(tmp_path / "logs", hostile.pool(1)):
        system.pipe(f"/encoded/{Path(path[0]).name}", Path(path[0]).read_bytes())
    yield "memory://encoded"
    system.rm("/encoded", recursive=True)


def test_a_remote_original_that_has_changed_is_refused(tmp_path, remote):
    write_encoded(tmp_path / "encoded", *find_pool_files(remote))
    load_encoded(tmp_path / "encoded")
    path = f"{remote}/oracle.jsonl"
    with fsspec.open(path) as file:
        content = file.read()
    with fsspec.open(path, "wb") as file:
        file.write(content)  # another time, the same bytes
    load_encoded(tmp_path / "encoded")
    with fsspec.open(path, "wb") as file:
        file.write(content + b"\n")
    assert f"oracle.jsonl: stale: expected {len(content):,} bytes" in refusal(tmp_path / "encoded")


def test_a_remote_original_that_cannot_be_reached_is_not_missed(tmp_path, remote, monkeypatch):
    class NoCredentialsError(Exception):
        pass

    def locked(path):
        raise NoCredentialsError

    write_encoded(tmp_path / "encoded", *find_pool_files(remote))
    monkeypatch.setattr(encoded_checks, "identity", locked)
    load_encoded(tmp_path / "encoded")


def test_a_file_that_is_written_to_meanwhile_is_refused(tmp_path, monkeypatch):
    files = written(tmp_path / "logs", hostile.pool(1))
    plain = encoded_write.write_strings

    def late(path, log):
        with Path(log.name).open("a", encoding="utf-8") as file:
            file.write("\n")
        return plain(path, log)

    monkeypatch.setattr(encoded_write, "write_strings", late)
    with pytest.raises(InputError, match=r"trajectories.jsonl: changed: .*run the same command"):
        write_encoded(tmp_path / "encoded", *files)
    assert not (tmp_path / "encoded").exists()


def full_disk(*arguments):
    raise OSError(28, "No space left on device", "somewhere")


def test_what_lay_there_stays_until_the_new_one_is_whole(encoded, monkeypatch):
    before = {path: path.read_bytes() for path in encoded.rglob("*") if path.is_file()}
    files = find_pool_files(encoded.parent / "logs")
    with monkeypatch.context() as patch:
        patch.setattr(encoded_write, "write_corpus", full_disk)
        with pytest.raises(HeraldError, match=r"No space left on device; .*encoded was not"):
            write_encoded(encoded, *files, rules="squad")
    assert {path: path.read_bytes() for path in encoded.rglob("*") if path.is_file()} == before
    write_encoded(encoded, *files, rules="squad", form="array_record")
    assert read_contents(encoded).settings.rules == "squad"
    assert not (encoded / "rows" / "00000.parquet").exists()
    assert sorted(path.name for path in encoded.parent.iterdir()) == ["encoded", "logs"]


def test_only_an_encoded_pool_or_an_empty_folder_is_replaced(tmp_path):
    files = written(tmp_path / "logs", hostile.pool(1))
    (tmp_path / "encoded").mkdir()
    write_encoded(tmp_path / "encoded", *files)
    with pytest.raises(HeraldError, match=r"logs: holds other files; name a new folder"):
        write_encoded(tmp_path / "logs", *files)
    with pytest.raises(HeraldError, match=r"corpus.jsonl: is a file; name a new folder"):
        write_encoded(tmp_path / "logs" / "corpus.jsonl", *files)
    assert len(list((tmp_path / "logs").iterdir())) == 3


def test_parquet_is_plain_columns(tmp_path):
    logs, folder, _ = both(tmp_path, hostile.pool(2))
    table = pq.read_table(folder / "rows" / "00000.parquet")
    rows = logs.rows
    assert table["retrieved"].to_pylist() == [
        rows.retrieved[row].tolist() for row in range(len(rows))
    ]
    models = [logs.models.all[number] for number in rows.table["model"].tolist()]
    assert table["model"].to_pylist() == models
    assert table["trajectory_id"].to_pylist() == [rows.name(row) for row in range(len(rows))]
    assert table["f1"].to_pylist() == rows.table["f1"].tolist()


def test_what_it_says_of_itself_can_be_read_by_others(encoded):
    said = json.loads((encoded / "encoded.json").read_bytes())
    contents = read_contents(encoded)
    assert said["contents"] == msgspec.to_builtins(contents)
    assert sorted(said["contents"]["files"]) == NAMES
    assert said["version"] == 1
