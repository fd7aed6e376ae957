"""An encoded pool: a folder of integers that a repeated audit reads in place of log files.

    encoded.json      what the folder was made from and holds: settings, originals, digests
    rows/             every judged row as integers, sorted by question (`encoded_parquet`,
                      `encoded_records`)
    strings/          the trajectories as they were logged, for the few that a report shows
    corpus.parquet    passages, sorted by id
    oracle.parquet    questions with their gold labels, sorted by id

Faults, clashes and rows that cannot be judged were settled when it was written. What could make it
stale is checked before it is used (`encoded_checks`).
"""

import hashlib
from pathlib import Path

import msgspec

from herald_jax.pool.ingest import Longest
from herald_jax.search import CorpusIndex
from herald_jax.types import Fault, InputError

# Raised when what is written, or what it means, changes: of the rows, the answer rules, the tokens.
VERSION = 1
CONTENTS = "encoded.json"
CORPUS, ORACLE = "corpus.parquet", "oracle.parquet"
ROWS, STRINGS = "rows", "strings"
PARQUET, ARRAY_RECORD = "parquet", "array_record"
_KIND = "herald-jax encoded pool"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the codes of rows depend on beside the originals.

    Attributes:
        rules: answer rules, `unicode` or `squad`.
        assume_no_citations: citations that were not logged were read as none.
        skip_bad_rows: rows with faults were left out.
        vocabulary: digest of the tokens that the term ids of rows stand for; None where nobody
            searches, and rows have no term ids.
    """

    rules: str
    assume_no_citations: bool
    skip_bad_rows: bool
    vocabulary: str | None


class Original(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was encoded.

    Attributes:
        name: as it was given, and as reports name it.
        kind: `trajectories`, `corpus` or `oracle`.
        place: its absolute path, or its address.
        size: bytes.
        changed: time or tag of its last change.
        sha256: of its bytes.
        rows: rows in it.
    """

    name: str
    kind: str
    place: str
    size: int
    changed: str
    sha256: str
    rows: int


class Written(msgspec.Struct, frozen=True):
    """A file of the folder: its bytes and their SHA-256."""

    size: int
    sha256: str


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """All that `encoded.json` says.

    Attributes:
        herald_jax: version of the package that wrote it.
        form: of the rows, `parquet` or `array_record`.
        settings: what codes depend on.
        originals: files that were encoded, trajectories first.
        rows: rows that can be judged.
        questions: questions of the oracle.
        passages: passages of the corpus.
        longest: what decides shapes and scales.
        models: names of models.
        pools: names of pools.
        set_aside: reason -> rows.
        skipped: faults of the rows counted as `bad_row`.
        warnings: what is legal but suspicious.
        parts: rows of each file of rows, by its path in the folder.
        files: every file of the folder but this one, by its path in the folder.
    """

    herald_jax: str
    form: str
    settings: Settings
    originals: list[Original]
    rows: int
    questions: int
    passages: int
    longest: Longest
    models: list[str]
    pools: list[str]
    set_aside: dict[str, int]
    skipped: list[Fault]
    warnings: list[Fault]
    parts: dict[str, int]
    files: dict[str, Written]

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def logs(self) -> list[Original]:
        """The trajectory files, by number."""
        return [original for original in self.originals if original.kind == "trajectories"]


class _Document(msgspec.Struct, kw_only=True):
    kind: str
    version: int
    digest: str
    contents: msgspec.Raw


def strings_of(number: int) -> str:
    """Path in the folder of the strings of a trajectory file."""
    return f"{STRINGS}/{number:05d}.parquet"


def vocabulary_digest(index: CorpusIndex) -> str:
    """SHA-256 of the tokens of an index, in the order of their term ids."""
    digest = hashlib.sha256()
    for array in index.vocabulary.to_arrays():
        digest.update(array.tobytes())
    return digest.hexdigest()


def is_encoded(folder: Path | str) -> bool:
    """Whether a path names an encoded pool of this machine."""
    return (Path(folder) / CONTENTS).is_file()


def write_contents(folder: Path, contents: Contents) -> None:
    """Write `encoded.json`.

    Raises:
        OSError: it cannot be written.
    """
    document = _Document(
        kind=_KIND,
        version=VERSION,
        digest=contents.digest,
        contents=msgspec.Raw(msgspec.json.encode(contents)),
    )
    text = msgspec.json.format(msgspec.json.encode(document), indent=1)
    (folder / CONTENTS).write_bytes(text + b"\n")


def read_contents(folder: Path) -> Contents:
    """Read `encoded.json`.

    Raises:
        OSError: it cannot be read.
        InputError: it is damaged, or of another version.
    """
    path = folder / CONTENTS
    try:
        document = msgspec.json.decode(path.read_bytes(), type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise refused(path, "the record of an encoded pool", str(error)) from error
    if document.kind != _KIND:
        raise refused(path, _KIND, document.kind)
    if document.version != VERSION:
        got = f"version {document.version}"
        raise refused(path, f"version {VERSION} of the format", got)
    try:
        contents = msgspec.json.decode(document.contents, type=Contents)
    except msgspec.MsgspecError as error:
        raise refused(path, f"version {VERSION} of the format", str(error)) from error
    if contents.digest != document.digest:
        raise refused(path, f"contents with the digest {document.digest[:12]}", "other contents")
    return contents


def stale(path: Path | str, expected: str, got: str, field: str = "") -> Fault:
    """The fault of an encoded pool that may not be used."""
    remedy = "encode the originals again (herald encode), or audit them"
    return Fault(str(path), 0, field, "stale", expected, got, remedy)


def refused(path: Path | str, expected: str, got: str) -> InputError:
    """The same, to be raised."""
    return InputError([stale(path, expected, got)])
