"""What could make an encoded pool stale: each is looked for, and all that is found is said.

A file of the folder is no longer the one that was written; a setting is another; an original, if it
still lies where it was, has changed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from herald_jax.data.sources import identity, is_remote
from herald_jax.data.tables import digest_of
from herald_jax.pool.encoded import CONTENTS, Contents, Original, Written, stale
from herald_jax.types import Fault

_THREADS = 2  # hashing does not hold the interpreter's lock


def setting_faults(
    folder: Path, contents: Contents, *, rules: str, assume_no_citations: bool, searched: bool
) -> list[Fault]:
    """Settings of an audit that are not those of the encoding.

    Args:
        folder: the encoded pool.
        contents: what it says of itself.
        rules: answer rules of the audit.
        assume_no_citations: of the audit.
        searched: whether the audit searches the corpus.
    """
    settings, path = contents.settings, folder / CONTENTS
    faults = []
    for name, encoded, wanted in (
        ("rules", settings.rules, rules),
        ("assume_no_citations", settings.assume_no_citations, assume_no_citations),
    ):
        if encoded != wanted:
            expected = f"data.{name} = {_toml(wanted)}, as the manifest has it"
            got = f"rows that were encoded with {_toml(encoded)}"
            faults.append(stale(path, expected, got, f"settings.{name}"))
    if searched and settings.vocabulary is None:
        expected = "search terms, for generators of the manifest that search"
        got = "rows that were encoded for a manifest without such"
        faults.append(stale(path, expected, got, "settings.vocabulary"))
    return faults


def file_faults(
    folder: Path, contents: Contents, names: Sequence[str], advance: Callable[[int], None]
) -> list[Fault]:
    """Files of the folder that are missing or not those that were written.

    Args:
        folder: the encoded pool.
        contents: what it says of itself.
        names: files to look at.
        advance: called with the number of files that are done.
    """
    faults = []
    with ThreadPoolExecutor(_THREADS) as threads:
        pending = [
            threads.submit(_file_fault, folder / name, contents.files[name]) for name in names
        ]
        for done, fault in enumerate(pending):
            advance(done)
            if (found := fault.result()) is not None:
                faults.append(found)
    advance(len(names))
    return faults


def original_faults(originals: Sequence[Original]) -> list[Fault]:
    """Originals that have changed since they were encoded; one that is gone is no fault."""
    return [fault for original in originals for fault in _original_faults(original)]


def written(path: Path) -> Written:
    """The record of a file.

    Raises:
        OSError: it cannot be read.
    """
    return Written(path.stat().st_size, digest_of(path))


def _file_fault(path: Path, expected: Written) -> Fault | None:
    try:
        size = path.stat().st_size
        if size != expected.size:
            return stale(path, f"{expected.size:,} bytes, as written", f"{size:,} bytes")
        digest = digest_of(path)
    except OSError as error:
        return stale(path, "the file that was written", error.strerror or str(error))
    if digest != expected.sha256:
        return stale(path, f"the digest {expected.sha256[:12]}, as written", digest[:12])
    return None


def _original_faults(original: Original) -> Iterator[Fault]:
    try:
        now = identity(original.place)
        if (now.size, now.changed) == (original.size, original.changed):
            return
        size = now.size
        digest = digest_of(original.place) if size == original.size else None
    except OSError:
        return
    except Exception:
        # Whatever a library of some cloud raises where there is no network or no key.
        if not is_remote(original.place):
            raise
        return
    if digest != original.sha256:
        expected = f"{original.size:,} bytes with the digest {original.sha256[:12]}, as encoded"
        got = f"{size:,} bytes" if digest is None else f"the digest {digest[:12]}"
        yield stale(original.name, expected, got)


def _toml(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'
