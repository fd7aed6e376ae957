"""The update and decoding by number of devices, and the memory of Qwen3-8B on 8 and 64 of them.

1. Tokens a second of one update (forward, backward, optimiser) on 1, 2, 4 and 8 devices of the
   host, parameters split over all of them (fsdp). Each number is a process of its own, since JAX
   settles it once (`--xla_force_host_platform_device_count`); the processes take turns. The devices
   share the host's two cores, so that nothing like so many times the speed is to be expected: what
   shows is what splitting costs, and what a device by itself leaves idle. Loss and gradient of the
   first step are compared with those of one device.
2. Bytes that parameters, gradients and moments of Qwen3-8B take on each device, worked out from the
   table of shardings; no device is needed. Activations and caches come on top.
3. Where there is an accelerator: tokens a second of decoding and of the update there, in bfloat16,
   for the preset `small` and for Qwen3-0.6B, weights random.

It imports of this package what needs JAX, Flax, Optax and chex alone, so that it runs on a bare
machine with an accelerator.

  python benchmarks/train_devices.py --quick
  python benchmarks/train_devices.py --out benchmarks/results/train_devices.json
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from machine import machine
from measured import Row, arguments, finish

from herald_jax.kernels.policy_loss import token_weights
from herald_jax.train.memory import MemoryRow, memory_table
from herald_jax.train.model import Decoder, empty_cache
from herald_jax.train.model_config import PRESETS, ModelConfig
from herald_jax.train.sampler import Context, take_turn
from herald_jax.train.sharding import batch_sharding, make_mesh, param_shardings, replicated
from herald_jax.train.update import Batch, TrainState, make_step

COUNTS = (1, 2, 4, 8)
NEAR = 1e-4  # relative, of loss and norm of the gradient
# (data, fsdp, tensor), the cheapest to exchange first.
MESHES = (
    (1, 8, 1),
    (1, 4, 2),
    (2, 4, 1),
    (1, 64, 1),
    (8, 8, 1),
    (1, 16, 4),
    (2, 8, 4),
)
LARGE = "qwen3-8b"


@dataclass(frozen=True)
class Work:
    """How much there is to do.

    Attributes:
        rows: B rollouts.
        prompt: tokens that each reads.
        written: tokens that each writes and is trained on.
        micro_rows: rows of a micro-batch.
    """

    rows: int = 64
    prompt: int = 64
    written: int = 128
    micro_rows: int = 16

    @property
    def tokens(self) -> int:
        """All that an update reads."""
        return self.rows * (self.prompt + self.written)


def split_policy(
    shape: ModelConfig, compute: Any, mesh: jax.sharding.Mesh
) -> tuple[nnx.GraphDef[Any], tuple[Any, Any]]:
    """Structure and states of a policy with random weights, laid out over the mesh."""

    def build() -> Decoder:
        return Decoder(shape, rngs=nnx.Rngs(0), dtype=compute, remat=shape.width >= 1024)

    def states() -> tuple[Any, Any]:
        _, *parts = nnx.split(build(), nnx.Param, ...)
        return parts[0], parts[1]

    graph, *abstract = nnx.split(nnx.eval_shape(build), nnx.Param, ...)
    placed = param_shardings(tuple(abstract), mesh).shardings
    return graph, jax.jit(states, out_shardings=placed)()


def random_batch(shape: ModelConfig, work: Work, mesh: jax.sharding.Mesh) -> Batch:
    """Rollouts of nothing, whose log-probabilities are those of an even choice."""
    rng = np.random.default_rng(0)
    trained = (work.rows, work.written)
    places = np.broadcast_to(work.prompt + np.arange(work.written, dtype=np.int32), trained)
    batch = Batch(
        tokens=jnp.asarray(
            rng.integers(0, shape.vocab, (work.rows, work.prompt + work.written)), jnp.int32
        ),
        length=jnp.full(work.rows, work.prompt + work.written, jnp.int32),
        places=jnp.asarray(places),
        old_logps=jnp.full(trained, -np.log(shape.vocab), jnp.float32),
        reference=jnp.zeros(trained, jnp.float32),
        advantage=jnp.asarray(
            np.repeat(rng.choice([-1.0, 1.0], work.rows)[:, None], work.written, 1), jnp.float32
        ),
        weight=token_weights(jnp.ones(trained, jnp.bool_), "token_mean"),
    )
    return jax.device_put(batch, jax.tree.map(lambda _: batch_sharding(mesh), batch))


def time_update(shape: ModelConfig, work: Work, devices: int, rounds: int, compute: Any) -> Any:
    """Seconds of updates, and what the first one found."""
    mesh = make_mesh(1, devices, 1)
    graph, (trained, frozen) = split_policy(shape, compute, mesh)
    batch = random_batch(shape, work, mesh)
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(1e-3, b2=0.99, weight_decay=0.0)
    )

    def start(trained: Any, frozen: Any) -> TrainState:
        return TrainState(
            params=trained, frozen=frozen, optimizer=optimizer.init(trained), step=jnp.int32(0)
        )

    placed = param_shardings(jax.eval_shape(start, trained, frozen), mesh).shardings
    state = jax.jit(start, out_shardings=placed)(trained, frozen)
    step = jax.jit(
        make_step(
            graph,
            optimizer,
            micro_rows=work.micro_rows,
            temperature=1.0,
            clip_low=0.2,
            clip_high=0.28,
            kl_weight=0.0,
        ),
        donate_argnums=0,
        out_shardings=(placed, None),
    )
    spent, first = [], None
    for _ in range(rounds + 2):
        before = time.perf_counter()
        state, stats = jax.block_until_ready(step(state, batch))
        spent.append(time.perf_counter() - before)
        first = first or {"loss": float(stats.loss), "gradient": float(stats.grad_norm)}
        if not bool(stats.finite):
            sys.exit(f"the gradient is not finite on {devices} devices")
    return {"seconds": spent[2:], "first": first, "devices": devices}


def time_decoding(shape: ModelConfig, work: Work, rounds: int, compute: Any) -> list[float]:
    """Seconds of turns in which every row writes all it may: no id ends one."""
    mesh = make_mesh(1, 1, 1)
    graph, states = split_policy(shape, compute, mesh)
    slots = work.prompt + work.written
    chunk = jnp.asarray(
        np.random.default_rng(0).integers(0, shape.vocab, (work.rows, work.prompt)), jnp.int32
    )
    spent = []
    for turn in range(rounds + 1):
        context = Context(
            cache=empty_cache(shape, work.rows, slots, compute),
            held=jnp.zeros((work.rows, slots), jnp.bool_),
            position=jnp.zeros(work.rows, jnp.int32),
            at=jnp.int32(0),
        )
        jax.block_until_ready(context)
        before = time.perf_counter()
        _, written = take_turn(
            graph,
            states,
            context,
            chunk,
            jnp.full(work.rows, work.prompt, jnp.int32),
            jnp.arange(work.rows, dtype=jnp.int32),
            jnp.ones(work.rows, jnp.bool_),
            np.array([0, 0, turn], np.uint32),
            length=work.written,
            end=shape.vocab,
            temperature=1.0,
            top_p=1.0,
            greedy=False,
            told=replicated(mesh),
        )
        count = np.asarray(written.count)
        spent.append(time.perf_counter() - before)
        if count.tolist() != [work.written] * work.rows:
            sys.exit("a row ended before it had written all its tokens")
    return spent[1:]


def child(options: argparse.Namespace) -> None:
    """One process with so many devices of the host."""
    if jax.local_device_count() != options.child:
        sys.exit(f"{jax.local_device_count()} devices, not {options.child}")
    found = time_update(
        PRESETS[options.preset], Work(), options.child, options.updates, jnp.float32
    )
    print(json.dumps(found))


def on_host_devices(options: argparse.Namespace) -> list[Row]:
    """One row for each number of devices."""
    runs: dict[int, list[Any]] = {count: [] for count in COUNTS}
    flags = os.environ.get("XLA_FLAGS", "")
    command = [sys.executable, __file__, f"--preset={options.preset}"]
    command.append(f"--updates={options.updates}")
    for _ in range(options.rounds):
        for count in COUNTS:
            forced = f"{flags} --xla_force_host_platform_device_count={count}".strip()
            done = subprocess.run(
                [*command, f"--child={count}"],
                env=os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": forced},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            runs[count].append(json.loads(done.stdout.splitlines()[-1]))
    return host_rows(options.preset, runs)


def host_rows(preset: str, runs: dict[int, list[Any]]) -> list[Row]:
    """Rows from what the processes found; the same step on all of them, or the end."""
    one = runs[1][0]["first"]
    rows, alone = [], median(median(run["seconds"]) for run in runs[1])
    for count, found in runs.items():
        for run in found:
            gap = max(abs(run["first"][name] / one[name] - 1) for name in one)
            if not gap <= NEAR:
                sys.exit(f"{count} devices: loss or gradient differs by {gap:.1e} from one device")
        spent = median(median(run["seconds"]) for run in found)
        rows.append(
            Row(
                name=f"update of {Work().rows} rollouts, {preset}, on {count} host devices",
                seconds=spent,
                measured=Work().tokens / spent,
                unit="tokens/s",
                detail=f"{alone / spent:.2f} of one device's; {len(found)} processes, shared cores",
            )
        )
    return rows


def memory_rows() -> list[Row]:
    """What training a large policy keeps on each device."""
    before = time.perf_counter()
    wide = memory_table(PRESETS[LARGE], MESHES)
    spent = time.perf_counter() - before
    narrow = memory_table(PRESETS[LARGE], MESHES, param_dtype=jnp.bfloat16)
    return [
        Row(
            name=f"{LARGE} on {row.devices} devices, data {row.data} x fsdp {row.fsdp} x tensor "
            f"{row.tensor}: a device holds",
            seconds=spent / len(MESHES),
            measured=row.total / 1e9,
            unit="GB",
            detail=f"float32: {parts(row)}; bfloat16 parameters and gradients, float32 moments: "
            f"{half.total / 1e9:.2f} GB; without activations",
        )
        for row, half in zip(wide, narrow, strict=True)
    ]


def parts(row: MemoryRow) -> str:
    """Of what the total is made."""
    named = {"parameters": row.parameters, "gradients": row.gradients, "moments": row.optimiser}
    return ", ".join(f"{name} {size / 1e9:.2f}" for name, size in named.items())


def throughput(
    name: str, shape: ModelConfig, work: Work, rounds: int, compute: Any, on: str
) -> list[Row]:
    """Decoding and update on one device of this process."""
    decoding = median(time_decoding(shape, work, rounds, compute))
    update = median(time_update(shape, work, 1, rounds, compute)["seconds"])
    kind = jnp.dtype(compute).name
    return [
        Row(
            name=f"decoding of {work.rows} rollouts, {name}, {on}",
            seconds=decoding,
            measured=work.rows * work.written / decoding,
            unit="tokens/s",
            detail=f"{kind}; reads {work.prompt} tokens, then writes {work.written} in each row, "
            f"{1e3 * decoding / work.written:.2f} ms a token",
        ),
        Row(
            name=f"update of {work.rows} rollouts, {name}, {on}",
            seconds=update,
            measured=work.tokens / update,
            unit="tokens/s",
            detail=f"{kind}, micro-batches of {work.micro_rows} rows",
        ),
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--preset", default="small", choices=sorted(PRESETS), help="on the host")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each number of devices")
    parser.add_argument("--updates", type=int, default=9, help="in each process")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    if options.quick:
        options.preset, options.rounds, options.updates = "tiny", 1, 3
    before = machine()
    rows = [*on_host_devices(options), *memory_rows()]
    if jax.default_backend() == "cpu":
        shape = PRESETS[options.preset]
        rows += throughput(options.preset, shape, Work(), options.updates, jnp.float32, "host")
    else:
        on = str(before["devices"])
        for name, work in {"small": Work(rows=512, micro_rows=128), "qwen3-0.6b": Work()}.items():
            rows += throughput(name, PRESETS[name], work, options.updates, jnp.bfloat16, on)
    finish(options, "training by number of devices", before, rows)


if __name__ == "__main__":
    main()
