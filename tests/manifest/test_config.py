"""Defaults, checks at construction, serialisation."""

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herald_jax import manifest as m
from herald_jax.types import DETECTORS, FEATURES, ManifestError


def test_reward_and_penalties_name_the_shared_columns() -> None:
    assert tuple(field.name for field in dataclasses.fields(m.Reward)) == FEATURES
    assert {field.name for field in dataclasses.fields(m.Penalties)} == set(DETECTORS)


def test_defaults_are_the_published_ones() -> None:
    made = m.Manifest()
    assert dataclasses.astuple(made.reward) == (1.15, 1.05, 0.30, -0.04, -0.80, -0.55, -0.004)
    # The paper's worked gain: one citation moved onto one of two support ids raises precision from
    # 0 to 1 and recall from 0 to 1/2: 1.05 * (0.55 * 1 + 0.45 * 0.5) = 1.05 * 0.775 = 0.81375.
    grounding = made.features.grounding_precision * 1 + made.features.grounding_recall * 0.5
    assert made.reward.grounding * grounding == pytest.approx(0.81375, abs=1e-12)
    assert len(made.features.hacking_flags) == 7
    assert "no_search" not in made.features.hacking_flags
    paid = {name: value for name, value in m.manifest_dict(made)["penalties"].items() if value}
    assert paid == {
        "no_search": 1.6,
        "cited_not_retrieved": 1.2,
        "fake_citation": 1.0,
        "support_id_mismatch": 0.8,
        "answer_without_citation": 0.5,
        "repeated_query": 0.3,
        "over_retrieval": 0.2,
    }
    assert made.statistics == m.Statistics(
        replicates=5000, seed=0, level=0.95, weighting="question", tie_tolerance=1e-6
    )
    assert made.operators.primary == ("same_final_deletion", "citation_laundering", "fake_id")


def test_every_section_is_small() -> None:
    for field in dataclasses.fields(m.Manifest):
        if dataclasses.is_dataclass(field.default_factory):
            assert len(dataclasses.fields(field.default_factory)) <= 15, field.name


def test_sections_are_keyword_only_and_frozen() -> None:
    with pytest.raises(TypeError):
        m.Reward(1.0)  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.Reward().answer = 2.0  # type: ignore[misc]


def test_integers_become_floats_and_lists_become_tuples() -> None:
    reward = m.Reward(answer=1, grounding=-0.0)
    assert isinstance(reward.answer, float)
    assert math.copysign(1.0, reward.grounding) == 1.0
    assert m.Lattice(scales=[0, 1]).scales == (0.0, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: m.Reward(answer=True), "wrong_type"),
        (lambda: m.Reward(answer="1"), "wrong_type"),
        (lambda: m.Reward(answer=math.nan), "not_finite"),
        (lambda: m.Reward(answer=10**400), "out_of_range"),
        (lambda: m.Penalties(no_search=-1.0), "out_of_range"),
        (lambda: m.Detectors(min_searches=5), "out_of_range"),
        (lambda: m.Detectors(min_searches=1.0), "wrong_type"),
        (lambda: m.Lattice(detectors=()), "out_of_range"),
        (lambda: m.Lattice(detectors="no_search"), "wrong_type"),
        (lambda: m.Lattice(detectors=("no_search", "no_search")), "repeated_item"),
        (lambda: m.Lattice(detectors=("nosearch",)), "unknown_name"),
        (lambda: m.Lattice(scales=(1.0, 0.5)), "not_increasing"),
        (lambda: m.Operators(names=("fake_id",)), "not_in_names"),
        (lambda: m.Generators(primary="exhaustive"), "unknown_name"),
        (lambda: m.Generators(budgets=(0, 1)), "out_of_range"),
        (lambda: m.Statistics(level=1.0), "out_of_range"),
        (lambda: m.Statistics(replicates=0), "out_of_range"),
        (lambda: m.Data(rules="Unicode"), "unknown_name"),
        (lambda: m.Contract(), "empty_contract"),
        (lambda: m.Contract(weights={"answr": 1.0}), "unknown_key"),
        (lambda: m.Contract(penalties={"no_search": -1.0}), "out_of_range"),
        (lambda: m.Manifest(reward=m.Data()), "wrong_type"),
    ],
)
def test_construction_refuses(make: object, code: str) -> None:
    with pytest.raises(ManifestError, match=code):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("name", [*m.BUILT_IN_CONTRACTS, "R[U]", "R[", "a b", "a.b", "", "1st"])
