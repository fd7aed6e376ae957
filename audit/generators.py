"""Candidate generators for laundering (SPEC section 6): who proposes the passage to cite.

A visible generator is a ranking kernel over the corpus and what the trajectory shows. Its program
is traced before anything runs (`audit.fields`), so that one which could see gold labels is refused.
`stored` takes what the log itself proposes, from any generator that people run outside.
`exhaustive` reads support to stand for all passages by two: it is oracle-only and never primary.
"""

from dataclasses import dataclass

from herald_jax.audit.registry import Registry
from herald_jax.kernels import offers
from herald_jax.kernels.admission import admitted
from herald_jax.kernels.bm25 import bm25_topk
from herald_jax.kernels.lexical import lexical_topk
from herald_jax.kernels.programs import AdmitFn, OfferFn
from herald_jax.search import IndexName, Ranking


@dataclass(frozen=True, kw_only=True)
class Generator:
    """A source of candidates.

    Attributes:
        name: as in manifests and reports.
        oracle: it reads gold labels.
        ranking: the kernel of a visible generator. The boundary check traces it and the audit
            runs it; no other code of the generator is called.
        index: which arrays of the corpus it is over.
        admit: the kernel of a visible generator that takes what the log proposes.
        offer: the kernel of an oracle generator.
    """

    name: str
    oracle: bool
    ranking: Ranking | None = None
    index: IndexName = "lexical_index"
    admit: AdmitFn | None = None
    offer: OfferFn | None = None

    def __post_init__(self) -> None:
        kernels = (self.ranking, self.admit, self.offer)
        if sum(kernel is not None for kernel in kernels) != 1 or self.oracle != bool(self.offer):
            raise ValueError(
                f"generator {self.name!r} must be visible with a ranking or an admission, "
                "or oracle with an offer"
            )


GENERATORS: Registry[Generator] = Registry("generator")
GENERATORS.register(
    Generator(name="lexical", oracle=False, ranking=lexical_topk, index="lexical_index")
)
GENERATORS.register(Generator(name="bm25", oracle=False, ranking=bm25_topk, index="bm25_index"))
GENERATORS.register(Generator(name="stored", oracle=False, admit=admitted))
GENERATORS.register(Generator(name="exhaustive", oracle=True, offer=offers.one_of_each_class))
