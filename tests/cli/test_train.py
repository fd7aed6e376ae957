"""`herald train`, `rollout`, `eval`, `sweep` as a user runs them, on the smallest run there is."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from train_setups import SMALL

from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.train.config import SIGNALS
from herald_jax.train.config_load import SECTIONS, default_config_toml, parse_config

ROOT = Path(__file__).resolve().parent.parent.parent
Herald = Callable[..., Any]

# The log is what is tested here: the smallest audit there is.
AUDIT = """
[operators]
names = ["fake_id"]
primary = ["fake_id"]
[lattice]
scales = [1.0]
[generators]
budget_generators = []
[statistics]
replicates = 50
[sections]
pools = ["all"]
split_by_model = false
split_by_pool = false
cancellation = false
scales = false
budgets = false
utility = false
"""


def settings(**changes: Any) -> str:
    tables = {name: {**table, **changes.get(name, {})} for name, table in SMALL.items()}
    # Imitation and samples have tests elsewhere, and programs of their own.
    tables["warm_start"]["steps"] = 0
    tables["reward"] = {"contract": "R_full"}
    tables["evaluation"] |= {"questions": 8, "samples": 0}
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )


@pytest.fixture(autouse=True, scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Compiled programs in a folder of these tests, not of the user."""
    folder = str(tmp_path_factory.mktemp("programs"))
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    yield folder
    jax.config.update("jax_compilation_cache_dir", before)


