"""The audit of `end_to_end.toml` in plain Python, from Parquet to figures, by `tests/reference`.

The same tables as `herald audit` writes with that manifest, but for intervals: the reference has no
bootstrap, which is work that it is spared.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from reference.audit import LAUNDERING, Audit, count_questions, only
from reference.generators import seen_ids
from reference.operators import OPERATORS, PRIMARY, Operator
from reference.pairs import Outcome, trajectory_ids
from reference.records import complete_oracle, complete_trajectory, set_aside
from reference.rewards import Judged, contracts
from reference.settings import DETECTORS, Settings

# Margins are float32, their sums fixed-point.
TOLERANCE = 2e-6


class PlainAudit(Audit):
    """The reference with the candidates that the log proposes, and the primary operators alone."""

    def __init__(
        self,
        trajectories: Sequence[dict[str, Any]],
        passages: Sequence[str],
        oracle: Sequence[dict[str, Any]],
    ) -> None:
        self.settings = Settings()
        self.golds = {row["question_id"]: row for row in map(complete_oracle, oracle)}
        self.corpus = frozenset(passages)
        self.contracts = contracts(self.settings)
        self.proposed = {row["trajectory_id"]: row["candidates"] for row in trajectories}
        logged, self.set_aside = set_aside(list(map(complete_trajectory, trajectories)), self.golds)
        self.pool = self.rows = [self.judge(trajectory) for trajectory in logged]

    def outcomes(self, rows: Sequence[Judged], operator: Operator) -> list[Outcome]:
        """The operator on every row."""
        if operator is not LAUNDERING:
            return [self.outcome(row, operator) for row in rows]
        return [self.outcome(row, operator, self.candidates(row.trajectory)) for row in rows]

    def candidates(self, trajectory: dict[str, Any]) -> list[str]:
        """The first distinct passages of P \\ (E ∪ C) among those proposed."""
        seen = seen_ids(trajectory)
        proposed = dict.fromkeys(self.proposed[trajectory["trajectory_id"]])
        free = [id_ for id_ in proposed if id_ in self.corpus and id_ not in seen]
        return free[: self.settings.candidates]

    def report(self) -> dict[str, Any]:
        everything = {name: self.outcomes(self.rows, OPERATORS[name]) for name in PRIMARY}
        common = set.intersection(*(trajectory_ids(everything[name]) for name in PRIMARY))
        on_common = {name: only(everything[name], common) for name in PRIMARY}
        return {
            "rows": len(self.rows),
            "questions": count_questions(self.rows),
            "natural": {name: sum(row.flags[name] for row in self.rows) for name in DETECTORS},
            "mean_reward": self.mean_reward(),
            "operators": {name: self.operator(everything[name], name) for name in PRIMARY},
            "common": {
                "rows": len(common),
                "questions": count_questions([o.original for o in on_common[PRIMARY[0]]]),
            },
            "primary": {name: self.table(on_common[name]) for name in PRIMARY},
            "lattice": self.lattice(on_common),
            "certificate": self.certificate(on_common),
        }


def plain_report(folder: Path) -> dict[str, Any]:
    """The figures of a pool."""
    trajectories = [
        row for path in sorted(folder.glob("trajectories*.parquet")) for row in records(path)
    ]
    passages = [row["passage_id"] for row in records(folder / "corpus.parquet")]
    return PlainAudit(trajectories, passages, records(folder / "oracle.parquet")).report()


def records(path: Path) -> list[dict[str, Any]]:
    """The rows of a Parquet file as dicts."""
    return pq.read_table(path).to_pylist()


def differences(expected: Any, found: Any, path: str = "report") -> Iterator[str]:
    """Every figure of the reference that a report lacks or has otherwise."""
    if isinstance(expected, Mapping):
        for key, value in expected.items():
            if not isinstance(found, Mapping) or key not in found:
                # What never occurred need not be counted.
                if value not in (0, {}):
                    yield f"{path}.{key}: missing"
            else:
                yield from differences(value, found[key], f"{path}.{key}")
    elif isinstance(expected, float) and isinstance(found, int | float):
        if not math.isclose(expected, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{path}: {found} instead of {expected}"
    elif expected != found:
        yield f"{path}: {found} instead of {expected}"


def figures(report: Any) -> int:
    """How many figures a report has."""
    if isinstance(report, Mapping):
        return sum(figures(value) for value in report.values())
    return 1
