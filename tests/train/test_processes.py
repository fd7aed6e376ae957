"""Two processes that train together do what one does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from train_setups import SMALL

LAUNCH = Path(__file__).parents[2] / "scripts" / "launch.py"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "config.toml"
    path.write_text(
        "\n".join(
            f"[{name}]\n"
            + "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())
            for name, table in SMALL.items()
        )
    )
    return path


def run(settings, out, count, *more):
    launched = (
        [str(LAUNCH), str(count), "train"] if count > 1 else ["-m", "herald_jax.cli", "train"]
    )
    command = [sys.executable, *launched, str(settings), "--out", str(out), "-q"]
    flags = ["--set", "run.updates=1", "--set", "environment.turns=2", *more]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = (out / "log" / "trajectories-00000001.jsonl").read_text().splitlines()
    (numbers,) = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [json.loads(line) for line in lines], numbers


def test_two_processes_take_the_update_of_one(settings, tmp_path):
    alone, one = run(settings, tmp_path / "one", 1)
    together, two = run(settings, tmp_path / "two", 2, "--set", "mesh.data=2")
    assert [row["tokens"] for row in together] == [row["tokens"] for row in alone]
    assert [row["reward"] for row in together] == [row["reward"] for row in alone]
    for name in ("loss", "grad/norm"):
        assert abs(two[name] - one[name]) <= 1e-4 * abs(one[name]) + 1e-6
    assert (tmp_path / "two" / "summary.json").exists()
    assert (tmp_path / "two" / "page.html").exists()
