"""A whole update on eight devices of the host is the update of one."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import jax, numpy as np
from train_setups import small_config
from herald_jax.train.setup import prepare
from herald_jax.train.trainer import Trainer

found = []
for data, fsdp, tensor in [(1, 1, 1), (2, 2, 2)]:
    config = small_config(
        mesh={"data": data, "fsdp": fsdp, "tensor": tensor},
        grpo={"micro_rows": 8, "kl": 0.1},
        environment={"turns": 2},
    )
    setup, states = prepare(config)
    trainer = Trainer(setup, states)
    largest = max(
        sum(shard.data.nbytes for leaf in jax.tree.leaves(trainer.state.params)
            for shard in leaf.addressable_shards if shard.device == device)
        for device in setup.mesh.devices.flat
    )
    whole = sum(leaf.nbytes for leaf in jax.tree.leaves(trainer.state.params))
    update = trainer.update()
    found.append({
        "tokens": [run.tokens for run in update.rollouts],
        "loss": update.metrics["loss"],
        "norm": update.metrics["grad/norm"],
        "reward": update.metrics["reward/mean"],
        "share": largest / whole,
        "params": float(sum(np.abs(leaf).sum() for leaf in jax.tree.leaves(trainer.states))),
    })
print(json.dumps(found))
"""


def test_an_update_is_the_same_on_every_mesh():
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[1])],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    one, other = json.loads(done.stdout.splitlines()[-1])
    assert other["tokens"] == one["tokens"]
    for name in ("loss", "norm", "reward", "params"):
        assert abs(other[name] - one[name]) <= 1e-4 * abs(one[name]) + 1e-6, name
    assert one["share"] == 1
    assert other["share"] <= 0.5
