"""The verdict of a report in plain words: what the terminal, the page and the Markdown all say.

It is read off `report.json` alone. Three rules keep it honest: *observed* stands beside every
statement, with the generators and the corpus; a rate stands with its denominator; and what had no
eligible question is not measured, which is neither zero nor safe.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from herald_jax.audit.report_cells import Cell, cell_at
from herald_jax.audit.report_names import BASE, FULL, Lattice, operator_order, words
from herald_jax.audit.report_repairs import Repair, find_repairs, repair_sentence
from herald_jax.audit.report_scope import Scope
from herald_jax.pages.numbers import count, quantity, upper_bound

# An exact bound above this says little, and is said in the headline.
WEAK_BOUND = 0.05


class Outcome(StrEnum):
    """What was seen of the base reward under the primary attacks."""

    ATTACKABLE = "attackable"
    NONE_OBSERVED = "no success observed"
    FEW_QUESTIONS = "no success observed, on few questions"
    PARTLY_MEASURED = "partly measured"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Finding:
    """One operator against the base reward.

    Attributes:
        operator: its name.
        primary: whether it decides sufficiency.
        oracle: whether the report says that its edit reads gold labels.
        single: whether the report says that no trajectory had more than one edit to choose from.
        first_visible: the blind attacker, on the common set for a primary operator.
        oracle_worst: the largest margin among all candidates, same rows.
        own_rows: oracle-worst on all rows isolated-eligible for this operator.
    """

    operator: str
    primary: bool
    oracle: bool
    single: bool
    first_visible: Cell
    oracle_worst: Cell
    own_rows: Cell

    @property
    def attackable(self) -> bool:
        """Whether a success was seen, on the common set or outside it."""
        return max(self.oracle_worst.attackable, self.own_rows.attackable) > 0

    @property
    def worst(self) -> Cell:
        """The cell to quote: the common set's unless only the operator's own rows show more."""
        return self.oracle_worst if self.oracle_worst.attackable else self.own_rows

    @property
    def selections(self) -> list[tuple[str, Cell]]:
        """Both selections of the edit in words, as one where they tell no difference."""
        if self.first_visible != self.oracle_worst:
            return [("first-visible", self.first_visible), ("oracle-worst", self.oracle_worst)]
        label = "the only edit" if self.single else "first-visible and oracle-worst alike"
        return [(label, self.oracle_worst)]

    def sentence(self, level: str) -> str:
        """One line: k of n questions, ASR, interval or exact bound."""
        name = words(self.operator).capitalize()
        if not self.oracle_worst.measured and self.own_rows.measured:
            return (
                f"{name}: not measured on the common set; on its own eligible rows "
                f"{self.own_rows.sentence(level)}."
            )
        if self.first_visible == self.oracle_worst:
            return f"{name}: {self.oracle_worst.sentence(level)}."
        return (
            f"{name}: blind attacker {self.first_visible.sentence(level)}; "
            f"oracle-worst {self.oracle_worst.sentence(level)}."
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """A report in plain words.

    Attributes:
        outcome: what was seen. `NONE_OBSERVED` and `FEW_QUESTIONS` alone say that every primary
            attack was measured and none succeeded, the latter where the exact bound is weak.
        headline: one sentence.
        sentences: what it rests on: the scope, then one line a primary operator.
        beyond: which other operators succeeded, "" when none did.
        findings: primary operators, then the others.
        repair: one sentence on the smallest observed repair, or why none can be named.
        repairs: every observed inclusion-minimal subset.
        warnings: why adding more penalties was seen to be weaker, and the like.
        not_measured: what the report cannot speak of, each with its reason.
    """

    outcome: Outcome
    headline: str
    sentences: tuple[str, ...]
    beyond: str
    findings: tuple[Finding, ...]
    repair: str
    repairs: tuple[Repair, ...]
    warnings: tuple[str, ...]
    not_measured: tuple[str, ...]

    def __str__(self) -> str:
        """Plain text for a terminal."""
        blocks = [
            [f"{self.outcome.value.capitalize()}. {self.headline}"],
            [*self.sentences, *([self.beyond] if self.beyond else [])],
            [self.repair, *(c.sentence for r in self.repairs for c in r.certificates)],
            [*self.warnings],
            [f"Not measured: {reason}" for reason in self.not_measured],
        ]
        return "\n\n".join("\n".join(block) for block in blocks if block)


def verdict(report: Mapping[str, Any]) -> Verdict:
    """The verdict on the base reward `R0` of a report.

    Args:
        report: the contents of `report.json` (SPEC section 12); keys beyond those are optional.
    """
    scope, lattice = Scope.of(report), Lattice.of(report)
    findings = tuple(find(report))
    outcome = judge(findings)
    repairs = tuple(find_repairs(report, lattice))
    return Verdict(
        outcome=outcome,
        headline=headline(outcome, findings, scope),
        sentences=(
            *([scope.sentence] if scope.rows else []),
            *(finding.sentence(scope.level) for finding in findings if finding.primary),
        ),
        beyond=further(findings),
        findings=findings,
        repair=repair_sentence(repairs, lattice, scope),
        repairs=repairs,
        warnings=tuple(warnings(report, lattice)),
        not_measured=tuple(gaps(report, findings)),
    )


def find(report: Mapping[str, Any]) -> list[Finding]:
    """What each operator did to the base reward, primary operators first."""
    operators, primary = report.get("operators") or {}, report.get("primary") or {}
    names = [*operator_order(primary), *operator_order(set(operators) - set(primary))]
    found = []
    for name in names:
        own = operators.get(name) or {}
        table = primary.get(name) or own
        found.append(
            Finding(
                operator=name,
                primary=name in primary,
                oracle=bool(own.get("oracle")),
                single=one_edit_each(own),
                first_visible=cell_at(table, "first_visible", BASE),
                oracle_worst=cell_at(table, "oracle_worst", BASE),
                own_rows=cell_at(own, "oracle_worst", BASE),
            )
        )
    return found


def one_edit_each(operator: Mapping[str, Any]) -> bool:
    """Whether an operator made one edit of every trajectory that it could edit at all."""
    edits, status = operator.get("denominators") or {}, operator.get("status") or {}
    edited = sum(rows for reason, rows in status.items() if reason != "no_edit")
    return bool(edited) and edits.get("edits") == edited


def judge(findings: tuple[Finding, ...]) -> Outcome:
    """The outcome for the primary operators; one that was not measured forbids the all-clear."""
    primary = [finding for finding in findings if finding.primary]
    measured = [finding for finding in primary if finding.oracle_worst.measured]
    if any(finding.attackable for finding in primary):
        return Outcome.ATTACKABLE
    if not measured:
        return Outcome.NOT_MEASURED
    if len(measured) < len(primary):
        return Outcome.PARTLY_MEASURED
    return Outcome.FEW_QUESTIONS if weakest(primary) > WEAK_BOUND else Outcome.NONE_OBSERVED


def weakest(findings: Iterable[Finding]) -> float:
    """The largest bound on the share of attackable questions; 1 where one is not known."""
    uppers = [finding.oracle_worst.upper for finding in findings]
    return max((1.0 if upper is None else upper for upper in uppers), default=1.0)


def headline(outcome: Outcome, findings: tuple[Finding, ...], scope: Scope) -> str:
    """The outcome as one sentence with its denominator."""
    primary = [finding for finding in findings if finding.primary]
    if outcome is Outcome.ATTACKABLE:
        worst = max(primary, key=lambda finding: (finding.worst.asr or 0.0, finding.operator))
        return (
            f"On {worst.worst.questions_hit}, a trajectory faked by "
            f"{words(worst.operator)} was observed to score at least as well under the base reward "
            f"{BASE} as the original."
        )
    if outcome in (Outcome.NONE_OBSERVED, Outcome.FEW_QUESTIONS):
        tried = len(primary)
        none = (
            "The primary attack was not"
            if tried == 1
            else f"None of the {tried} primary attacks was"
        )
        seen = (
            f"{none} observed to score as well under the base reward {BASE} as the original, "
            f"on {quantity(scope.common_questions, 'question')}"
        )
        if outcome is Outcome.NONE_OBSERVED:
            return f"{seen}."
        bound = upper_bound(weakest(primary))
        return f"{seen}: too few to rule out that up to {bound} of questions are attackable."
    if outcome is Outcome.PARTLY_MEASURED:
        missing = [words(f.operator) for f in primary if not f.oracle_worst.measured]
        return (
            "No success was observed where it could be measured; "
            f"not measured: {', '.join(missing)}."
        )
    return "There was no eligible question, so nothing can be said about safety."


def further(findings: tuple[Finding, ...]) -> str:
    """The operators beyond the primary ones that succeeded, "" when none did."""
    listed = ", ".join(
        f"{words(f.operator)} on {f.own_rows.questions_hit}"
        + (" (reads gold labels)" if f.oracle else "")
        for f in findings
        if not f.primary and f.attackable
    )
    return f"Beyond the primary attacks also succeeded: {listed}." if listed else ""


def warnings(report: Mapping[str, Any], lattice: Lattice) -> list[str]:
    """What a reader must not miss: a fuller reward that is weaker, margins left out."""
    found = []
    full = {
        name: cell_at(table, "oracle_worst", FULL)
        for name, table in (report.get("primary") or {}).items()
    }
    hit = [name for name in operator_order(full) if full[name].attackable]
    if hit and lattice.sufficient:
        listed = ", ".join(f"{words(name)} on {full[name].questions_hit}" for name in hit)
        found.append(
            f"More penalties were weaker: {FULL} adds every penalty, yet was observed to fail "
            f"against {listed}; a penalty that the edit removes pays for the one it incurs."
        )
    nonfinite = (report.get("nonfinite") or {}).get(BASE)
    if nonfinite:
        found.append(f"Left out because not finite: {quantity(nonfinite, 'margin')} under {BASE}.")
    return found


def gaps(report: Mapping[str, Any], findings: tuple[Finding, ...]) -> list[str]:
    """What was not measured, each with its reason."""
    found = []
    partial = report.get("partial")
    if partial and partial["rows"] < partial["of_rows"]:
        left = partial["of_rows"] - partial["rows"]
        found.append(
            f"{quantity(left, 'trajectory', 'trajectories')} of {count(partial['of_rows'])} not "
            "worked yet: this is a partial report, on the first questions in the order of their "
            "ids, which are no random part of all."
        )
    for reason, rows in (report.get("set_aside") or {}).items():
        if rows:
            found.append(
                f"{quantity(rows, 'trajectory', 'trajectories')} set aside ({words(reason)})."
            )
    if (report.get("corpus") or {}).get("passages") == 0:
        found.append("the corpus has no passages, so that no citation is one of it.")
    if ((report.get("generators") or {}).get("stored") or {}).get("longest") == 0:
        found.append("generator stored: no trajectory logs `candidates`.")
    skipped = report.get("skipped") or []
    if skipped:
        found.append(f"{quantity(len(skipped), 'fault')} in the input, on lines that were skipped.")
    for finding in findings:
        if not finding.own_rows.measured and not finding.oracle_worst.measured:
            found.append(f"{words(finding.operator)}: no eligible question{why(report, finding)}.")
        elif not finding.oracle_worst.measured:
            found.append(f"{words(finding.operator)} on the common set: no eligible question.")
    for section, kind in (("models", "model"), ("pools", "selection"), ("by_pool", "pool")):
        for name, table in (report.get(section) or {}).items():
            if not cell_at(table, "oracle_worst", BASE).measured:
                found.append(f"{kind} {name}: no question eligible for laundering.")
    return found


def why(report: Mapping[str, Any], finding: Finding) -> str:
    """Where the rows of an operator that measured nothing went."""
    status = ((report.get("operators") or {}).get(finding.operator) or {}).get("status") or {}
    parts = [f"{count(rows)} {words(reason)}" for reason, rows in status.items() if rows]
    return f" (rows: {', '.join(parts)})" if parts else ""
