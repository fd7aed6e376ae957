"""The benchmarks of training: the work they time is done, and a wrong side ends the comparison."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import train_devices
import train_peer
import train_step
from train_devices import Work

from herald_jax.train.model_config import ModelConfig
from herald_jax.train.reward import Rewarded

ROOT = Path(__file__).resolve().parents[2]
# What a bare machine with an accelerator need not have.
ABSENT = ("msgspec", "pyarrow", "tokenizers", "safetensors", "orbax", "tensorboardX", "typer")
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
SHAPE = ModelConfig(vocab=32, width=16, layers=1, heads=2, kv_heads=1, head_dim=8, hidden=16)
WORK = Work(rows=8, prompt=4, written=4, micro_rows=4)


def on_a_bare_machine(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", BARE, str(ROOT / "benchmarks" / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_benchmark_of_devices_begins_on_a_bare_machine():
    done = on_a_bare_machine("train_devices.py", "--help")
    assert done.returncode == 0, done.stderr
    assert "is not installed here" in on_a_bare_machine("train_step.py", "--help").stderr


def test_an_update_is_the_same_on_one_and_on_two_devices():
    assert jax.local_device_count() == 2
    runs = {
        count: [train_devices.time_update(SHAPE, WORK, count, 1, jnp.float32)] for count in (1, 2)
    }
    rows = train_devices.host_rows("one", runs)
    assert [row.unit for row in rows] == ["tokens/s", "tokens/s"]
    assert all(row.ratio > 0 for row in rows)
    assert runs[1][0]["first"]["gradient"] > 0
    runs[2][0]["first"]["gradient"] *= 1.001
    with pytest.raises(SystemExit, match="2 devices: loss or gradient differs"):
        train_devices.host_rows("one", runs)


def test_decoding_writes_every_token(monkeypatch):
    monkeypatch.setattr(train_devices, "time_update", lambda *_: {"seconds": [1.0]})
    rows = train_devices.throughput("one", SHAPE, WORK, 1, jnp.float32, "here")
    assert [row.name.split()[0] for row in rows] == ["decoding", "update"]
    # Were the end token one of the model's, some row would end early.
    inner = train_devices.take_turn
    monkeypatch.setattr(
        train_devices, "take_turn", lambda *a, **k: inner(*a, **{**k, "end": 0, "greedy": True})
    )
    monkeypatch.setattr(jnp, "argmax", lambda x, axis: jnp.zeros(x.shape[:-1], jnp.int32))
    with pytest.raises(SystemExit, match="before it had written"):
        train_devices.time_decoding(SHAPE, Work(rows=2, prompt=4, written=5), 1, jnp.float32)


def test_more_devices_hold_less_of_a_large_policy():
    rows = train_devices.memory_rows()
    held = {name: row.ratio for name, row in zip(train_devices.MESHES, rows, strict=True)}
    # 8.19e9 parameters, 16 bytes each: value, gradient, two moments.
    assert held[1, 8, 1] == pytest.approx(8.19 * 16 / 8, rel=0.01)
    assert held[1, 64, 1] == pytest.approx(8.19 * 16 / 64, rel=0.01)
    assert held[2, 4, 1] == pytest.approx(2 * held[1, 8, 1], rel=0.01)


DONE = {"generated": 6.0, "moved": 0.1, "prompt_tokens": 3.0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"generated": 5.0}, "TRL wrote 5.0"),
        ({"moved": 0.0}, "TRL did not change"),
        ({"moved": float("nan")}, "TRL did not change"),
        ({"prompt_tokens": 4.0}, "prompts of 3.0, 4.0"),
    ],
)
def test_other_work_than_ours_ends_the_comparison(change, words):
    train_step.check([DONE], [DONE], 6)
    with pytest.raises(SystemExit, match=words):
        train_step.check([DONE], [DONE | change], 6)


def test_rounds_that_compile_are_left_out():
    compiled = train_step.Compiled()
    sizes = iter([1, 2, 2, 3, 3, 3])

    def take():
        size = next(sizes)
        grown(np.zeros(1000 + size, np.float32)).block_until_ready()
        return size

    grown = jax.jit(lambda x: x - 7.0)
    assert train_step.settled(take, 2, compiled, warm=1) == ([2, 3], 2)


def test_pay_by_turns_keeps_what_the_contract_found():
    em = np.float32([0, 0, 1, 0])

    class Contract:
        def __init__(self):
            self.penalties = {"x": 1.0}

        def __call__(self, records):
            return Rewarded(np.zeros(4, np.float32), {}, {}, em, em)

    paid = train_step.ByTurns(Contract())(list("abcd"))
    assert paid.reward.tolist() == [0, 1, 0, 1]
    assert paid.em is em


def test_without_trl_it_is_said(tmp_path):
    program = "import sys; sys.modules['trl'] = None; import runpy; runpy.run_path('{}', {})"
    code = program.format(train_peer.__file__, "run_name='__main__'")
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nshift\nexec "{sys.executable}" -c "{code}" "$@"\n')
    wrapper.chmod(0o755)
    with pytest.raises(train_step.PeerAbsentError, match=r"trl|torch"):
        train_step.Peer(str(wrapper), tmp_path)
    with pytest.raises(train_step.PeerAbsentError, match="No such file"):
        train_step.Peer(str(tmp_path / "none"), tmp_path)


def test_our_step_of_one_turn_does_all_its_work():
    ours = train_step.one_turn("tiny", 2)
    found = ours.step()
    train_step.check([found], [found], train_step.ROWS * 2)
    rows = train_step.rows_of(ours, [found], None, "not measured")
    assert [row.ratio for row in rows] == [None] * 3
    assert "not measured" in rows[0].detail
    theirs = found | {"step": 3 * found["step"], "generation": 1.2 * found["rollout"]}
    rows = train_step.rows_of(ours, [found], [theirs], "told")
    assert [row.reached for row in rows] == [True, False, None]
