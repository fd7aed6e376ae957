"""Faults that people met in detectors and arrays, through the kernels.

What import makes of the same cases is in `test_known_faults_data.py`, with the counts of
compilations of `shape-buckets`. The gradient of `padded-gather` is that of group sums in floats:
the sums of an audit are integers, and gradients run through group advantages, where the padding of
a group must get none.
"""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trajectory_arrays import Row, Rows, Widths, encode, rules

from herald_jax.kernels import programs
from herald_jax.kernels.groups import group_advantages
from herald_jax.types import PAD, Oracle, Visible

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is absent")


def by_case(kind):
    """Every file of a kind, or one parameter that skips when there is none."""
    paths = sorted(CASES.glob(f"{kind}-*.json")) or [CASES / f"{kind}-open.json"]
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


def load(path):
    case = json.loads(path.read_text(encoding="utf-8"))
    return case["input"], case["expected"]["values"]


@by_case("detectors")
def test_detectors(path):
    given, expected = load(path)
    support = given["oracle_support_by_trajectory"]
    rows = [
        Row(
            {
                "trajectory_id": record["trajectory_id"],
                "steps": [{"valid": True, **step} for step in record["steps"]],
                "answer": record["answer"],
                "citations": record["citations"],
                "malformed_citations": 0,
            },
            {"answers": [], "support_ids": support[record["trajectory_id"]]},
        )
        for record in given["trajectories"]
    ]
    corpus = tuple(passage["passage_id"] for passage in given["corpus"])
    longest = max(len(step["retrieved"]) for row in rows for step in row.trajectory["steps"])
    steps = max(len(row.trajectory["steps"]) for row in rows)
    widths = Widths(
        retrieved=longest * steps,
        citations=max(len(row.trajectory["citations"]) for row in rows),
        support=max(map(len, support.values())),
    )
    visible, oracle, codes = encode(Rows(corpus, tuple(rows)), widths)
    state = programs.describe(visible, codes.passages)
    flags = programs.measure_originals(state, oracle, rules()).flags
    for number, row in enumerate(rows):
        states = expected["by_trajectory"][row.trajectory["trajectory_id"]]
        status = states["citation_status"]
        final = bool((row.trajectory["answer"] or "").strip())
        gold = set(row.gold["support_ids"])
        for name, value in {
            "no_search": final and states["no_search"],
            "cited_not_retrieved": "real_unretrieved" in status.values(),
            "fake_citation": "nonexistent" in status.values(),
            "repeated_query": states["repeated_queries"] > 0,
            "answer_without_citation": states["answer_without_citation"],
            "support_id_mismatch": bool(status) and not gold & set(status),
        }.items():
            assert bool(getattr(flags, name)[number]) == value, (row, name)
        distinct = np.asarray(state.present & state.first)[:, number].sum()
        assert len(row.trajectory["citations"]) - distinct == states["duplicate_citations"]


@by_case("padded-gather")
def test_padding_and_strangers_in_the_kernels(path):
    given, expected = load(path)
    cited = np.array(given["citations_padded"], np.int32).T
    size, rows = len(given["is_support"]), cited.shape[1]
    gold = np.flatnonzero(given["is_support"]).astype(np.int32)
    number, share = np.zeros(rows, np.int32), np.zeros(rows, np.float32)
    visible = Visible(
        retrieved=np.full((1, rows), PAD, np.int32),
        citations=cited,
        searches=number,
        invalid=number,
        repeated=number.astype(bool),
        answer_tokens=number,
        malformed=number,
    )
    oracle = Oracle(
        support=np.repeat(gold[:, None], rows, axis=1),
        em=share,
        f1=share,
        gold_em=share,
        gold_f1=share,
        gold_tokens=number,
        is_gold=number.astype(bool),
    )
    state = programs.describe(visible, jnp.int32(size))
    measured = programs.measure_originals(state, oracle, rules())
    distinct = [len(set(column) - {PAD}) for column in cited.T.tolist()]
    for row, hits in enumerate(expected["hits"]):
        assert bool(measured.flags.fake_citation[row]) == (expected["nonexistent"][row] > 0)
        assert bool(measured.flags.cited_not_retrieved[row]) == (expected["n_valid"][row] > 0)
        assert bool(measured.flags.support_id_mismatch[row]) == (distinct[row] > 0 and hits == 0)
        grounding = 0.55 * hits / max(distinct[row], 1) + 0.45 * hits / max(len(gold), 1)
        assert float(measured.features.grounding[row]) == pytest.approx(grounding, abs=1e-6)


@by_case("padded-gather")
def test_no_gradient_reaches_the_padding_of_a_group(path):
    given, expected = load(path)
    value = jnp.array(given["value"], jnp.float32)
    mask = jnp.array(given["group_id"]) != PAD

    def weighted(rewards):
        advantages = group_advantages(rewards, mask)
        return jnp.sum(advantages * jnp.arange(1, len(rewards) + 1, dtype=jnp.float32))

    gradient = np.asarray(jax.grad(weighted)(value))
    assert np.isfinite(gradient).all()
    assert (gradient != 0).astype(int).tolist() == expected["grad_of_total"]
