"""Bins of margins: none is lost, and 0 divides those that fail from those that succeed."""

from types import SimpleNamespace

import numpy as np
import pytest
import tiny_audits as tiny
from hypothesis import given
from hypothesis import strategies as st

from herald_jax.audit.counts import merge
from herald_jax.audit.histograms import CELLS_PER_UNIT, count_margins, report_margins


def trial(margins, tie=1e-6):
    """What is read of an operator's trial: margins [J, B]."""
    block = SimpleNamespace(setup=SimpleNamespace(tie_tolerance=tie))
    alike = np.arange(len(margins))
    return SimpleNamespace(worst=np.array(margins, np.float32), block=block, alike=alike)


def counted(margins, *, bins=40, tie=1e-6, blocks=1, rows=None):
    """The histogram of one contract, its margins in several blocks of a section."""
    counts = {}
    values = np.array(margins, np.float32)
    rows = np.ones(len(values), bool) if rows is None else np.array(rows)
    for part, some in zip(
        np.array_split(values, blocks), np.array_split(rows, blocks), strict=True
    ):
        count_margins(counts, ("R0",), "fake_id", trial([part], tie), some)
    return report_margins(counts, ("fake_id",), ("R0",), bins).get("fake_id", {}).get("R0")


def right_of_zero(found):
    return sum(n for n, edge in zip(found["counts"], found["edges"], strict=False) if edge >= 0)


def test_a_bin_a_margin():
    # Cells are 1/64 wide; -0.5 .. 0.5 spans 65 of them, two a bin for 40 bins.
    found = counted([-0.5, 0.0, 0.5])
    assert found["edges"][0] == -0.5
    assert found["edges"][1] - found["edges"][0] == 2 / CELLS_PER_UNIT
    assert 0.0 in found["edges"]
    assert sum(found["counts"]) == 3
    assert right_of_zero(found) == 2


@pytest.mark.parametrize("tie", [0.0, 1e-6, 1e-4, 1e-3])
def test_a_tie_stands_right_of_zero(tie):
    # -tie is a success as the tables count it, in float32; the next float below is none.
    last = np.float32(-tie)
    below = np.nextafter(last, np.float32(-1))
    assert right_of_zero(counted([-1.0, last, 1.0], tie=tie)) == 2
    assert right_of_zero(counted([-1.0, below, 1.0], tie=tie)) == 1


@given(
    st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=60),
    st.integers(2, 60),
    st.integers(1, 4),
)
def test_counts_are_the_margins_whatever_the_blocks(margins, bins, blocks):
    found = counted(margins, bins=bins, blocks=blocks)
    edges, counts = found["edges"], found["counts"]
    assert sum(counts) == len(margins)
    # Aligned to 0, so that one more than asked for may be needed.
    assert len(edges) == len(counts) + 1 <= bins + 2
    assert len(set(np.diff(edges))) == 1
    assert edges[0] <= min(margins) + 1e-6 <= max(margins) + 1e-6 <= edges[-1]
    if edges[0] < 0 < edges[-1]:
        assert 0.0 in edges
    successes = sum(np.float32(m) >= -np.float32(1e-6) for m in margins)
    assert right_of_zero(found) == successes
    assert found == counted(margins[::-1], bins=bins)


def test_only_rows_of_the_table_with_a_number_count():
    margins = [1.0, -np.inf, np.nan, 2.0]
    assert sum(counted(margins)["counts"]) == 2
    assert sum(counted(margins, rows=[True, True, True, False])["counts"]) == 1
    assert counted([-np.inf, np.nan]) is None


def test_sections_may_come_in_any_order():
    # Of the first section's rows only the second operator has a number, under one contract.
    contracts, operators, nan = ("outcome_only", "R0"), ("fake_id", "citation_laundering"), np.nan
    sections = [
        {"citation_laundering": [[nan, nan], [0.5, nan]]},
        {"fake_id": [[nan, -1.0], [0.25, 2.0]], "citation_laundering": [[0.5], [0.5]]},
        {"fake_id": [[0.25], [nan]], "citation_laundering": [[-3.0], [0.5]]},
    ]
    found = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        whole = {}
        for number in order:
            counts = {}
            for operator, margins in sections[number].items():
                rows = np.ones(len(margins[0]), bool)
                count_margins(counts, contracts, operator, trial(margins), rows)
            merge(whole, counts)
        found.append(report_margins(whole, operators, contracts, 40))
    assert found[0] == found[1] == found[2]
    for report in found:
        assert list(report) == list(operators)
        assert [list(report[operator]) for operator in operators] == [list(contracts)] * 2
    assert {o: {c: sum(h["counts"]) for c, h in of.items()} for o, of in found[0].items()} == {
        "fake_id": {"outcome_only": 2, "R0": 2},
        "citation_laundering": {"outcome_only": 2, "R0": 3},
    }


def test_a_report_counts_the_common_rows():
    of = tiny.pool([tiny.log("t"), tiny.log("u"), tiny.log("v", "r", citations=[])])
    report = tiny.run(of).data
    assert report["common"]["rows"] == 2
    for name in tiny.PRIMARY:
        for contract, found in report["histograms"][name].items():
            assert sum(found["counts"]) == 2, contract