def test_contract_names_that_are_taken_or_unreadable(name: str) -> None:
    with pytest.raises(ManifestError, match=r"reserved_name|bad_name"):
        m.Manifest(contracts={name: m.Contract(base=True)})


def test_contracts_cannot_be_changed_after_the_digest() -> None:
    weights = {"answer": 1.0}
    contracts = {"mine": m.Contract(weights=weights)}
    made = m.Manifest(contracts=contracts)
    digest = m.manifest_digest(made)
    weights["answer"] = 9.0
    contracts.clear()
    assert m.manifest_digest(made) == digest
    with pytest.raises(TypeError):
        made.contracts["other"] = m.Contract(base=True)  # type: ignore[index]
    with pytest.raises(TypeError):
        made.contracts["mine"].weights["answer"] = 2.0  # type: ignore[index]


def test_all_problems_of_a_section_at_once() -> None:
    with pytest.raises(ManifestError) as caught:
        m.Statistics(level=2.0, seed=-1, weighting="rows")
    text = str(caught.value)
    assert len(text.splitlines()) == 3
    assert "did you mean `row`?" in text


def test_default_toml_reads_back_as_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "manifest.toml"
    path.write_text(m.default_toml(), encoding="utf-8")
    assert m.load_manifest(path) == m.Manifest()


def test_default_toml_explains_every_setting() -> None:
    for line in m.default_toml().splitlines():
        if line and not line.startswith(("#", "[")):
            assert re.search(r"  # \S", line), line


def test_the_example_contract_of_the_template_is_valid(tmp_path: Path) -> None:
    text = m.default_toml()
    example = text[text.index("# [contracts.") :].replace("# ", "")
    path = tmp_path / "manifest.toml"
    path.write_text(example, encoding="utf-8")
    weights = m.load_manifest(path).contracts["grounded_only"].weights
    assert weights == {"answer": 1.0, "grounding": 0.5}


def test_manifest_dict_survives_json() -> None:
    made = m.Manifest(contracts={"mine": m.Contract(base=True, penalties={"no_search": 2})})
    data = m.manifest_dict(made)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["contracts"] == {
        "mine": {"weights": {}, "penalties": {"no_search": 2.0}, "base": True}
    }
    assert m.parse_manifest(data, "again") == made


def test_digest_follows_values_not_spelling() -> None:
    first, second = m.Contract(base=True), m.Contract(weights={"answer": 1.0})
    digest = m.manifest_digest(m.Manifest(contracts={"a": first, "b": second}))
    assert digest == m.manifest_digest(m.Manifest(contracts={"b": second, "a": first}))
    assert m.manifest_digest(m.Manifest(reward=m.Reward(answer=1))) == m.manifest_digest(
        m.Manifest(reward=m.Reward(answer=1.0))
    )
    assert digest != m.manifest_digest(m.Manifest())


def test_digest_of_the_defaults_is_stable() -> None:
    # Changes when a default or the serialisation does, and then CHANGELOG.md must say so.
    assert m.manifest_digest(m.Manifest()) == (
        "8fc463193179cb8a5a593b4c4dbc313b543d7f08de5b5273b32e6e90dcdc61de"
    )


@given(st.sampled_from(FEATURES), st.floats(-1000, 1000))
def test_every_weight_in_range_is_kept_exactly(name: str, value: float) -> None:
    made = m.Manifest(reward=m.Reward(**{name: value}))
    assert getattr(made.reward, name) == value
    assert m.parse_manifest(json.loads(json.dumps(m.manifest_dict(made))), "again") == made
