"""Cells of a report from sums per question, worked out by hand."""

import numpy as np
import pytest

from herald_jax.audit.estimates import EMPTY, Estimator, Tally
from herald_jax.manifest import Statistics

SCALE = 16.0  # units of a margin per 1


def tally(*columns, largest=0.5):
    """A tally from columns of (rows, successes, total margin) for each question."""
    rows, successes, totals = np.array(columns, np.float64).transpose(2, 0, 1)
    return Tally(
        rows=rows.astype(np.int32),
        successes=successes.astype(np.int32),
        totals=np.round(totals * SCALE).astype(np.int64),
        largest=np.full(len(columns), largest),
    )


def cells(made, **settings):
    return Estimator(Statistics(**{"replicates": 1000, **settings}), SCALE).cells(made)


# Two rollouts of one question, margins 0.5 and -1.5: one success, total -1. One of another: 0.25.
TWO = [(2, 1, -1.0), (1, 1, 0.25)]


def test_questions_weigh_alike():
    (cell,) = cells(tally(TWO))
    assert cell == {
        "rows": 3,
        "questions": 2,
        "asr": 0.75,  # (1/2 + 1/1) / 2
        # Draws of two questions: the first twice, both, the second twice, with shares 1/4, 1/2 and
        # 1/4. The 2.5 % and 97.5 % points are the ends.
        "asr_interval": [0.5, 1.0],
        "mean_margin": -0.125,  # (-1/2 + 0.25) / 2
        "mean_margin_interval": [-0.5, 0.25],
        "max_margin": 0.5,
        "any_success": 2,
        "upper": 1.0,  # a success in every question
    }


def test_rows_weigh_alike():
    (cell,) = cells(tally(TWO), weighting="row")
    assert cell["asr"] == 2 / 3
    assert cell["mean_margin"] == -0.25  # (-1 + 0.25) / 3
    # Questions are drawn all the same: (1 + 1) / (2 + 2) to (1 + 1) / (1 + 1).
    assert cell["asr_interval"] == [0.5, 1.0]
    assert cell["mean_margin_interval"] == [-0.5, 0.25]  # -2 / 4 to 0.5 / 2
    assert (cell["rows"], cell["questions"], cell["any_success"]) == (3, 2, 2)


def test_the_level_decides_the_interval_and_the_bound():
    # Of the three values the lowest and the highest have shares of 1/4: tails of 30 % cut both off.
    (cell,) = cells(tally(TWO), level=0.4, replicates=5000)
    assert cell["asr_interval"] == [0.75, 0.75]
    failing = [(1, 0, -1.0), (1, 0, -2.0)]
    (cell,) = cells(tally(failing), level=0.75)
    assert cell["upper"] == pytest.approx(0.5)  # 1 - 0.25^(1/2)


@pytest.mark.parametrize("weighting", ["question", "row"])
def test_one_question_has_no_interval(weighting):
    (cell,) = cells(tally([(2, 1, -1.0)]), weighting=weighting)
    assert (cell["asr"], cell["mean_margin"]) == (0.5, -0.5)
    assert cell["asr_interval"] is None
    assert cell["mean_margin_interval"] is None
    assert cell["upper"] == 1.0


@pytest.mark.parametrize("weighting", ["question", "row"])
def test_no_success_has_an_exact_bound_and_no_interval_of_the_rate(weighting):
    (cell,) = cells(tally([(2, 0, -1.0), (1, 0, -0.25)]), weighting=weighting)
    assert (cell["asr"], cell["any_success"], cell["asr_interval"]) == (0.0, 0, None)
    assert cell["upper"] == pytest.approx(1 - 0.05 ** (1 / 2), abs=1e-15)
    assert cell["mean_margin_interval"] is not None


def test_the_bound_of_the_paper():
    (cell,) = cells(tally([(1, 0, -1.0)] * 593))
    assert round(100 * cell["upper"], 5) == 0.50391


def test_some_successes_have_the_clopper_pearson_bound():
    # One success in two: the bound p has P(X <= 1) = 1 - p^2 = 0.05, so p = sqrt(0.95).
    (cell,) = cells(tally([(1, 1, 1.0), (3, 0, -3.0)]))
    assert cell["upper"] == pytest.approx(0.95**0.5, abs=1e-12)


@pytest.mark.parametrize("weighting", ["question", "row"])
@pytest.mark.parametrize("questions", [2, 7, 10])
def test_questions_that_are_all_alike_give_an_interval_of_no_width(weighting, questions):
    # One unit over three rows: 1/48 has no exact float, and its sums round.
    (cell,) = cells(tally([(3, 1, 1 / SCALE)] * questions), weighting=weighting)
    assert cell["mean_margin"] == 1 / 48
    assert cell["mean_margin_interval"] == [1 / 48, 1 / 48]
    assert cell["asr_interval"] == [cell["asr"]] * 2 == [1 / 3, 1 / 3]


def test_the_order_of_questions_changes_no_point():
    generator = np.random.default_rng(0)
    rows = generator.integers(1, 8, 200)
    column = [(int(n), int(generator.integers(0, n + 1)), float(generator.normal())) for n in rows]
    column = [(n, k, round(total * SCALE) / SCALE) for n, k, total in column]
    shuffled = [column[i] for i in generator.permutation(len(column))]
    for weighting in ("question", "row"):
        (one,), (other,) = (cells(tally(c), weighting=weighting) for c in (column, shuffled))
        for name in ("rows", "questions", "asr", "mean_margin", "any_success", "upper"):
            assert one[name] == other[name], name


def test_questions_without_a_row_are_not_there():
    (with_gaps,) = cells(tally([(0, 0, 0.0), TWO[0], (0, 0, 0.0), TWO[1]]))
    assert [with_gaps] == cells(tally(TWO))


def test_nothing_is_not_zero():
    assert cells(tally([(0, 0, 0.0)] * 3)) == [EMPTY] == [{"questions": 0}]


def test_columns_that_saw_other_rows_have_their_own_clusters():
    # The second contract had no number for the second question, the third for none.
    made = tally(TWO, [TWO[0], (0, 0, 0.0)], [(0, 0, 0.0)] * 2)
    whole, part, none = cells(made)
    assert [whole] == cells(tally(TWO))
    assert [part] == cells(tally(TWO[:1]))
    assert none == EMPTY


def test_rows_that_are_alike_may_be_written_once():
    columns = [TWO, [(2, 0, -4.0), (1, 0, -0.5)]]
    whole = tally(*columns)
    once = Tally(whole.rows[:1], whole.successes, whole.totals, whole.largest)
    assert cells(once) == cells(whole) == [cells(tally(column))[0] for column in columns]
