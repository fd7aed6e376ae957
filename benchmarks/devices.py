"""The audit kernels on one device and on several: the same bytes, and how long each takes.

Every kind runs in a process of its own, since JAX settles the number of devices once: one and eight
devices of the host (`--xla_force_host_platform_device_count`), and an accelerator where there is
one, against two cores of the same host. The processes take turns; sums per question are compared by
their SHA-256. Eight devices share two cores of the host, so that no speed-up is to be expected.

  python benchmarks/devices.py
  python benchmarks/devices.py --quick
  python benchmarks/devices.py --out benchmarks/results/devices.json
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
from typing import Any

from measured import Row, arguments, finish, lowest, seconds

HOST_DEVICES = 8
GOAL_ACCELERATOR = 20
QUICK = {"rows": 160_000, "rounds": 1}
PASSES = 3
TWO_CORES = 2


def child(rows: int, seed: int) -> None:
    """One process: the seconds of some passes, the digest of the sums, what it ran on."""
    import jax
    import synthetic
    from kernel_engine import SELECTORS, Engine, block_rows, blocks
    from machine import machine

    data = synthetic.generate(rows, seed)
    engine = Engine(data)
    parts = blocks(data, block_rows())
    accelerated = jax.default_backend() != "cpu"
    if accelerated:
        # What an accelerator is for: blocks lie in its own memory.
        parts = [engine.place(block) for block in parts]
    sums = engine.audit(parts)  # compiles
    digest = hashlib.sha256(b"".join(sums[name].tobytes() for name in SELECTORS)).hexdigest()
    found = {
        "seconds": [seconds(lambda: engine.audit(parts)) for _ in range(PASSES)],
        "digest": digest,
        "devices": jax.local_device_count(),
        "machine": machine(),
    }
    print(json.dumps(found))


def run(options: argparse.Namespace, cores: int | None = None, **environment: str) -> Any:
    """What a child says, on so many cores."""
    command = [sys.executable, __file__, "--child"]
    command += [f"--rows={options.rows}", f"--seed={options.seed}"]

    def pin() -> None:
        if cores is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])

    done = subprocess.run(
        command,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=pin,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def host(devices: int) -> dict[str, str]:
    """The environment of a process with so many devices of the host."""
    flags = os.environ.get("XLA_FLAGS", "")
    forced = f"{flags} --xla_force_host_platform_device_count={devices}".strip()
    return {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": forced}


def measure(options: argparse.Namespace) -> tuple[list[Row], Any]:
    one, many, chip = [], [], []
    before = run(options)
    accelerated = before["machine"]["backend"] != "cpu"
    for _ in range(options.rounds):
        one.append(run(options, TWO_CORES, **host(1)))
        many.append(run(options, TWO_CORES, **host(HOST_DEVICES)))
        if accelerated:
            chip.append(run(options))
    if one[0]["devices"] != 1 or many[0]["devices"] != HOST_DEVICES:
        sys.exit(f"{one[0]['devices']} and {many[0]['devices']} devices, not 1 and {HOST_DEVICES}")

    def spent(runs: list[Any]) -> list[float]:
        return [statistics.median(found["seconds"]) for found in runs]

    digests = {found["digest"] for found in [*one, *many]}
    name = f"audit kernels, {options.rows:,} trajectories"
    rows = [
        Row(
            name=f"{name}: other sums on {HOST_DEVICES} host devices than on one",
            seconds=statistics.median(spent(many)),
            measured=len(digests) - 1,
            unit="differ",
            goal=0,
            at_most=True,
            detail=f"sums per question by their SHA-256, {one[0]['digest'][:16]}, over "
            f"{len(one) + len(many)} processes",
        ),
        Row(
            name=f"{name}: {HOST_DEVICES} host devices on two cores",
            against="1 host device",
            seconds=statistics.median(spent(many)),
            peer_seconds=statistics.median(spent(one)),
            detail="no speed-up is to be expected, the cores are shared",
        ),
    ]
    if accelerated:
        ours, theirs = spent(chip), spent(one)
        alike = "identical to those" if chip[0]["digest"] in digests else "other than those"
        rows.append(
            Row(
                name=f"{name}: {before['machine']['devices']}",
                against="two cores",
                seconds=statistics.median(ours),
                peer_seconds=statistics.median(theirs),
                goal=GOAL_ACCELERATOR,
                detail=f"blocks in its memory, every program waited for; lowest of "
                f"{options.rounds} rounds {lowest(ours, theirs):,.1f}x; sums {alike} of the cores",
            )
        )
    return rows, before["machine"]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="a multiple of 8")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.rows, options.seed)
        return
    if options.quick:
        vars(options).update(QUICK)
    rows, machine = measure(options)
    finish(options, "audit kernels: nothing depends on the number of devices", machine, rows)


if __name__ == "__main__":
    main()