@pytest.fixture(scope="module")
def place(herald: Herald, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with settings, a run of one update in `run`, and a sample in `pool`.

    Batches are of eight rollouts wherever one can choose, so that few programs are compiled.
    """
    folder = tmp_path_factory.mktemp("train")
    (folder / "config.toml").write_text(settings(), encoding="utf-8")
    done = herald("train", "config.toml", "--set", "run.updates=1", "-o", "run", folder=folder)
    assert done.code == 0, done.err
    (folder / "stdout.txt").write_text(done.out, encoding="utf-8")
    (folder / "stderr.txt").write_text(done.err, encoding="utf-8")
    made = herald("sample", "pool", "--questions", "8", "--rollouts", "1", folder=folder)
    assert made.code == 0, made.err
    return folder


def test_a_run_leaves_what_people_and_audits_read(place: Path) -> None:
    assert sorted(os.listdir(place / "run")) == [
        "checkpoints",
        "evaluations",
        "log",
        "metrics.jsonl",
        "page.html",
        "run.json",
        "summary.json",
        "tensorboard",
        "tokenizer.json",
    ]
    assert sorted(os.listdir(place / "run" / "log")) == [
        "corpus.jsonl",
        "oracle.jsonl",
        "trajectories-00000001.jsonl",
    ]
    said = (place / "stderr.txt").read_text(encoding="utf-8")
    assert "update 1  reward " in said and " tokens/s" in said
    assert "next: herald audit run/log" in said
    # What each detector did, in words, is the result.
    told = (place / "stdout.txt").read_text(encoding="utf-8").splitlines()
    assert len(told) == 8
    assert any("no signal in the rollouts" in line for line in told)


def test_the_log_is_a_pool_that_an_audit_reads(herald: Herald, place: Path, tmp_path: Path) -> None:
    (tmp_path / "audit.toml").write_text(AUDIT, encoding="utf-8")
    done = herald("audit", place / "run" / "log", "-m", "audit.toml", folder=tmp_path)
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "herald-report" / "report.json").read_bytes())
    assert report["rows"] == 8
    metrics = json.loads((place / "run" / "metrics.jsonl").read_text(encoding="utf-8"))
    paid = report["mean_reward"]["R_full"]
    assert abs(metrics["reward/mean"] - paid) < 1e-6


def test_rollouts_of_a_pool_can_be_audited(herald: Herald, place: Path, tmp_path: Path) -> None:
    done = herald(
        "rollout", place / "run", place / "pool", "-o", "out", "--samples", "1", folder=tmp_path
    )
    assert done.code == 0, done.err
    out = tmp_path / "out"
    assert sorted(os.listdir(out)) == ["corpus.jsonl", "oracle.jsonl", "trajectories.jsonl"]
    lines = (out / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    asked = {
        json.loads(line)["question_id"]
        for line in (place / "pool" / "trajectories.jsonl").read_text("utf-8").splitlines()
    }
    assert {row["question_id"] for row in rows} == asked
    assert len(rows) == 2 * len(asked)
    assert f"{len(rows)} rollouts of {len(asked)} questions" in done.err
    assert "after 1 updates; next: herald audit out" in done.err
    checked = herald("validate", *sorted(out.iterdir()), folder=tmp_path)
    assert checked.code == 0, checked.err


def test_eval_prints_figures_with_intervals_and_writes_them(
    herald: Herald, place: Path, tmp_path: Path
) -> None:
    command = ("eval", place / "run", "--questions", "8", "--samples", "1", "-o", "found.json")
    done = herald(*command, folder=tmp_path)
    assert done.code == 0, done.err
    assert "8 questions, 16 rollouts; intervals of 95% over questions" in done.out
    for name in ("em", "f1", "citation precision", "support recall", "cited not retrieved"):
        line = next(line for line in done.out.splitlines() if line.startswith(name))
        assert len(re.findall(r"\d\.\d{3}  \[\d\.\d{3}, \d\.\d{3}\]", line)) == 3, line
    [found] = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["evaluations"]
    assert (found["updates"], found["questions"], found["rollouts"]) == (1, 8, 16)


def test_eval_against_another_checkpoint_is_paired(
    herald: Herald, place: Path, tmp_path: Path
) -> None:
    first, last = (place / "run" / "checkpoints" / step for step in "01")
    done = herald(
        "eval", last, "--against", first, "--questions", "8", "--samples", "1", folder=tmp_path
    )
    assert done.code == 0, done.err
    assert f"{last}, 1 updates" in done.out and f"{first}, 0 updates" in done.out
    assert re.search(
        r"^em +[+-]\d\.\d{3}  \[[+-]\d\.\d{3}, [+-]\d\.\d{3}\]", done.out, re.MULTILINE
    )


def test_a_run_goes_on_and_one_of_other_settings_does_not(herald: Herald, place: Path) -> None:
    again = herald("train", "config.toml", "--set", "run.updates=1", "-o", "run", folder=place)
    assert again.code == 0
    assert "going on from" in again.err and "update 1" not in again.err
    other = herald("train", "config.toml", "--set", "run.seed=5", "-o", "run", folder=place)
    assert other.code == 2
    assert "checkpoints/1: expected settings" in other.err
    assert "Traceback" not in other.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "grpo.clip_lw=0.1"], "grpo.clip_lw: unknown_key: .*did you mean `clip_low`"),
        (["--set", "grpo"], "--set grpo: expected table.key=value"),
        (["--set", "reward.contract=R_ful"], "reward.contract: .*did you mean `R_full`"),
        (["--set", "data.pool=nowhere"], "nowhere"),
        (["--set", "mesh.data=2", "--set", "mesh.fsdp=2"], "mesh"),
        (["missing.toml"], r"missing.toml: unreadable"),
    ],
)
def test_bad_settings_end_with_2_and_name_the_field(
    herald: Herald, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = herald("train", *arguments, "-o", "run", folder=tmp_path)
    assert done.code == 2
    assert re.search(said, done.err), done.err
    assert "Traceback" not in done.err and not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["rollout", "eval"])
def test_what_is_no_run_ends_with_2(herald: Herald, tmp_path: Path, command: str) -> None:
    done = herald(command, "nowhere", "pool", folder=tmp_path)
    assert done.code == 2
    assert "nowhere: expected the folder of a run" in done.err


def test_a_checkpoint_that_is_not_there_ends_with_2(herald: Herald, place: Path) -> None:
    done = herald("eval", "run/checkpoints/7", folder=place)
    assert done.code == 2
    assert "expected a whole checkpoint 7, got none" in done.err


def test_defaults_are_a_file(herald: Herald, tmp_path: Path) -> None:
    done = herald("train", "--defaults", folder=tmp_path)
    assert (done.code, done.out) == (0, default_config_toml())


def test_a_sweep_knows_its_signals(herald: Herald, tmp_path: Path) -> None:
    done = herald("sweep", "--signal", "covdep", folder=tmp_path)
    assert done.code == 2
    assert all(name in done.err for name in SIGNALS[1:])


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX has them")
def test_an_interrupted_run_saves_its_update_and_goes_on(
    herald: Herald, programs: str, tmp_path: Path
) -> None:
    """Ctrl-C once the first update is logged: 130, and the next call goes on from it."""
    changes = {"run": {"updates": 200, "checkpoint_every": 1000}}
    (tmp_path / "config.toml").write_text(settings(**changes), encoding="utf-8")
    command = [sys.executable, "-m", "herald_jax.cli", "train", "config.toml", "-o", "run"]
    # As many devices as the tests have: the programs are then those that are there.
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": programs,
        "JAX_NUM_CPU_DEVICES": str(jax.device_count()),
    }
    with subprocess.Popen(
        [*command, "--set", "run.budget=10000000"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        log = tmp_path / "run" / "log" / "trajectories-00000001.jsonl"
        while process.poll() is None and not log.exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    done = len((tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    assert 1 <= done < 200
    assert (tmp_path / "run" / "checkpoints" / str(done)).is_dir()
    assert not (tmp_path / "run" / "summary.json").exists()
    limit = f"run.updates={done + 1}"
    again = herald("train", "config.toml", "-q", "--set", limit, "-o", "run", folder=tmp_path)
    assert again.code == 0, again.err
    assert (
        f"going on from {tmp_path / 'run' / 'checkpoints' / str(done)}: {done:,} upd" in again.err
    )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert summary["updates"] == done + 1


def test_the_page_on_training_names_every_table_and_its_settings_are_valid(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    assert [name for name in SECTIONS if f"`[{name}]`" not in text] == []
    examples = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    found = [parse_config(tomllib.loads(example), "training.md") for example in examples]
    assert [config.credit.signal for config in found] == ["cov_dep", "cov"]
    assert found[1].policy.lora_rank == 16


def test_the_reward_of_the_page_is_a_reward() -> None:
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {
        "passages": [Passage("p", "text")],
        "oracle": [OracleRow("q", ["x"], ["p"])],
        "records": [Trajectory("t", "q", "?", [], "x", ["p"])],
    }
    exec(compile(example, "docs/training.md", "exec"), names)
    # Right, and cites what no search returned.
    assert names["rewarded"].reward.tolist() == [-1.0]
