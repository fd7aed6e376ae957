"""The registry of operators: what SPEC section 5 says of each, tied to the kernel that does it.

An operator is data: the edit itself is a kernel (`kernels.edits`), and what it reads and writes is
read off that kernel's jaxpr, not declared by hand (`audit.fields`).
"""

from dataclasses import dataclass

from herald_jax.audit.registry import Registry
from herald_jax.kernels import edits, offers
from herald_jax.kernels.programs import EditFn, OfferFn
from herald_jax.types import DETECTORS, VISIBLE_FLAGS

# Where the ids come from that an operator writes.
NOTHING = "nothing"  # it writes none
GENERATOR = "generator"  # a candidate generator proposes passages
FAKE = "fake"  # one id outside the corpus


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One kind of edit.

    Attributes:
        name: as in manifests and reports.
        edit: the kernel.
        target: the detector that the edit is to switch on.
        entails: detectors that the edit changes by construction.
        oracle: the edit may read gold labels.
        offers: `NOTHING`, `GENERATOR`, `FAKE`, or the kernel that finds the ids to write.
        each: one edit for each id on offer, else one edit with all of them.
    """

    name: str
    edit: EditFn
    target: str
    entails: tuple[str, ...] = ()
    oracle: bool = False
    offers: str | OfferFn = NOTHING
    each: bool = False

    def __post_init__(self) -> None:
        unknown = {self.target, *self.entails} - set(DETECTORS)
        if unknown:
            raise ValueError(f"operator {self.name!r} names unknown detectors: {sorted(unknown)}")

    def watched(self, min_searches: int) -> tuple[str, ...]:
        """Flags that must not differ on an isolated pair.

        `no_search` and `under_retrieval` are one event while a single search is enough, and then a
        target of one excuses the other.
        """
        free = {self.target, *self.entails}
        twins = {"no_search", "under_retrieval"}
        if min_searches == 1 and self.target in twins:
            free |= twins
        return tuple(name for name in VISIBLE_FLAGS if name not in free)


OPERATORS: Registry[Operator] = Registry("operator")

for _operator in (
    Operator(
        name="same_final_deletion",
        edit=edits.same_final_deletion,
        target="no_search",
        entails=("under_retrieval", "cited_not_retrieved", "repeated_query", "over_retrieval"),
    ),
    Operator(
        name="citation_laundering",
        edit=edits.citation_laundering,
        target="cited_not_retrieved",
        offers=GENERATOR,
        each=True,
    ),
    Operator(
        name="fake_id",
        edit=edits.fake_id,
        target="fake_citation",
        offers=FAKE,
        each=True,
    ),
    Operator(
        name="repeated_query",
        edit=edits.repeated_query,
        target="repeated_query",
        entails=("over_retrieval",),
    ),
    Operator(
        name="citation_drop",
        edit=edits.citation_drop,
        target="answer_without_citation",
        entails=("cited_not_retrieved", "fake_citation"),
    ),
    Operator(
        name="unsupported_citation",
        edit=edits.unsupported_citation,
        target="support_id_mismatch",
        oracle=True,
        offers=offers.unsupported,
    ),
    Operator(
        name="support_id_laundering",
        edit=edits.citation_laundering,
        target="cited_not_retrieved",
        oracle=True,
        offers=offers.unretrieved_support,
        each=True,
    ),
    Operator(
        name="gold_stress",
        edit=edits.gold_stress,
        target="no_search",
        entails=(
            "under_retrieval",
            "cited_not_retrieved",
            "fake_citation",
            "repeated_query",
            "answer_without_citation",
            "over_retrieval",
        ),
        oracle=True,
        offers=offers.support,
    ),
):
    OPERATORS.register(_operator)
