"""The engine of the kernel benchmark is the audit's, and a wrong figure of either side is seen."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import kernel_numpy
import kernel_reference
import numpy as np
import pytest
import synthetic
from kernel_engine import BLOCK_ROWS, MOVED, SELECTORS, TARGET, Engine, blocks, contracts
from mismatch import Mismatch, compare_sums

import herald_jax.audit.keys as keys
import herald_jax.audit.staging as staging
from herald_jax.audit.fields import moved_columns
from herald_jax.audit.operators import OPERATORS
from herald_jax.audit.trials import operator_rule
from herald_jax.manifest import Manifest
from herald_jax.manifest.contracts import build_contracts

ROOT = Path(__file__).resolve().parents[2]
ROWS = 48 * synthetic.ROLLOUTS
LAUNDERING = OPERATORS["citation_laundering"]


@pytest.fixture(scope="module")
def data():
    return synthetic.generate(ROWS, 3)


# One block, several, and a last one that is part padding.
@pytest.fixture(scope="module", params=[ROWS, 64, 80])
def parts(data, request):
    return blocks(data, request.param)


def test_contracts_are_those_of_an_audit():
    names, weights = contracts(Manifest())
    ours = build_contracts(Manifest())
    assert names == ours.names
    np.testing.assert_array_equal(weights, ours.weights(external_base=False).astype(np.float32))


def test_the_operator_is_that_of_an_audit(data):
    assert LAUNDERING.target == TARGET
    assert set(moved_columns(LAUNDERING)) == set(MOVED)
    rule, expected = Engine(data)._rule, operator_rule(LAUNDERING, 1)
    np.testing.assert_array_equal(rule.target, expected.target)
    np.testing.assert_array_equal(rule.watched, expected.watched)


def test_blocks_and_selectors_are_those_of_an_audit():
    assert keys.SELECTORS == SELECTORS
    assert BLOCK_ROWS["cpu"] in staging.BLOCK_ROWS


def test_all_ways_come_to_the_same_figures(data, parts):
    engine = Engine(data)
    ours = engine.audit(parts)
    assert ours["oracle_worst"].rows[0].sum() > ROWS / 4
    sample = kernel_reference.Sample.of(data, ROWS)
    for found in (
        kernel_reference.compare(sample, engine, parts, ours),
        kernel_numpy.compare_staged(engine, parts, ours),
        kernel_numpy.compare_idiomatic(data, engine, parts, ours),
    ):
        assert found.numbers > 11 * ROWS


def test_described_ids_give_the_same_sums(data, parts):
    engine = Engine(data)
    ours = engine.audit(parts)
    again = engine.audit_described([engine.describe(engine.place(block)) for block in parts])
    assert [ours[name].tobytes() == again[name].tobytes() for name in SELECTORS] == [True, True]


@pytest.mark.parametrize("part", ["rows", "successes", "totals"])
def test_a_wrong_sum_ends_a_comparison(data, part):
    engine = Engine(data)
    ours = engine.audit(blocks(data, ROWS))
    found = Mismatch("itself")
    right = (
        ours["first_visible"].rows[0],
        np.stack([ours[name].successes for name in SELECTORS]),
        np.stack([ours[name].totals / engine.scale for name in SELECTORS]),
    )
    compare_sums(found, engine, ours, *right)
    wrong = getattr(ours["first_visible"], part).copy()
    wrong[2, 5] += 1 if part != "totals" else int(engine.scale)
    changed = ours | {"first_visible": replace(ours["first_visible"], **{part: wrong})}
    with pytest.raises(SystemExit, match=r"itself: .* differ"):
        compare_sums(found, engine, changed, *right)


# What a bare machine with an accelerator need not have.
ABSENT = ("msgspec", "pyarrow", "typer", "rich", "jinja2", "markupsafe", "fsspec", "rank_bm25")
BARE = f"""
import runpy, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {ABSENT!r}:
            raise ImportError(f"{{name}} is not installed here")

sys.meta_path.insert(0, Absent())
script, *sys.argv[1:] = sys.argv[1:]
sys.path.insert(0, script.rsplit("/", 1)[0])
runpy.run_path(script, run_name="__main__")
"""


def on_a_bare_machine(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", BARE, str(ROOT / "benchmarks" / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_runs_with_jax_numpy_scipy_and_chex_alone(tmp_path):
    out = tmp_path / "kernels.json"
    arguments = ["--rows=320", "--sample=80", "--rounds=1", f"--out={out}"]
    done = on_a_bare_machine("kernels.py", *arguments)
    assert done.returncode == 0, done.stderr
    assert out.exists()


@pytest.mark.parametrize("script", ["bootstrap.py", "devices.py"])
def test_others_begin_there_as_well(script):
    done = on_a_bare_machine(script, "--help")
    assert done.returncode == 0, done.stderr


def test_a_machine_is_bare_in_these_tests():
    assert "is not installed here" in on_a_bare_machine("end_to_end.py", "--help").stderr
