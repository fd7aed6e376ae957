"""Faults of statistics: what is resampled, intervals without spread, exact bounds.

Of `exact-inference`, nothing in an audit is a test against a null hypothesis, so that its sign-flip
and Monte-Carlo p-values have no counterpart; nor are ties counted apart from other successes.
"""

import math
from pathlib import Path

import numpy as np
import pytest

from herald_jax.audit.estimates import Estimator, Tally
from herald_jax.kernels.bootstrap import (
    bootstrap_intervals,
    bootstrap_replicates,
    point_estimates,
)
from herald_jax.kernels.bounds import clopper_pearson, clopper_pearson_upper
from herald_jax.kernels.programs import sum_questions
from herald_jax.kernels.sums import margin_scale, margin_totals
from herald_jax.manifest import Statistics
from known_faults.cases import Case, Record, exact, number

REPLICATES = 20_000


def _clusters(groups: list[Record]) -> tuple[np.ndarray, np.ndarray]:
    """Sums and numbers of rows of the clusters, as the engine hands them to the bootstrap."""
    sums = np.array([[math.fsum(group["margins"])] for group in groups])
    return sums, np.array([float(len(group["margins"])) for group in groups])


def _cell(margins: list[list[float]], **settings) -> dict:
    """The cell of a report for the margins of some questions."""
    width = max(map(len, margins))
    values = np.full((1, len(margins) * width), np.nan, np.float32)
    for question, row in enumerate(margins):
        values[0, question * width : question * width + len(row)] = row
    bound = float(np.abs(values[np.isfinite(values)]).max(initial=0))
    scale = margin_scale(bound)
    everything = np.ones(values.shape[1], bool)
    sums = sum_questions(values, everything, np.float32(scale), np.float32(0), width=width)
    tally = Tally(
        rows=np.asarray(sums.rows),
        successes=np.asarray(sums.successes),
        totals=margin_totals(sums.high, sums.low),
        largest=np.asarray(sums.largest, np.float64).max(axis=1),
    )
    return Estimator(Statistics(replicates=1000, **settings), scale).cells(tally)[0]


def bootstrap_of_clusters(case: Case, folder: Path) -> None:
    sums, rows = _clusters(case.given["clusters"])
    assert point_estimates(sums, rows)[0] == pytest.approx(number(case.expected["point"]))

    found = bootstrap_replicates(sums, rows, seed=0, replicates=REPLICATES)[:, 0]
    variance = number(case.expected["exact_variance"])
    mean_error = abs(found.mean() - number(case.expected["exact_mean"]))
    assert mean_error <= 5 * math.sqrt(variance / REPLICATES)
    assert found.var() == pytest.approx(variance, rel=0.06)

    support = [number(point["value"]) for point in case.expected["distribution"]]
    place = np.abs(np.subtract.outer(found, support)).argmin(axis=1)
    np.testing.assert_allclose(found, np.array(support)[place], atol=1e-12)
    level = case.given["level"]
    ends = bootstrap_intervals(sums, rows, seed=0, replicates=REPLICATES, level=level)[0]
    for end, right in zip(ends, case.expected["ci95"], strict=True):
        step = np.abs(np.subtract(support, end)).argmin()
        exact_step = np.abs(np.subtract(support, number(right))).argmin()
        assert abs(int(step) - int(exact_step)) <= 1


def bootstrap_in_a_report(case: Case, folder: Path) -> None:
    """Rows weigh alike, questions are drawn: the cell that `weighting = "row"` gives."""
    margins = [group["margins"] for group in case.given["clusters"]]
    cell = _cell(margins, weighting="row", level=case.given["level"])
    assert cell["mean_margin"] == pytest.approx(number(case.expected["point"]), abs=1e-6)
    assert (cell["questions"], cell["rows"]) == (len(margins), sum(map(len, margins)))


def bootstrap_without_spread_or_of_one_cluster(case: Case, folder: Path) -> None:
    alike = case.given["degenerate_clusters"]
    right = [number(end) for end in case.expected["degenerate"]["ci95"]]
    assert bootstrap_intervals(*_clusters(alike), seed=0)[0].tolist() == right
    cell = _cell([group["margins"] for group in alike], weighting="row")
    assert cell["mean_margin_interval"] == pytest.approx(right, abs=1e-6)
    assert len({cell["mean_margin"], *cell["mean_margin_interval"]}) == 1

    single = case.given["single_cluster"]
    assert case.expected["single_cluster"]["ci95"] is None
    with pytest.raises(ValueError, match="clusters"):
        bootstrap_intervals(*_clusters(single), seed=0)
    cell = _cell([group["margins"] for group in single], weighting="row")
    assert (cell["mean_margin_interval"], cell["asr_interval"]) == (None, None)


def exact_bounds(case: Case, folder: Path) -> None:
    for table, two_sided, one_sided in zip(
        case.given["tables"], case.expected["cp95"], case.expected["upper95_one_sided"], strict=True
    ):
        successes, n = table["successes"], table["n"]
        assert clopper_pearson(successes, n) == pytest.approx(tuple(two_sided), abs=1e-9)
        assert clopper_pearson_upper(successes, n) == pytest.approx(one_sided, abs=1e-9)


def successes_and_what_is_not_finite(case: Case, folder: Path) -> None:
    """A tie succeeds, a margin that is not finite is in no rate: each margin its own question."""
    cell = _cell([[float(margin)] for margin in case.given["margins"]])
    valid, expected = case.expected["valid"], case.expected
    assert len(case.given["margins"]) - cell["questions"] == expected["excluded"]
    assert cell["questions"] == valid
    if valid:
        assert cell["any_success"] == expected["successes"]
        assert cell["asr"] == float(exact(expected["asr"]))
        found = clopper_pearson(cell["any_success"], cell["questions"])
        assert found == pytest.approx(tuple(expected["cp95_of_asr"]), abs=1e-9)
