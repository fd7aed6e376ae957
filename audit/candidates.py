"""Candidates of visible generators for the trajectories of a section (SPEC section 6)."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from herald_jax.audit.generators import GENERATORS, Generator
from herald_jax.audit.operators import Operator
from herald_jax.audit.staging import Block, Codes
from herald_jax.audit.trials import OFFER_WIDTHS
from herald_jax.data.blocks import bucket
from herald_jax.data.ragged import Ragged
from herald_jax.kernels import programs
from herald_jax.pool.rows import Rows
from herald_jax.search import CorpusIndex
from herald_jax.types import PAD

# Lists that a log proposes are padded to one of these, or to the next power of two.
PROPOSED_WIDTHS = (8, 16, 32)

Progress = Callable[[int, int], None]


class Candidates:
    """Ranked candidates of every generator in use, for the rows of one section.

    Args:
        rows: the trajectories.
        wanted: generators by name, and how many candidates each is asked for at most.
        corpus: what is searched; None when none of them searches.
        longest: the longest list that a log of the pool proposes.
        progress: called with a generator's name, searches done and to do.
    """

    def __init__(
        self,
        rows: Rows,
        wanted: Mapping[str, int],
        corpus: CorpusIndex | None,
        longest: int,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._rows = rows
        self._proposed = bucket(longest, PROPOSED_WIDTHS)
        self._ranked: dict[str, Codes] = {}
        for name, k in wanted.items():
            if GENERATORS[name].ranking is None:
                continue
            if corpus is None:
                raise ValueError(f"generator {name!r} searches, and the pool has no index")

            def advance(done: int, of: int, name: str = name) -> None:
                if progress is not None:
                    progress(name, done, of)

            self._ranked[name] = propose(GENERATORS[name], rows, corpus, k, advance)

    def of_block(self, name: str, block: Block, k: int) -> Codes:
        """The first k candidates of a block's rows, padded to one of few widths: int32 [K, B]."""
        width = bucket(k, OFFER_WIDTHS)
        out = np.full((width, len(block.place.rows)), PAD, np.int32)
        admit = GENERATORS[name].admit
        if admit is not None:
            proposed = self._rows.candidates.to_padded(block.place.rows, self._proposed)
            out[:] = programs.admit(
                proposed, block.visible, block.setup.passages, admit=admit, width=width
            )
            out[k:] = PAD
            return out
        found = self._ranked[name][:, :k]
        out[: found.shape[1], block.real] = found[block.place.rows[block.real]].T
        return out


def propose(
    generator: Generator, rows: Rows, corpus: CorpusIndex, k: int, progress: Progress
) -> Codes:
    """Ranked candidates of some rows: int32 [n, k], PAD where there are fewer.

    The generator is given the terms of question and answer and the ids that were retrieved or
    cited, which it must not return; nothing else of the trajectory, and no label.
    """
    if generator.ranking is None:
        raise ValueError(f"generator {generator.name!r} does not rank")
    exclude = Ragged.side_by_side(rows.retrieved, rows.citations)
    ranked, _ = corpus.rank(
        generator.ranking, generator.index, rows.terms, exclude, k, progress=progress
    )
    return ranked


def closed_corpus(operator: Operator, generator: Generator) -> Operator:
    """An operator whose candidates are found by an oracle generator from gold labels."""
    if generator.offer is None:
        raise ValueError(f"generator {generator.name!r} has no offer")
    return replace(operator, offers=generator.offer, oracle=True)
