"""The two ways to launder in NumPy: run, put on all cores, compared with ours."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy_idiomatic
import numpy_staged
import synthetic
from kernel_engine import Block, Engine, Sums
from machine import usable_cores
from measured import seconds
from mismatch import Mismatch, compare_block, compare_sums

# Chunks that are tried; the fastest of them is measured.
STAGED_CHUNKS = (2048, 8192, 16384)
IDIOMATIC_CHUNKS = (512, 2048, 8192)


def idiomatic(data: synthetic.Synthetic, engine: Engine, chunk: int) -> list[Any]:
    """All rows; of each chunk only the sums are kept, the rest would fill the memory."""
    kept = []
    for start in range(0, len(data), chunk):
        rows = slice(start, min(start + chunk, len(data)))
        found = numpy_idiomatic.audit_chunk(data, rows, engine.weights, engine.tie_tolerance)
        kept.append((found.counted, found.successes, found.totals))
    return kept


def fastest(chunks: tuple[int, ...], run: Callable[[int], Any]) -> int:
    """The chunk size in which a way is fastest on this machine."""
    return min(chunks, key=lambda chunk: min(seconds(lambda: run(chunk)) for _ in range(2)))


def on_all_cores(parts: list[Block], engine: Engine, chunk: int) -> Callable[[], Any]:
    """Staged NumPy with a thread for each core: its operations let go of the interpreter."""

    def one(part: list[Block]) -> Any:
        return numpy_staged.audit(part, chunk, engine)

    def run() -> None:
        threads = usable_cores()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, [parts[i::threads] for i in range(threads)]))

    return run


def compare_idiomatic(
    data: synthetic.Synthetic, engine: Engine, parts: list[Block], ours: dict[str, Sums]
) -> Mismatch:
    """Every pair and sum of `numpy_idiomatic`."""
    found = Mismatch("idiomatic NumPy")
    kept = []
    for block in parts:
        theirs = numpy_idiomatic.audit_chunk(data, block.rows, engine.weights, engine.tie_tolerance)
        selected = np.stack([theirs.first_visible.T, theirs.oracle_worst.T])
        margins = np.moveaxis(theirs.margins, (0, 1, 2), (2, 1, 0))
        compare_block(found, engine, block, theirs.isolated.T, margins, selected)
        kept.append((theirs.counted[:, 0], theirs.successes, theirs.totals))
    counted = np.concatenate([part[0] for part in kept])
    both = [np.concatenate([part[i] for part in kept], axis=1).swapaxes(1, 2) for i in (1, 2)]
    compare_sums(found, engine, ours, counted, *both)
    return found


def compare_staged(engine: Engine, parts: list[Block], ours: dict[str, Sums]) -> Mismatch:
    """Every pair and sum of `numpy_staged`."""
    found = Mismatch("staged NumPy")
    scratch = numpy_staged.Scratch()
    kept = []
    for block in parts:
        rows = slice(0, block.rows.stop - block.rows.start)
        theirs = numpy_staged.audit_chunk(block, rows, engine.moved, engine.tie_tolerance, scratch)
        margins, selected = theirs.margins[engine.alike], theirs.selected[:, engine.alike]
        compare_block(found, engine, block, theirs.isolated, margins, selected)
        successes, totals = theirs.successes[:, engine.alike], theirs.totals[:, engine.alike]
        kept.append((theirs.counted, successes, totals))
    joined = [np.concatenate([part[i] for part in kept], axis=-1) for i in range(3)]
    compare_sums(found, engine, ours, *joined)
    return found
