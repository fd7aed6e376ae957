"""The contracts of an audit: their names, and their rows against the table of the definitions."""

import numpy as np
import pytest

from herald_jax.manifest import Manifest, parse_manifest
from herald_jax.manifest.contracts import build_contracts, stack, subset_name, subsets
from herald_jax.types import DETECTORS

#    answer, grounding, citation_format, tool_calls, invalid_rate, hacking_rate, answer_length
R0 = [1.15, 1.05, 0.30, -0.04, -0.80, -0.55, -0.004]
U, L, F = "no_search", "cited_not_retrieved", "fake_citation"


def row(contracts, name, *, external_base=False):
    return contracts.weights(external_base)[contracts.index(name)].tolist()


def test_names_and_order():
    assert build_contracts(Manifest()).names == (
        "outcome_only",
        "outcome_cost",
        "R0",
        "R[U]",
        "R[L]",
        "R[F]",
        "R[U+L]",
        "R[U+F]",
        "R[L+F]",
        "R[U+L+F]",
        "R_full",
    )


@pytest.mark.parametrize(
    ("name", "features", "penalties"),
    [
        # In the order U, L, F, under_retrieval, Q, A, O, M.
        ("R0", R0, [0, 0, 0, 0, 0, 0, 0, 0]),
        ("R[U+L]", R0, [1.6, 1.2, 0, 0, 0, 0, 0, 0]),
        ("R[F]", R0, [0, 0, 1.0, 0, 0, 0, 0, 0]),
        ("R_full", R0, [1.6, 1.2, 1.0, 0, 0.3, 0.5, 0.2, 0.8]),
        ("outcome_only", [1.15, 0, 0, 0, 0, 0, 0], [0] * 8),
        ("outcome_cost", [1.15, 0, 0, -0.04, 0, 0, 0], [0] * 8),
    ],
)
def test_rows_of_the_matrix(name, features, penalties):
    # Penalties are subtracted: their columns hold -λ.
    expected = features + [-weight for weight in penalties]
    assert row(build_contracts(Manifest()), name) == expected


def test_a_reward_of_the_users_own_takes_the_place_of_r0_alone():
    contracts = build_contracts(Manifest())
    assert row(contracts, "R0", external_base=True) == [0.0] * 15
    assert row(contracts, "R[L]", external_base=True) == [0.0] * 8 + [-1.2] + [0.0] * 6
    assert row(contracts, "outcome_cost", external_base=True) == row(contracts, "outcome_cost")
    device = contracts.device(external_base=True)
    shares = dict(zip(contracts.names, device.base.tolist(), strict=True))
    assert shares.pop("outcome_only") == shares.pop("outcome_cost") == 0
    assert set(shares.values()) == {1}
    assert not contracts.device(external_base=False).base.any()


def test_contracts_of_a_manifest_with_and_without_the_base():
    own = {"weights": {"answer": 2.0}, "penalties": {F: 0.5}}
    contracts = build_contracts(
        parse_manifest({"contracts": {"alone": own, "on_top": {**own, "base": True}}}, "test")
    )
    assert contracts.names[-2:] == ("alone", "on_top")
    penalty = [0, 0, -0.5, 0, 0, 0, 0, 0]
    assert row(contracts, "alone") == [2.0, 0, 0, 0, 0, 0, 0, *penalty]
    # 1.15 + 2 = 3.15 for the answer, the rest of R0 as it is.
    assert row(contracts, "on_top") == pytest.approx([3.15, *R0[1:], *penalty])
    assert row(contracts, "on_top", external_base=True) == row(contracts, "alone")


def test_scaling_multiplies_penalties_and_nothing_else():
    contracts = build_contracts(Manifest())
    double, none = contracts.scaled(2.0), contracts.scaled(0.0)
    assert row(double, "R[U+L]") == [*R0, -3.2, -2.4, 0, 0, 0, 0, 0, 0]
    assert row(none, "R_full") == row(contracts, "R0")


def test_some_contracts_and_several_sets():
    contracts = build_contracts(Manifest())
    some = contracts.take([contracts.index("R[L]"), contracts.index("R0")])
    assert some.names == ("R[L]", "R0")
    both = stack([some, some.scaled(0.5)])
    assert both.names == ("R[L]", "R0", "R[L]", "R0")
    assert both.weights(False)[:, 8].tolist() == [-1.2, 0, -0.6, 0]
    assert np.array_equal(both.weights(False)[:2], some.weights(False))


def test_a_contract_describes_what_it_pays_for():
    contracts = build_contracts(Manifest())
    assert contracts.describe(contracts.index("outcome_cost"), False) == {
        "weights": {"answer": 1.15, "tool_calls": -0.04},
        "penalties": {},
    }
    assert contracts.describe(contracts.index("R[U+F]"), False)["penalties"] == {U: 1.6, F: 1.0}
    # With a reward given as numbers in R0's place, its own weights are not R0's.
    black_box = contracts.describe(contracts.index("R[U+F]"), True)
    assert black_box == {"weights": {}, "penalties": {U: 1.6, F: 1.0}, "base": 1.0}


def test_subsets_come_by_size_and_in_the_order_of_the_detectors():
    # Whatever order a manifest names them in.
    assert subsets((F, U, L)) == [(), (U,), (L,), (F,), (U, L), (U, F), (L, F), (U, L, F)]
    assert subset_name(()) == "R0"
    assert subset_name((U, L, F)) == "R[U+L+F]"
    # A detector without a letter goes by its name.
    assert subset_name(("under_retrieval",)) == "R[under_retrieval]"


def test_all_eight_detectors_give_256_subsets():
    wide = parse_manifest({"lattice": {"detectors": list(DETECTORS)}}, "test")
    names = build_contracts(wide).names
    # 2^8 subsets, of which the empty one is R0, and outcome_only, outcome_cost and R_full.
    assert len(names) == len(set(names)) == 256 + 3
