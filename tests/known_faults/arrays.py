"""Faults of arrays: padding that is read, shapes without end, sums that depend on their order.

The gradient of `padded-gather` is that of group sums in floats: the sums of an audit are integers,
and gradients run through group advantages, where the padding of a group must get none. Of
`shape-buckets`, no buffer is given away here.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pool_blocks import oracle_of, visible_of
from trajectory_arrays import rules

from herald_jax.data.blocks import bucket, group_blocks, power_of_two
from herald_jax.data.ragged import Ragged
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.kernels import programs
from herald_jax.kernels.exact import ExactSum
from herald_jax.kernels.groups import group_advantages
from herald_jax.kernels.membership import describe_labels, describe_state
from herald_jax.kernels.sums import margin_scale, margin_totals
from herald_jax.pool.load import pool_from_records
from herald_jax.types import DETECTORS, PAD, Oracle, Visible
from known_faults.cases import Case, exact, number


def padding_is_no_citation(case: Case, folder: Path) -> None:
    support, cited = case.given["is_support"], case.given["citations_padded"]
    passages = [f"p{row:09}" for row in range(len(support))]
    pool = pool_from_records(
        [
            Trajectory(f"t{row:09}", "q", "?", [], "x", [f"p{c:09}" for c in codes if c != PAD])
            for row, codes in enumerate(cited)
        ],
        [Passage(name, "") for name in passages],
        [OracleRow("q", [], [name for name, gold in zip(passages, support, strict=True) if gold])],
    )
    # Every row of the case, and as many and more that hold no trajectory.
    rows = np.full(2 * power_of_two(len(cited)), PAD, np.int32)
    rows[: len(cited)] = np.arange(len(cited))

    def count(visible, oracle):
        state = describe_state(visible, jnp.int32(len(passages)))
        gold = describe_labels(visible.citations, visible.citations, oracle)
        distinct = state.present & state.first
        return {
            "hits": jnp.sum(distinct & gold.support),
            "nonexistent": jnp.sum(distinct & ~state.real),
            "n_valid": jnp.sum(distinct & state.real),
        }

    counts = jax.vmap(count, in_axes=-1)(visible_of(pool, rows), oracle_of(pool, rows))
    for name, values in counts.items():
        assert np.asarray(values)[rows != PAD].tolist() == case.expected[name], name
        assert not np.asarray(values)[rows == PAD].any()


def padding_fires_no_detector(case: Case, folder: Path) -> None:
    """The rows of the case as they are, strangers beyond the corpus and padding behind them."""
    cited = np.array(case.given["citations_padded"], np.int32).T
    size, rows = len(case.given["is_support"]), cited.shape[1]
    gold = np.flatnonzero(case.given["is_support"]).astype(np.int32)
    zeros, shares = np.zeros(rows, np.int32), np.zeros(rows, np.float32)
    visible = Visible(
        retrieved=np.full((1, rows), PAD, np.int32),
        citations=cited,
        searches=zeros,
        invalid=zeros,
        repeated=zeros.astype(bool),
        answer_tokens=zeros,
        malformed=zeros,
    )
    oracle = Oracle(
        support=np.repeat(gold[:, None], rows, axis=1),
        em=shares,
        f1=shares,
        gold_em=shares,
        gold_f1=shares,
        gold_tokens=zeros,
        is_gold=zeros.astype(bool),
    )
    state = programs.describe(visible, jnp.int32(size))
    measured = programs.measure_originals(state, oracle, rules())
    for row, hits in enumerate(case.expected["hits"]):
        distinct = len(set(cited[:, row].tolist()) - {PAD})
        flags = {name: bool(getattr(measured.flags, name)[row]) for name in DETECTORS}
        assert flags["fake_citation"] == (case.expected["nonexistent"][row] > 0)
        assert flags["cited_not_retrieved"] == (case.expected["n_valid"][row] > 0)
        assert flags["support_id_mismatch"] == (distinct > 0 and hits == 0)
        share = 0.55 * hits / max(distinct, 1) + 0.45 * hits / max(len(gold), 1)
        assert float(measured.features.grounding[row]) == pytest.approx(share, abs=1e-6)


def padding_is_no_group(case: Case, folder: Path) -> None:
    group = np.array(case.given["group_id"], np.int32)
    order = np.argsort(group, kind="stable")
    order = order[group[order] != PAD]
    value = np.array(case.given["value"], np.float32)[order]
    scale = np.float32(margin_scale(float(np.abs(value).max(initial=0))))
    totals = np.zeros(case.given["num_groups"])
    for block in group_blocks(group[order], 4):
        real = block.rows != PAD
        margins = np.full((1, len(block.rows)), 1000, np.float32)
        margins[0, real] = value[block.rows[real]]
        sums = programs.sum_questions(margins, real, scale, np.float32(0), width=block.width)
        found = margin_totals(sums.high, sums.low)[0] / scale
        totals[block.groups[block.groups != PAD]] += found[block.groups != PAD]
        assert not found[block.groups == PAD].any()
    assert totals.tolist() == [number(total) for total in case.expected["group_sums"]]


def padding_gets_no_gradient(case: Case, folder: Path) -> None:
    value = jnp.array(case.given["value"], jnp.float32)
    mask = jnp.array(case.given["group_id"]) != PAD

    def weighted(rewards):
        advantages = group_advantages(rewards, mask)
        return jnp.sum(advantages * jnp.arange(1, len(rewards) + 1, dtype=jnp.float32))

    gradient = np.asarray(jax.grad(weighted)(value))
    real = np.array(case.expected["grad_of_total"]) == 1
    assert np.isfinite(gradient).all()
    assert gradient[real].any()
    assert not gradient[~real].any()


def shape_buckets(case: Case, folder: Path) -> None:
    traced = []

    def count(visible):
        traced.append(visible.citations.shape)
        return jnp.sum(describe_state(visible, jnp.int32(10**6)).present)

    citations = jax.jit(jax.vmap(count, in_axes=-1))

    def padded(counts):
        rows = bucket(len(counts), case.given["row_buckets"])
        width = bucket(max(counts, default=0), case.given["width_buckets"])
        lists = Ragged.of_lists([list(range(count)) for count in counts])
        numbers = [*range(len(counts)), *[PAD] * (rows - len(counts))]
        empty = np.zeros(rows, np.int32)
        return Visible(
            retrieved=np.full((1, rows), PAD, np.int32),
            citations=lists.to_padded(numbers, width),
            searches=empty,
            invalid=empty,
            repeated=empty.astype(bool),
            answer_tokens=empty,
            malformed=empty,
        )

    batches = [padded(counts) for counts in case.given["citation_counts_per_batch"]]
    shapes = [list(batch.citations.shape[::-1]) for batch in batches]
    assert shapes == case.expected["padded_shapes"]
    totals = [int(citations(batch).sum()) for batch in batches]
    assert totals == case.expected["total_citations_per_batch"]
    first = case.expected["compilations_first_pass"]
    assert len(traced) == first
    for batch in reversed(batches):
        citations(batch)
    assert len(traced) == first + case.expected["compilations_second_pass"]


def sums_in_any_order(case: Case, folder: Path) -> None:
    margins = np.array(case.given["margins"])
    for seed in range(20):
        shuffled = np.random.default_rng(seed).permutation(margins)
        for shards in case.given["shard_counts"]:
            total = ExactSum()
            for shard in np.array_split(shuffled, shards):
                part = ExactSum()
                part.add(shard)
                total.merge(part)
            assert total.fraction() == exact(case.expected["margin_sum_exact"])
            assert total.value() == case.expected["margin_sum_float64"]


def counts_and_means_of_a_stream(case: Case, folder: Path) -> None:
    total = ExactSum()
    for value, times in case.given["em_runs"]:
        for start in range(0, times, 1_000_000):
            total.add(np.full(min(1_000_000, times - start), float(value)))
    assert (total.value(), total.count) == (case.expected["hits"], case.expected["n"])
    assert total.mean() == pytest.approx(number(case.expected["mean_em"]), abs=1e-9)

    stream = ExactSum()
    for batch in case.given["batches"]:
        padded = np.pad(np.array(batch, np.float64), (0, case.given["pad_batches_to"] - len(batch)))
        stream.add(padded[np.arange(len(padded)) < len(batch)])
    assert stream.mean() == pytest.approx(number(case.expected["stream_mean"]), abs=1e-9)
