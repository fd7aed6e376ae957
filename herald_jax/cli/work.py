"""Where an audit keeps what it has finished: in memory when it is small, else in a folder."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from herald_jax.audit.generators import GENERATORS
from herald_jax.audit.section import wanted_candidates
from herald_jax.cli.console import say
from herald_jax.data.sources import expand, identity
from herald_jax.manifest import Manifest
from herald_jax.pool.find import PoolFiles
from herald_jax.pool.store import Folder, Memory, Store
from herald_jax.search import CorpusIndex, open_index

# Seconds without a change after which nobody writes to an unfinished file any more.
ABANDONED = 3600.0
# Bytes of trajectory files up to which an audit is done so soon that nothing need be kept.
SMALL = 64 << 20


@contextmanager
def work_store(
    work: Path | None, out: Path, sources: PoolFiles, *, clear: bool = True
) -> Iterator[Store]:
    """A store for an audit; a folder that the user did not name goes when the audit is done.

    Args:
        work: a folder that the user named.
        out: where reports go.
        sources: input files.
        clear: whether it falls to this process to remove the folder.
    """
    if work is None and _bytes(sources.trajectories) <= SMALL:
        yield Memory()
        return
    folder = work or out / "work"
    if folder.is_dir() and any(folder.glob("*.arrays")):
        say(f"going on with what {folder} holds")
    remove_abandoned(folder)
    yield Folder(folder, say)
    if work is None and clear:
        with suppress(OSError):
            shutil.rmtree(folder)


def remove_abandoned(folder: Path) -> None:
    """Remove unfinished files that a killed process left."""
    for path in folder.glob(".*.partial"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()


def _bytes(paths: Sequence[str]) -> int:
    total = 0
    for path in expand(paths):
        with suppress(OSError):  # said where it is read
            total += identity(path).size
    return total


def index_maker(
    manifest: Manifest, store: Store
) -> Callable[[list[tuple[str, str]]], CorpusIndex] | None:
    """How the corpus is indexed for this audit; None when nobody searches it.

    The index is kept beside the rows where these are kept.
    """
    wanted = wanted_candidates(manifest, external_base=False)
    if all(GENERATORS[name].ranking is None for name in wanted):
        return None
    settings = manifest.generators

    def make(passages: list[tuple[str, str]]) -> CorpusIndex:
        path = None
        if isinstance(store, Folder):
            store.folder.mkdir(parents=True, exist_ok=True)
            path = store.folder / "index.arrays"
        return open_index(
            path,
            passages,
            k1=settings.bm25_k1,
            b=settings.bm25_b,
            epsilon=settings.bm25_epsilon,
            variant=settings.bm25_variant,
            refused=lambda reason: say(f"{reason}; made again"),
        )

    return make
