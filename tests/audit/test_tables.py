"""Sums per question out of blocks and sections, against sums that are taken row by row."""

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from herald_jax.audit import block_tables
from herald_jax.audit.block_tables import BlockTables
from herald_jax.audit.estimates import EMPTY, Estimator
from herald_jax.audit.keys import CERTIFICATE, key_name
from herald_jax.audit.tables import Tables
from herald_jax.data.blocks import GroupBlock, group_blocks
from herald_jax.kernels.sums import MARGIN_BITS
from herald_jax.manifest import Statistics
from herald_jax.pool.store import Folder, Memory
from herald_jax.types import PAD

SCALE = 16.0  # units of a margin per 1
TIE = 1e-6
CONTRACTS = ("a", "b", "c")
KEY = ("primary", 'a "key"\n', "first_visible")


def block_of(place):
    return SimpleNamespace(place=place)


def summed(parts, key=KEY):
    """What a section gives that saw these (place, margins [J, B], rows [B])."""
    tables = BlockTables(SimpleNamespace(scale=SCALE, tie_tolerance=TIE))
    for place, margins, rows in parts:
        values = np.array(margins, np.float32)
        tables.add_values(key, block_of(place), values, np.arange(len(values)), np.array(rows))
    return tables.finish()


def test_columns_may_share_their_values():
    """Three contracts of which the first and the last are of one kind."""
    [place] = group_blocks(np.repeat(np.arange(3, dtype=np.int32), 4), 64)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, len(place.rows))).astype(np.float32)
    values[1, 2] = math.inf  # so that the rows of the kinds differ
    rows = place.rows >= 0
    shared = BlockTables(SimpleNamespace(scale=SCALE, tie_tolerance=TIE))
    shared.add_values(KEY, block_of(place), values, np.array([0, 1, 0]), rows)
    expected = summed([(place, values[[0, 1, 0]], rows)])
    arrays, largest = shared.finish()
    assert largest == expected[1]
    assert arrays.keys() == expected[0].keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[0][name])


def tables_of(results, store=None):
    """Tables over the results of sections, by way of a store."""
    store = store or Memory()
    for number, (arrays, largest) in enumerate(results):
        store.put(f"section-{number}", "", arrays, {"largest": largest})
    entries = [store.get(f"section-{number}", "") for number in range(len(results))]
    return Tables(entries, CONTRACTS, Estimator(Statistics(replicates=100), SCALE))


def plain(question, margins, rows):
    """Rows, successes, totals [J][question] and largest [J], margin by margin."""
    counts = [({}, {}, {}) for _ in margins]
    largest = [-math.inf] * len(margins)
    for j, column in enumerate(margins):
        for number, margin, counted in zip(question, column, rows, strict=True):
            if not counted or not math.isfinite(margin):
                continue
            fixed = round(float(np.float32(margin) * np.float32(SCALE)))
            for table, value in zip(counts[j], (1, margin >= -TIE, fixed), strict=True):
                table[number] = table.get(number, 0) + int(value)
            largest[j] = max(largest[j], float(np.float32(margin)))
    return counts, largest


def test_padding_never_counts_and_blocks_come_in_any_order():
    # Padding groups are negative; whatever stands there. In question 0 the second rollout fails.
    one = (GroupBlock(np.array([5, PAD], np.int32), np.array([2, PAD], np.int32), 1),)
    one += ([[-4096.25, 9.0]], [True, True])
    rows = np.array([0, 1, 2, PAD], np.int32)
    two = (GroupBlock(rows, np.array([0, 1], np.int32), 2),)
    two += ([[0.5, -1.5, 0.25, 9.0]], [True, True, True, False])
    for parts in ([one, two], [two, one]):
        arrays, largest = summed(parts)
        name = key_name(KEY)
        assert arrays[f"{name}.questions"].tolist() == [0, 1, 2]
        assert arrays[f"{name}.rows"].tolist() == [[2, 1, 1]]
        assert arrays[f"{name}.successes"].tolist() == [[1, 1, 0]]
        assert (arrays[f"{name}.totals"] / SCALE).tolist() == [[-1.0, 0.25, -4096.25]]
        assert largest == {name: [0.5]}


