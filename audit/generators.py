"""Candidate generators for laundering (SPEC section 6): who proposes the passage to cite.

A visible generator is a ranking kernel over the corpus and what the trajectory shows. Its program
is traced before anything runs (`audit.fields`), so that one which could see gold labels is refused.
`exhaustive` reads support to stand for all passages by two: it is oracle-only and never primary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np
import numpy.typing as npt

from herald_jax.audit.registry import Registry
from herald_jax.kernels import offers
from herald_jax.kernels.bm25 import bm25_topk
from herald_jax.kernels.lexical import lexical_topk
from herald_jax.kernels.programs import OfferFn
from herald_jax.search import CorpusIndex

Codes = npt.NDArray[np.int32]
Progress = Callable[[int, int], None]


class Ranking(Protocol):
    """A kernel that ranks the corpus for n trajectories."""

    def __call__(
        self, index: Any, query: jax.Array, taken: jax.Array, *, k: int
    ) -> tuple[jax.Array, jax.Array]:
        """Rank.

        Args:
            index: arrays of the corpus.
            query: int32 [n, L] terms of question and answer.
            taken: int32 [n, X] codes of E ∪ C, which are no candidates.
            k: how many.

        Returns:
            Codes int32 [n, k], PAD where fewer, and their scores.
        """


class Search(Protocol):
    """The same ranking over texts: `CorpusIndex.bm25` and its like."""

    def __call__(
        self,
        corpus: CorpusIndex,
        texts: Sequence[str],
        taken: Sequence[Codes],
        k: int,
        progress: Progress | None,
    ) -> Codes:
        """Rank for n texts and n lists of taken codes: int32 [n, k]."""


@dataclass(frozen=True, kw_only=True)
class Generator:
    """A source of candidates.

    Attributes:
        name: as in manifests and reports.
        oracle: it reads gold labels.
        ranking: the kernel of a visible generator, which the boundary check traces.
        index: its arrays, out of the corpus.
        search: the same ranking over texts, which the audit calls.
        offer: the kernel of an oracle generator.
    """

    name: str
    oracle: bool
    ranking: Ranking | None = None
    index: Callable[[CorpusIndex], Any] | None = None
    search: Search | None = None
    offer: OfferFn | None = None

    def __post_init__(self) -> None:
        ranks = self.ranking is not None and self.search is not None
        if self.oracle == ranks or ranks == (self.offer is not None):
            raise ValueError(
                f"generator {self.name!r} must be visible with a ranking and a search, or "
                "oracle with an offer"
            )


def _bm25(
    corpus: CorpusIndex,
    texts: Sequence[str],
    taken: Sequence[Codes],
    k: int,
    progress: Progress | None,
) -> Codes:
    return corpus.bm25(texts, taken, k, progress=progress)[0]


def _lexical(
    corpus: CorpusIndex,
    texts: Sequence[str],
    taken: Sequence[Codes],
    k: int,
    progress: Progress | None,
) -> Codes:
    return corpus.lexical(texts, taken, k, progress=progress)[0]


GENERATORS: Registry[Generator] = Registry("generator")
GENERATORS.register(
    Generator(
        name="lexical",
        oracle=False,
        ranking=lexical_topk,
        index=lambda corpus: corpus.lexical_index,
        search=_lexical,
    )
)
GENERATORS.register(
    Generator(
        name="bm25",
        oracle=False,
        ranking=bm25_topk,
        index=lambda corpus: corpus.bm25_index,
        search=_bm25,
    )
)
GENERATORS.register(Generator(name="exhaustive", oracle=True, offer=offers.one_of_each_class))
