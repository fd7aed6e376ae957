"""A whole audit: every figure of `report.json` but the manifest, the inputs and interval ends."""

import math
from collections import Counter
from collections.abc import Collection, Sequence

from reference.cancellation import cancellation
from reference.cells import cell, mean, table
from reference.generators import Corpus, candidates, exhaustive
from reference.lattice import minimal, subset_name, subsets
from reference.operators import OPERATORS, PRIMARY, Operator
from reference.pairs import Outcome, outcome, trajectory_ids
from reference.pools import SELECTIONS, select
from reference.records import (
    complete_oracle,
    complete_trajectory,
    passage_texts,
    set_aside,
)
from reference.rewards import Judged, contracts, judge, reward, subset_contract
from reference.settings import DETECTORS, Settings
from reference.signal import signal_of_rows
from reference.utility import utility

LAUNDERING = OPERATORS["citation_laundering"]


def audit(
    trajectories: Sequence[dict],
    passages: Sequence[dict],
    oracle: Sequence[dict],
    settings: Settings | None = None,
) -> dict:
    """The report of one pool."""
    return Audit(trajectories, passages, oracle, settings or Settings()).report()


class Audit:
    """The rows of a pool, judged once, and the tables over them."""

    def __init__(
        self,
        trajectories: Sequence[dict],
        passages: Sequence[dict],
        oracle: Sequence[dict],
        settings: Settings,
    ):
        self.settings = settings
        self.golds = {row["question_id"]: row for row in map(complete_oracle, oracle)}
        self.corpus = Corpus(passage_texts(list(passages)), settings.bm25_variant)
        self.contracts = contracts(settings)
        self.remembered: dict[tuple[str, str, int], Outcome] = {}
        logged, self.set_aside = set_aside(
            [complete_trajectory(t, settings.assume_no_citations) for t in trajectories],
            self.golds,
        )
        self.pool = [self.judge(trajectory) for trajectory in logged]
        self.rows = select(settings.selection, self.pool, self.golds, settings)

    def gold(self, trajectory: dict) -> dict:
        return self.golds[trajectory["question_id"]]

    def judge(self, trajectory: dict) -> Judged:
        return judge(trajectory, self.gold(trajectory), self.corpus, self.settings)

    def outcome(self, row: Judged, operator: Operator, ids: Sequence[str] = ()) -> Outcome:
        """What `operator` comes to on a row; `ids` are the candidates of laundering."""
        edits = operator.edits(row.trajectory, self.gold(row.trajectory), self.corpus, ids)
        return outcome(row, [self.judge(edited) for edited in edits], operator, self.settings)

    def laundered(self, row: Judged, generator: str, k: int) -> Outcome:
        """Remembered: the tables by selection, model and pool ask for the same rows again."""
        key = (row.trajectory["trajectory_id"], generator, k)
        if key not in self.remembered:
            ids = candidates(generator, k, row.trajectory, self.corpus)
            self.remembered[key] = self.outcome(row, LAUNDERING, ids)
        return self.remembered[key]

    def laundered_exhaustively(self, row: Judged) -> Outcome:
        ids = exhaustive(row.trajectory, self.gold(row.trajectory), self.corpus)
        return self.outcome(row, LAUNDERING, ids)

    def outcomes(self, rows: Sequence[Judged], operator: Operator) -> list[Outcome]:
        """The operator on every row, laundering with the primary generator."""
        if operator is LAUNDERING:
            generator, k = self.settings.generator, self.settings.candidates
            return [self.laundered(row, generator, k) for row in rows]
        return [self.outcome(row, operator) for row in rows]

    def report(self) -> dict:
        everything = {name: self.outcomes(self.rows, OPERATORS[name]) for name in OPERATORS}
        common = set.intersection(*(trajectory_ids(everything[name]) for name in PRIMARY))
        on_common = {name: only(everything[name], common) for name in OPERATORS}
        found = {
            "schema": 1,
            "rows": len(self.rows),
            "questions": count_questions(self.rows),
            "set_aside": dict(self.set_aside),
            "natural": {name: sum(row.flags[name] for row in self.rows) for name in DETECTORS},
            "mean_reward": self.mean_reward(),
            "operators": {name: self.operator(everything[name], name) for name in OPERATORS},
            "common": {
                "rows": len(common),
                "questions": count_questions([o.original for o in on_common[PRIMARY[0]]]),
            },
            "primary": {name: self.table(on_common[name]) for name in PRIMARY},
            "lattice": self.lattice(on_common),
            "certificate": self.certificate(on_common),
            "cancellation": [],
            "scales": {},
            "budgets": self.budgets(),
        }
        if self.rows:
            found["cancellation"] = cancellation(
                on_common, OPERATORS, self.contracts, self.settings
            )
            found["scales"] = self.scales(on_common)
            found["utility"] = {
                name: utility(self.rows, self.golds, self.contracts[name], self.settings)
                for name in self.contracts
            }
            found["pools"] = {name: self.selection(name) for name in SELECTIONS}
            found["models"] = self.split("model") | {"*": self.attackability(self.rows)}
            found["by_pool"] = self.split("pool")
            found["signal"] = signal_of_rows(self.rows, self.settings)
        return found

    def table(self, outcomes: Sequence[Outcome]) -> dict:
        return table(outcomes, self.contracts, self.settings)

    def mean_reward(self) -> dict[str, float]:
        """Over rows, those whose reward is a number."""
        found = {}
        for name, contract in self.contracts.items():
            rewards = [reward(row, contract) for row in self.rows]
            finite = [value for value in rewards if math.isfinite(value)]
            if finite:
                found[name] = mean(finite)
        return found

    def operator(self, outcomes: Sequence[Outcome], name: str) -> dict:
        status = Counter(o.status for o in outcomes)
        return {
            "status": {
                key: status[key] for key in ("no_edit", "ineligible", "not_isolated", "isolated")
            },
            "oracle": OPERATORS[name].oracle,
            **self.table(outcomes),
        }

    def lattice(self, on_common: dict[str, list[Outcome]]) -> dict:
        """Subsets under which no primary operator ever succeeds on the common set."""
        sufficient = [
            subset
            for subset in subsets(self.settings.lattice)
            if all(self.defeated(on_common[name], subset) for name in PRIMARY)
        ]
        return {
            "detectors": [name for name in DETECTORS if name in self.settings.lattice],
            "sufficient": [subset_name(subset) for subset in sufficient],
            "minimal": [subset_name(subset) for subset in minimal(sufficient)],
        }

    def defeated(self, outcomes: Sequence[Outcome], subset: tuple[str, ...]) -> bool:
        contract = self.contracts[subset_name(subset)]
        found = cell(outcomes, "oracle_worst", contract, self.settings)
        return found["questions"] > 0 and found["asr"] == 0

    def certificate(self, on_common: dict[str, list[Outcome]]) -> dict[str, dict]:
        """Of each lattice detector, on the first operator that targets it."""
        found = {}
        exhaustive_candidates = self.settings.certificate == "exhaustive"
        for detector in DETECTORS:
            operator = next((o for o in OPERATORS.values() if o.target == detector), None)
            if detector not in self.settings.lattice or operator is None:
                continue
            outcomes = on_common[operator.name]
            if exhaustive_candidates and operator is LAUNDERING:
                outcomes = [self.laundered_exhaustively(o.original) for o in outcomes]
            gains = [m for o in outcomes for m in o.margins(self.contracts["R0"])]
            finite = [gain for gain in gains if math.isfinite(gain)]
            if finite:
                penalty = self.settings.penalties[detector]
                slack = penalty - max(finite)
                found[detector] = {
                    "operator": operator.name,
                    "candidates": self.settings.certificate,
                    "max_base_gain": max(finite),
                    "lambda": penalty,
                    "slack": slack,
                    "holds": slack > self.settings.tie_tolerance,
                }
        return found

    def scales(self, on_common: dict[str, list[Outcome]]) -> dict:
        """Oracle-worst on the common set with all λ of the lattice scaled."""
        found: dict[str, dict] = {}
        for scale in self.settings.scales:
            found[f"{scale:g}"] = {name: self.scaled(on_common[name], scale) for name in PRIMARY}
        return found

    def scaled(self, outcomes: Sequence[Outcome], scale: float) -> dict[str, dict]:
        found = {}
        for subset in subsets(self.settings.lattice):
            contract = subset_contract(subset, self.settings, scale)
            figures = cell(outcomes, "oracle_worst", contract, self.settings)
            if figures["questions"]:
                found[subset_name(subset)] = {k: figures[k] for k in ("asr", "mean_margin")}
        return found

    def budgets(self) -> dict:
        """Laundering with a generator at each K, and with every passage by class."""
        name = self.settings.budget_generator
        found = {
            name: {
                str(k): self.table([self.laundered(row, name, k) for row in self.rows])
                for k in self.settings.budgets
            }
        }
        if self.settings.reward is None:
            outcomes = [self.laundered_exhaustively(row) for row in self.rows]
            worst = table(outcomes, self.contracts, self.settings, ["oracle_worst"])
            found["exhaustive"] = {"all": worst}
        return found

    def attackability(self, rows: Sequence[Judged]) -> dict:
        """Laundering with the primary generator on these rows."""
        return self.table(self.outcomes(rows, LAUNDERING))

    def selection(self, name: str) -> dict:
        return self.attackability(select(name, self.pool, self.golds, self.settings))

    def split(self, key: str) -> dict[str, dict]:
        values = sorted({row.trajectory[key] for row in self.rows})
        return {
            value: self.attackability([r for r in self.rows if r.trajectory[key] == value])
            for value in values
        }


def only(outcomes: Sequence[Outcome], ids: Collection[str]) -> list[Outcome]:
    """Those of the named trajectories."""
    return [o for o in outcomes if o.original.trajectory["trajectory_id"] in ids]


def count_questions(rows: Sequence[Judged]) -> int:
    return len({row.trajectory["question_id"] for row in rows})
