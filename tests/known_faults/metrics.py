"""Faults of answer metrics and of the scores of a support set.

Of `support-joint`, the joint score and F1 and exact match of the support set are no figures of an
audit; its answer scores, and precision and recall of the set, are here.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pool_blocks import oracle_of, visible_of

from herald_jax.data.metrics import contains, exact_match, f1
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.data.text import normalise
from herald_jax.kernels.features import FeatureWeights, grounding
from herald_jax.kernels.membership import describe_labels, describe_state
from herald_jax.pool.load import pool_from_records
from known_faults.cases import Case, number


def answer_metrics(case: Case, folder: Path) -> None:
    for row in case.given["rows"]:
        scores = case.expected["by_trajectory"][row["trajectory_id"]]
        answer, golds = row["answer"], row["oracle_answers"]
        assert exact_match(answer, golds) == scores["em"], row
        assert f1(answer, golds) == number(scores["f1"]), row
        assert contains(answer, golds) == scores["contains"], row


def unicode_normalisation(case: Case, folder: Path) -> None:
    for row in case.given["rows"]:
        answer, golds, name = row["answer"], row["oracle_answers"], row["trajectory_id"]
        for ours, theirs in (("unicode", "unicode"), ("squad", "squad_ascii")):
            assert exact_match(answer, golds, ours) == case.expected["em"][name][theirs], row
        forms = case.expected["unicode_normal_form"][name]
        assert [normalise(text) for text in (answer, *golds)] == forms


def support_joint(case: Case, folder: Path) -> None:
    rows = case.given["rows"]
    names = {name for row in rows for name in row["citations"] + row["support_ids"]}
    pool = pool_from_records(
        [
            Trajectory(
                row["trajectory_id"], row["trajectory_id"], "?", [], row["answer"], row["citations"]
            )
            for row in rows
        ],
        [Passage(name, "") for name in names],
        [
            OracleRow(row["trajectory_id"], row["oracle_answers"], row["support_ids"])
            for row in rows
        ],
        rules="squad",
    )
    numbers = np.arange(len(pool.rows), dtype=np.int32)

    def set_scores(visible, oracle):
        state = describe_state(visible, jnp.int32(pool.ids.corpus_size))
        gold = describe_labels(visible.citations, visible.citations, oracle)
        none = jnp.zeros(())
        shares = [
            FeatureWeights(precision=none + p, recall=none + (1 - p), hacking=none) for p in (1, 0)
        ]
        return [grounding(state, gold.support, gold.n_support, share) for share in shares]

    precision, recall = jax.vmap(set_scores, in_axes=-1)(
        visible_of(pool, numbers), oracle_of(pool, numbers)
    )
    table, support = pool.rows.table, pool.questions.support
    for row, record in enumerate(pool.records_of(pool.rows)):
        scores = case.expected["by_trajectory"][record.trajectory_id]
        assert table["em"][row] == scores["answer_em"]
        assert table["f1"][row] == pytest.approx(number(scores["answer_f1"]), abs=1e-12)
        has_support = bool(len(support[int(table["question"][row])]))
        assert has_support == (scores["support_precision"] is not None)
        if has_support:
            assert precision[row] == np.float32(number(scores["support_precision"]))
            assert recall[row] == np.float32(number(scores["support_recall"]))
    mean = number(case.expected["mean_answer_f1"])
    assert table["f1"].mean() == pytest.approx(mean, abs=1e-12)