@pytest.mark.parametrize("seed", range(12))
def test_sums_are_those_of_the_rows_whatever_the_cut(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(block_tables, "MOST_WAITING", seed % 4)
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 10, 17)
    question = np.repeat(np.arange(0, 34, 2), sizes).astype(np.int32)
    n = len(question)
    # From far below 0 to just about it; some contracts have no number for some rows, or for all.
    margins = rng.normal(size=(3, n)) * rng.choice([1e-7, 1.0, 1e4], (3, n))
    margins[rng.random((3, n)) < 0.1 * (seed % 3)] = rng.choice([np.nan, -np.inf])
    if seed == 5:
        margins[1] = np.nan
    rows = rng.random(n) < rng.choice([0.3, 1.0])
    counts, largest = plain(question.tolist(), margins.tolist(), rows.tolist())

    results = []
    cuts = [0, *sorted(rng.integers(0, 34, rng.integers(0, 5)).tolist()), 34]
    for first, last in pairwise(cuts):
        inside = np.flatnonzero((question >= first) & (question < last))
        blocks = group_blocks(question[inside], int(rng.choice([1, 4, 64])))
        parts = []
        for at in rng.permutation(len(blocks)).tolist():
            place = blocks[at]
            values = np.full((3, len(place.rows)), 1e3)
            among = np.zeros(len(place.rows), bool)
            real = place.rows != PAD
            values[:, real] = margins[:, inside[place.rows[real]]]
            among[real] = rows[inside[place.rows[real]]]
            parts.append((place, values, among))
        results.append(summed(parts))
    store = Folder(tmp_path, pytest.fail) if seed % 2 else None
    tables = tables_of(results, store)

    tally = tables.tally(KEY)
    seen = sorted({number for column in counts for number in column[0]})
    assert tally.successes.shape == tally.totals.shape == (3, len(seen))
    of_rows = np.broadcast_to(tally.rows, (3, len(seen)))
    for j, column in enumerate(counts):
        for found, table in zip((of_rows, tally.successes, tally.totals), column, strict=True):
            assert found[j].tolist() == [table.get(number, 0) for number in seen]
    assert tally.largest.tolist() == largest
    for j, contract in enumerate(CONTRACTS):
        expected = largest[j] if math.isfinite(largest[j]) else None
        assert tables.largest(KEY[:2], KEY[2], contract) == expected
        cell = tables.cell(KEY[:2], KEY[2], contract)
        assert cell["questions"] == len(counts[j][0])
        if cell["questions"]:
            assert cell["rows"] == sum(counts[j][0].values())
            assert cell["max_margin"] == largest[j]


def test_margins_as_large_as_a_sum_is_exact_for():
    # 2^16 rollouts of one question, each margin just within its 30 bits.
    width = 1 << 16
    most = (2 ** (MARGIN_BITS - 1) - 64) / SCALE
    place = GroupBlock(np.arange(width, dtype=np.int32), np.array([7], np.int32), width)
    for margin in (most, -most):
        arrays, _ = summed([(place, np.full((1, width), margin), np.ones(width, bool))])
        assert arrays[f"{key_name(KEY)}.totals"].tolist() == [[int(margin * SCALE) * width]]
        assert arrays[f"{key_name(KEY)}.rows"].tolist() == [[width]]


def test_a_table_without_rows_has_no_question():
    place = GroupBlock(np.array([0], np.int32), np.array([0], np.int32), 1)
    empty = summed([(place, [[0.5]] * 3, [False])])
    tables = tables_of([empty, summed([])])
    assert tables.tally(KEY) is None
    assert tables.keys() == [KEY]
    assert tables.table(KEY[:2], KEY[2:]) == {KEY[2]: dict.fromkeys(CONTRACTS, EMPTY)}
    assert tables.table(("pools", "all"), KEY[2:]) == {KEY[2]: dict.fromkeys(CONTRACTS, EMPTY)}
    assert tables.largest(KEY[:2], KEY[2], "a") is None


def test_of_a_certificate_only_the_largest_margin_is_kept():
    key = (CERTIFICATE, "fake_id", "oracle_worst")
    place = GroupBlock(np.array([0], np.int32), np.array([0], np.int32), 1)
    results = [summed([(place, [[margin]] * 3, [True])], key) for margin in (-1.0, 0.25, -3.0)]
    assert all(not arrays for arrays, _ in results)
    tables = tables_of(results)
    assert tables.largest(key[:2], key[2], "b") == 0.25
    assert tables.keys() == []


def test_names_of_a_kind_are_sorted_and_found_in_any_section():
    place = GroupBlock(np.array([0], np.int32), np.array([0], np.int32), 1)
    names = ["m", "\U0001f427", "\uffee", ""]
    results = [summed([(place, [[0.5]] * 3, [True])], ("model", n, "first_visible")) for n in names]
    assert tables_of(results).values_of("model") == sorted(names)
    assert tables_of(results).values_of("pool") == []
