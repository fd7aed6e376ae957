"""The smallest observed repairs of a report, with the certificates of their penalties.

*Observed sufficient* and *inclusion-minimal* are the engine's findings (SPEC section 8), read from
`lattice`; here they get their λ, the slack that certifies each, and what other generators did.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from herald_jax.audit.report_cells import cell_at
from herald_jax.audit.report_names import Lattice, words
from herald_jax.audit.report_scope import Scope
from herald_jax.pages.numbers import count, signed, weight


@dataclass(frozen=True, slots=True)
class Certificate:
    """Whether a penalty exceeds the largest base gain that its operator was seen to make.

    Attributes:
        detector: whose penalty.
        operator: the attack that switches the detector on.
        penalty: λ.
        gain: largest base gain, over the audited pairs.
        slack: λ minus the gain.
        holds: whether the slack is more than the tie tolerance.
        exhaustive: whether the gain is over every passage of the closed corpus.
    """

    detector: str
    operator: str
    penalty: float
    gain: float
    slack: float
    holds: bool
    exhaustive: bool

    @property
    def sentence(self) -> str:
        """The certificate in words."""
        over = "any passage of the closed corpus" if self.exhaustive else "the candidates tried"
        verb = "exceeds" if self.holds else "does not exceed"
        return (
            f"λ = {weight(self.penalty)} of {self.detector} {verb} the largest base gain of "
            f"{words(self.operator)} over {over}, {signed(self.gain, 5)}; "
            f"slack {signed(self.slack, 5)}."
        )


@dataclass(frozen=True, slots=True)
class Repair:
    """An observed inclusion-minimal sufficient subset.

    Attributes:
        contract: its name, `R[L]`; `R0` when no penalty is needed.
        detectors: whose penalties it adds.
        penalties: their λ, None where the report does not say.
        certificates: of these detectors.
        breaches: generators of the budget table with which laundering still succeeds, in words.
        withstood: generators of the budget table with which it does not.
    """

    contract: str
    detectors: tuple[str, ...]
    penalties: tuple[float | None, ...]
    certificates: tuple[Certificate, ...]
    breaches: tuple[str, ...]
    withstood: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The repair in words."""
        if not self.detectors:
            return f"{self.contract} itself: no penalty was needed against the attacks tried."
        added = ", ".join(
            name if value is None else f"{name} (λ = {weight(value)})"
            for name, value in zip(self.detectors, self.penalties, strict=True)
        )
        return f"{self.contract}: the base reward minus a penalty for {added}."


def find_repairs(report: Mapping[str, Any], lattice: Lattice) -> list[Repair]:
    """The observed inclusion-minimal subsets, with their λ and certificates."""
    held = certificates(report)
    described = report.get("contracts") or {}
    repairs = []
    for contract in lattice.minimal:
        detectors = lattice.added(contract)
        penalties = (described.get(contract) or {}).get("penalties") or {}
        known = {c.detector: c.penalty for c in held}
        broken, held_off = further_generators(report, contract)
        repairs.append(
            Repair(
                contract=contract,
                detectors=detectors,
                penalties=tuple(penalties.get(name, known.get(name)) for name in detectors),
                certificates=tuple(c for c in held if c.detector in detectors),
                breaches=broken,
                withstood=held_off,
            )
        )
    return repairs


def certificates(report: Mapping[str, Any]) -> list[Certificate]:
    """The certificates of a report; where one also covers the closed corpus, that one too."""
    made = []
    for detector, entry in (report.get("certificate") or {}).items():
        base = {"detector": detector, "operator": entry["operator"], "penalty": entry["lambda"]}
        made.append(
            Certificate(
                **base,
                gain=entry["max_base_gain"],
                slack=entry["slack"],
                holds=entry["holds"],
                exhaustive=entry.get("candidates") == "exhaustive",
            )
        )
        closed = entry.get("closed_corpus")
        if closed:
            made.append(
                Certificate(
                    **base,
                    gain=closed["max_base_gain"],
                    slack=closed["slack"],
                    holds=closed["holds"],
                    exhaustive=True,
                )
            )
    return made


def further_generators(
    report: Mapping[str, Any], contract: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Generators of the budget table that still succeed under `contract`, and those that do not."""
    broken, withstood = [], []
    for generator, sizes in (report.get("budgets") or {}).items():
        cells = {size: cell_at(table, "oracle_worst", contract) for size, table in sizes.items()}
        worst = max(cells, key=lambda size: cells[size].attackable, default="")
        if not worst or not cells[worst].measured:
            continue
        if cells[worst].attackable:
            broken.append(f"{generator} (K = {worst}) on {cells[worst].questions_hit}")
        else:
            withstood.append(generator)
    return tuple(broken), tuple(withstood)


def repair_sentence(repairs: tuple[Repair, ...], lattice: Lattice, scope: Scope) -> str:
    """The smallest observed repair, or why none can be named."""
    if not scope.common_questions:
        return "No repair can be named: nothing was measured on the common set."
    if not repairs:
        tried = count(2 ** len(lattice.detectors))
        return f"No observed repair: no subset of the lattice's penalties sufficed, {tried} tried."
    lead = "Smallest observed repair" if len(repairs) == 1 else "Observed inclusion-minimal repairs"
    text = f"{lead}: " + " Or ".join(repair.sentence for repair in repairs)
    broken = [f"{r.contract}: {', '.join(r.breaches)}" for r in repairs if r.breaches]
    if broken:
        return f"{text} Other candidate generators still succeed against it ({'; '.join(broken)})."
    withstood = sorted({name for repair in repairs for name in repair.withstood})
    if withstood:
        return (
            f"{text} Laundering candidates from {' and '.join(withstood)} did not succeed either."
        )
    return text
