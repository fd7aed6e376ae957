"""The number of devices changes no byte of a report."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
from audit_comparison import write_pool
from reference import hostile

from herald_jax.audit import run, staging
from herald_jax.manifest import parse_manifest
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool

ROOT = Path(__file__).resolve().parents[2]
QUICK = {"statistics": {"replicates": 100}, "sections": {"cancellation": False, "scales": False}}

ON_EIGHT = f"""
import sys, jax
from herald_jax.audit import run
from herald_jax.pool.find import find_pool_files
from herald_jax.pool.load import load_pool
from herald_jax.manifest import parse_manifest
assert jax.local_device_count() == 8
report = run(load_pool(*find_pool_files(sys.argv[1])), parse_manifest({QUICK!r}, "quick"))
sys.stdout.buffer.write(report.to_json())
"""


def test_eight_devices_give_the_bytes_of_those_here(tmp_path):
    write_pool(tmp_path, hostile.pool(2))
    here = run(load_pool(*find_pool_files(tmp_path)), parse_manifest(QUICK, "quick")).to_json()
    assert jax.local_device_count() < 8
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    done = subprocess.run(
        [sys.executable, "-c", ON_EIGHT, tmp_path],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == here


def test_a_block_is_split_by_trajectories_when_it_divides():
    devices = jax.local_device_count()
    tree = {"ids": np.zeros((3, 4 * devices), np.int32), "row": np.zeros(4 * devices, bool)}
    placed = staging.spread(tree, 4 * devices)
    for leaf in placed.values():
        shards = {shard.data.shape for shard in leaf.addressable_shards}
        assert shards == {(*leaf.shape[:-1], 4)}
        assert len(leaf.addressable_shards) == devices
    odd = staging.spread({"row": np.zeros(4 * devices + 1, bool)}, 4 * devices + 1)
    assert len(odd["row"].addressable_shards) == 1
