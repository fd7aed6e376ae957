"""The engine against the slow reference, against the published figures, and against itself."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from audit_comparison import both, differences, write_pool
from reference import hostile

from herald_jax.audit import run
from herald_jax.kernels import rewards
from herald_jax.manifest import Manifest, parse_manifest
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool
from herald_jax.pool.pool import Pool
from herald_jax.types import FEATURES

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
QUICK = parse_manifest({"statistics": {"replicates": 100}}, "quick")


def legal(settings):
    """Thresholds that a manifest accepts: some number of searches trips neither."""
    return replace(settings, max_searches=max(settings.min_searches, settings.max_searches))


@pytest.mark.parametrize("seed", range(18))
def test_every_figure_of_a_hostile_pool_is_the_references(seed, tmp_path):
    expected, report = both(tmp_path, hostile.pool(seed), legal(hostile.settings(seed)))
    assert differences(expected, report.data) == []
    assert len(report.data["cancellation"]) == len(expected["cancellation"])
    assert json.loads(report.to_json())["schema"] == 1


@pytest.mark.parametrize("name", ["hagrid", "hotpot_agents", "react_hotpot"])
def test_every_figure_of_a_real_pool_is_the_expected_one(name):
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED}: the real pools and their figures are not part of this project")
    report = run(load_pool(*find_pool_files(SHARED / "pools" / name)))
    expected = json.loads((SHARED / "expected" / f"{name}.json").read_text())
    assert differences(expected, report.data) == []


def mixed_pool(folder: Path, seed: int = 1) -> Pool:
    """A hostile pool whose blocks are of several widths; nothing of it was audited before."""
    trajectories, passages, oracle = hostile.pool(2 + 18 * seed)
    write_pool(folder, (trajectories, passages, oracle))
    return load_pool(*find_pool_files(folder))


class NumbersOfR0:
    """R0 as a black box: only its numbers reach the engine."""

    reads = ("answer", "answers", "citations", "support_ids")
    bound = 50.0

    def __init__(self, manifest: Manifest) -> None:
        self._weights = {name: getattr(manifest.reward, name) for name in FEATURES}

    def originals(self, rows, measured):
        self._before = {name: rewards.column(measured, name) for name in self._weights}
        return self._score(self._before)

    def edits(self, operator, rows, offered, moved):
        before = {name: values[None] for name, values in self._before.items()}
        return self._score({**before, **moved})

    def _score(self, columns) -> np.ndarray:
        return sum(
            weight * np.asarray(columns[name], np.float64) for name, weight in self._weights.items()
        )


def test_a_black_box_in_the_place_of_r0_gives_the_same_figures(tmp_path):
    pool = mixed_pool(tmp_path)
    linear, external = run(pool, QUICK).data, run(pool, QUICK, base=NumbersOfR0(QUICK)).data
    # Two candidates stand for the whole corpus under a linear contract only.
    assert linear["budgets"].pop("exhaustive")
    assert "exhaustive" not in external["budgets"]
    for entry in linear["certificate"].values():
        entry.pop("closed_corpus", None)
    told_apart = ("contracts", "worst", "histograms", "generators")
    same = [key for key in linear if key not in told_apart]
    for key in same:
        assert differences({key: linear[key]}, {key: external[key]}) == [], key
    assert set(NumbersOfR0.reads) <= set(external["contracts"]["R[L]"]["reads"])


class NoNumber(NumbersOfR0):
    """A reward that has no number for the edits of the first few rows."""

    def __init__(self, manifest: Manifest, rows: int) -> None:
        super().__init__(manifest)
        self._rows = rows

    def edits(self, operator, rows, offered, moved):
        scores = super().edits(operator, rows, offered, moved)
        scores[:, (rows >= 0) & (rows < self._rows)] = np.nan
        return scores


def test_what_one_reward_gave_is_not_taken_for_anothers(tmp_path):
    pool = mixed_pool(tmp_path)
    for base in (None, NoNumber(QUICK, rows=7), NumbersOfR0(QUICK), NoNumber(QUICK, rows=3)):
        alone = run(mixed_pool(tmp_path), QUICK, base=base)
        assert run(pool, QUICK, base=base).to_json() == alone.to_json()


def test_a_margin_that_is_no_number_leaves_the_rate_and_is_counted(tmp_path):
    pool = mixed_pool(tmp_path)
    found = run(pool, QUICK, base=NoNumber(QUICK, rows=7)).data
    lost = {}
    for name, operator in found["operators"].items():
        cells = operator["oracle_worst"]
        if cells["outcome_only"]["questions"]:
            lost[name] = cells["outcome_only"]["rows"] - cells["R0"].get("rows", 0)
    assert 0 < max(lost.values()) <= 7
    assert found["nonfinite"]["R0"] >= sum(lost.values())
    assert "outcome_only" not in found["nonfinite"]
    # mean_reward is over logged rows, whose numbers are all there.
    linear = run(pool, QUICK).data
    assert found["mean_reward"]["R0"] == pytest.approx(linear["mean_reward"]["R0"], abs=1e-6)


def test_without_any_number_nothing_is_measured_and_nothing_is_sufficient(tmp_path):
    pool = mixed_pool(tmp_path)
    found = run(pool, QUICK, base=NoNumber(QUICK, rows=len(pool.rows))).data
    for operator in found["primary"].values():
        assert operator["oracle_worst"]["R[U+L+F]"] == {"questions": 0}
    assert found["lattice"]["sufficient"] == []
    assert found["certificate"] == {}
    assert found["mean_reward"]["R0"] is not None


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_intervals_hold_the_estimate_and_widen_with_the_level(tmp_path, level):
    pool = mixed_pool(tmp_path)
    found = run(pool, parse_manifest({"statistics": {"level": level}}, "test")).data
    cells = [
        cell
        for operator in found["operators"].values()
        for cell in operator["oracle_worst"].values()
        if cell["questions"] > 1
    ]
    assert cells
    for cell in cells:
        low, high = cell["mean_margin_interval"]
        assert low <= high
        if cell["any_success"] == 0:
            assert cell["asr_interval"] is None
            assert cell["upper"] == pytest.approx(1 - (1 - level) ** (1 / cell["questions"]))
