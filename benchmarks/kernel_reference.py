"""The plain reference of `tests/reference` on a sample of questions, and that ours equals it.

Work on strings (F1, query keys, blank answers) is remembered before the clock starts, since the
kernels get the outcome of it as numbers.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import synthetic
from kernel_engine import SELECTORS, Block, Engine, Sums
from mismatch import TOLERANCE, Mismatch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import reference.detectors
import reference.records
import reference.rewards
from reference import cells, operators, pairs
from reference.settings import Settings

OPERATOR = "citation_laundering"
# Selector -> contract -> question -> rows, successes and sum of margins.
Totals = dict[str, dict[str, dict[str, list[float]]]]


@dataclass(frozen=True)
class Sample:
    """Rows of some questions as the reference reads them, with what it needs beside them."""

    rows: NDArray[np.int64]
    records: list[tuple[dict[str, Any], dict[str, Any], list[str]]]
    corpus: set[str]
    settings: Settings

    @classmethod
    def of(cls, data: synthetic.Synthetic, size: int) -> "Sample":
        n_questions = len(data) // synthetic.ROLLOUTS
        chosen = np.linspace(0, n_questions, size // synthetic.ROLLOUTS, endpoint=False, dtype=int)
        rows = (chosen[:, None] * synthetic.ROLLOUTS + np.arange(synthetic.ROLLOUTS)).ravel()
        records = [synthetic.record(data, int(row)) for row in rows]
        return cls(rows, records, synthetic.corpus(), Settings())


@contextmanager
def strings_remembered() -> Iterator[None]:
    """The reference with its work on strings remembered from call to call."""
    places = [
        (reference.rewards, "f1"),
        (reference.detectors, "query_key"),
        (reference.detectors, "is_blank"),
        (reference.records, "is_blank"),
    ]
    before = [getattr(module, name) for module, name in places]
    for (module, name), function in zip(places, before, strict=True):
        setattr(module, name, cache(function))
    try:
        yield
    finally:
        for (module, name), function in zip(places, before, strict=True):
            setattr(module, name, function)


def outcomes(sample: Sample) -> list[pairs.Outcome]:
    """Every row laundered and judged."""
    operator = operators.OPERATORS[OPERATOR]

    def outcome(
        trajectory: dict[str, Any], gold: dict[str, Any], candidates: list[str]
    ) -> pairs.Outcome:
        def judged(one: dict[str, Any]) -> reference.rewards.Judged:
            return reference.rewards.judge(one, gold, sample.corpus, sample.settings)

        edits = operator.edits(trajectory, gold, sample.corpus, candidates)
        made = [judged(edit) for edit in edits]
        return pairs.outcome(judged(trajectory), made, operator, sample.settings)

    return [outcome(*record) for record in sample.records]


def sums(sample: Sample, found: Sequence[pairs.Outcome]) -> Totals:
    """Sums per question under every contract and selector."""
    contracts = reference.rewards.contracts(sample.settings)
    by_selector: Totals = {}
    for selector, select in cells.SELECTORS.items():
        by_selector[selector] = {}
        for name, contract in contracts.items():
            by_question: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0])
            for outcome in found:
                margin = select(outcome, contract)
                if margin is not None:
                    of_question = by_question[outcome.original.trajectory["question_id"]]
                    of_question[0] += 1
                    of_question[1] += cells.success(margin, sample.settings)
                    of_question[2] += margin
            by_selector[selector][name] = by_question
    return by_selector


def audit(sample: Sample) -> None:
    """What is timed."""
    sums(sample, outcomes(sample))


def compare(
    sample: Sample, engine: Engine, blocks: Sequence[Block], ours: dict[str, Sums]
) -> Mismatch:
    """Every pair of the sample, its eligibility, its margins, and the sums of its questions."""
    found = Mismatch("reference")
    by_row = dict(zip(sample.rows.tolist(), outcomes(sample), strict=True))
    contracts = reference.rewards.contracts(sample.settings)
    found.equal("names of contracts", list(contracts), list(engine.names))
    for block in blocks:
        rows = [row for row in range(block.rows.start, block.rows.stop) if row in by_row]
        if rows:
            _compare_block(found, by_row, rows, block, engine, contracts)
    totals = sums(sample, list(by_row.values()))
    questions = np.unique(sample.rows // synthetic.ROLLOUTS)
    for selector in SELECTORS:
        mine = ours[selector]
        for j, of_question in enumerate(totals[selector].values()):
            theirs = np.array([of_question.get(f"q{q}", [0, 0, 0.0]) for q in questions])
            found.equal("rows of questions", mine.rows[j, questions], theirs[:, 0])
            found.equal("successes", mine.successes[j, questions], theirs[:, 1])
            margins = mine.totals[j, questions] / engine.scale
            found.close("sums", margins, theirs[:, 2], TOLERANCE * synthetic.ROLLOUTS)
    return found


def _compare_block(
    found: Mismatch,
    by_row: dict[int, pairs.Outcome],
    rows: list[int],
    block: Block,
    engine: Engine,
    contracts: dict[str, Any],
) -> None:
    known = engine.describe(engine.place(block))
    trial = engine.attempt(known)
    margins, isolated = np.asarray(engine.margins(known)), np.asarray(trial.verdicts.isolated)
    margins = margins[engine.alike]
    selected = {name: np.asarray(getattr(trial.selected, name))[engine.alike] for name in SELECTORS}
    counts = [
        np.asarray(getattr(trial.verdicts, name))
        for name in ("edits", "eligible_edits", "isolated_edits")
    ]
    for row in rows:
        c, outcome = row - block.rows.start, by_row[row]
        found.equal("statuses", _status(*(int(count[c]) for count in counts)), outcome.status)
        found.equal("numbers of pairs", int(isolated[:, c].sum()), len(outcome.pairs))
        if not outcome.pairs:
            continue
        theirs = np.array([outcome.margins(contract) for contract in contracts.values()])
        found.close("margins", margins[:, isolated[:, c], c], theirs, TOLERANCE)
        for selector, select in cells.SELECTORS.items():
            picked = np.array([select(outcome, one) for one in contracts.values()], float)
            found.close(selector, selected[selector][:, c], picked, TOLERANCE)


def _status(edits: int, eligible: int, isolated: int) -> str:
    if isolated:
        return "isolated"
    if eligible:
        return "not_isolated"
    return "ineligible" if edits else "no_edit"
