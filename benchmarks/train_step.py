"""One GRPO step, whole and by its parts: against TRL's GRPOTrainer, and on the built-in world.

1. A step of 64 rollouts (8 questions, 8 rollouts each) of one turn: generation, reward, advantages,
   update. TRL's GRPOTrainer takes the same steps in a process of its own (`train_peer.py`), by
   turns with ours in one run: a transformers Qwen3 of the same shape that starts from the same
   parameters, the same tokeniser, the same prompts in each step, float32, as many micro-batches.
   Neither side's end token is an id that the model can write, so that both generate every token
   they may. Rollouts of a group are paid 0 and 1 by turns; ours works out the audited contract
   besides and throws it away, which is more work. `--devices 2` lets ours split the rollouts over
   two devices of the host, on the very cores that torch's threads have. In the same run it is
   checked that both sides give the first prompt the same log-probabilities, read and wrote as many
   tokens in every step, and moved their parameters. Generation is ours with text, spans and records
   of turns, theirs the bare call of `generate`.
2. A step of the trainer as it is used: the built-in world, up to three turns with searches, a
   policy that learned the format first; which share of it each part takes. The reward, from
   records to what each term paid, is to take 2 % at most.

A round in which a program was compiled counts for nothing. Without TRL the first part is ours
alone and says so.

  python benchmarks/train_step.py --quick
  python benchmarks/train_step.py --peer-python trl/bin/python
  python benchmarks/train_step.py --out benchmarks/results/train_step.json
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from flax import nnx
from machine import machine
from measured import Row, arguments, finish, lowest, seconds

from herald_jax.data.records import Trajectory
from herald_jax.train.chat import PAD, prompt
from herald_jax.train.config_load import parse_config
from herald_jax.train.grouping import questions_of_update
from herald_jax.train.reward import Rewarded, RewardModel
from herald_jax.train.run import traces_of
from herald_jax.train.setup import Setup, prepare
from herald_jax.train.trainer import Trainer
from herald_jax.train.update import token_logps
from herald_jax.train.warm_start import warm_start
from herald_jax.train.weights import save_weights

GROUP, QUESTIONS = 8, 8
ROWS = GROUP * QUESTIONS
TOKENS = 112  # of a rollout against TRL
GOAL_STEP, GOAL_GENERATION, GOAL_REWARD = 1.0, 1.3, 2.0
NEAR = 1e-4  # of log-probabilities of the two models at the start
PARTS = ("rollout", "reward", "advantage", "update")
MOST_ROUNDS = 4  # times as many as asked for, until enough of them compiled nothing
PEER = Path(__file__).with_name("train_peer.py")

Tables = dict[str, dict[str, Any]]
ONE_TURN: Tables = {
    "data": {"questions": 600, "kinds": ["single"]},
    "policy": {"vocab": 512, "compute": "float32"},
    "environment": {"turns": 1},
    "rollouts": {"group": GROUP, "questions": QUESTIONS, "turn_tokens": TOKENS},
    "credit": {"signal": "none"},
    "optimizer": {"warmup": 0},
}
WORLD: Tables = {
    "data": {"questions": 2000, "kinds": ["single"]},
    "policy": {"preset": "tiny", "vocab": 512, "compute": "float32"},
    "environment": {"turns": 3, "results": 1, "passage_tokens": 96},
    "rollouts": {"group": GROUP, "questions": QUESTIONS, "turn_tokens": 48},
    "warm_start": {"steps": 400, "tokens": 256},
}


class PeerAbsentError(Exception):
    """Nothing to compare with; the text says what is missing."""


class Compiled:
    """Counts the programs that JAX compiles from now on."""

    def __init__(self) -> None:
        self.programs = 0
        jax.monitoring.register_event_duration_secs_listener(self._count)

    def _count(self, event: str, *_: Any, **__: Any) -> None:
        self.programs += event == "/jax/core/compile/backend_compile_duration"


class ByTurns:
    """Pays the rollouts of a group 0 and 1 by turns, after the contract was worked out."""

    def __init__(self, contract: RewardModel) -> None:
        self._contract = contract
        self.penalties = contract.penalties

    def __call__(self, records: list[Trajectory]) -> Rewarded:
        paid = np.arange(len(records)) % 2
        return replace(self._contract(records), reward=paid.astype(np.float32))


class Peer:
    """TRL in a process of its own.

    Raises:
        PeerAbsentError: the interpreter has no TRL, or there is no such interpreter.
    """

    def __init__(self, python: str, folder: Path) -> None:
        try:
            self._process = subprocess.Popen(
                [python, PEER, folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                # A checkout on the path has folders called as packages are that it looks for.
                env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            )
        except OSError as error:
            raise PeerAbsentError(f"{python}: {error.strerror}") from None
        self.hello = self._answer()
        if "absent" in self.hello:
            self.close()
            raise PeerAbsentError(self.hello["absent"])

    def step(self) -> dict[str, float]:
        """Takes one, and what it took."""
        assert self._process.stdin is not None
        self._process.stdin.write("step\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.communicate()
            sys.exit(f"{PEER.name} ended with exit code {self._process.returncode}")
        return dict(json.loads(line))

    def close(self) -> None:
        """Ends it."""
        self._process.communicate()


class Ours:
    """A trainer, and what a step of it took."""

    def __init__(self, setup: Setup, states: tuple[Any, Any]) -> None:
        self.setup = setup
        self.trainer = Trainer(setup, states)

    def step(self) -> dict[str, float]:
        """Takes one."""
        before = jax.device_get(self.trainer.state.params)
        cpu = time.process_time()
        spent = seconds(self._update)
        cpu = time.process_time() - cpu
        moved = jax.tree.map(
            lambda new, old: np.abs(np.asarray(new) - old).max(), self.trainer.state.params, before
        )
        metrics = self._found.metrics
        return {part: float(metrics[f"seconds/{part}"]) for part in PARTS} | {
            "step": spent,
            "cpu": cpu,
            "generated": metrics["tokens/action"],
            "prompt_tokens": sum(run.spans[0].last for run in self._found.rollouts),
            "whole": sum(len(run.tokens) for run in self._found.rollouts),
            "searches": float(metrics["searches/mean"]),
            "answered": 1 - float(metrics["rollouts/unanswered"]),
            "moved": float(max(jax.tree.leaves(moved))),
        }

    def _update(self) -> None:
        self._found = self.trainer.update()


def one_turn(preset: str, tokens: int, micro_rows: int = 16, devices: int = 1) -> Ours:
    """The trainer of the comparison: no rollout ends before it has written all its tokens."""
    tables = ONE_TURN | {
        "policy": ONE_TURN["policy"] | {"preset": preset},
        "rollouts": ONE_TURN["rollouts"] | {"turn_tokens": tokens},
        "grpo": {"micro_rows": micro_rows},
        "mesh": {"data": devices},
    }
    setup, states = prepare(parse_config(tables, "train_step.py"))
    setup.tokeniser.end = setup.shape.vocab
    reward: Any = ByTurns(setup.reward)
    return Ours(replace(setup, reward=reward), states)


def write_folder(ours: Ours, folder: Path, steps: int) -> None:
    """What the peer starts from."""
    setup, config = ours.setup, ours.setup.config
    save_weights(ours.trainer.state.params, setup.shape, folder)
    setup.tokeniser.save(folder / "tokenizer.json")
    settings = {
        "prompts": [prompt(task.question) for task in tasks_of(setup, range(steps))],
        "pad": PAD,
        "tokens": config.rollouts.turn_tokens,
        "seed": config.run.seed,
        **{name: getattr(config.rollouts, name) for name in ("group", "questions")},
        **{name: getattr(config.grpo, name) for name in ("micro_rows", "clip_low", "clip_high")},
        **{
            name: getattr(config.optimizer, name)
            for name in ("learning_rate", "beta1", "beta2", "clip_norm")
        },
    }
    (folder / "peer.json").write_text(json.dumps(settings), encoding="utf-8")


def tasks_of(setup: Setup, updates: range) -> list[Any]:
    """The questions of some updates, in order."""
    settings = setup.config
    return [
        task
        for number in updates
        for task in questions_of_update(
            setup.tasks.train, settings.rollouts.questions, number, settings.run.seed
        )
    ]


def first_logps(ours: Ours) -> list[float]:
    """Log-probabilities of the first prompt's tokens after its first."""
    setup = ours.setup
    ids = setup.tokeniser.encode(prompt(tasks_of(setup, range(1))[0].question))
    policy = nnx.merge(setup.graph, *ours.trainer.states)
    found, _ = token_logps(
        policy,
        np.array([ids], np.int32),  # type: ignore[arg-type]
        np.array([len(ids)], np.int32),  # type: ignore[arg-type]
        np.arange(1, len(ids), dtype=np.int32)[None],  # type: ignore[arg-type]
        temperature=1.0,
    )
    return np.asarray(found)[0].tolist()


def settled(
    take: Callable[[], Any], rounds: int, compiled: Compiled, warm: int
) -> tuple[list[Any], int]:
    """So many rounds in which nothing was compiled, after `warm`; and how many others there were.

    The last ones are taken when there are not so many in a few times as many.
    """
    for _ in range(warm):
        take()
    kept, others = [], 0
    while len(kept) < rounds:
        before = compiled.programs
        found = take()
        if compiled.programs == before or others >= (MOST_ROUNDS - 1) * rounds:
            kept.append(found)
        else:
            others += 1
    return kept, others


def check(ours: list[dict[str, float]], theirs: list[dict[str, float]], generated: int) -> None:
    """Both sides did the same amount of work, and learned."""
    for at, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        for name, found in (("ours", mine), ("TRL", other)):
            if found["generated"] != generated:
                sys.exit(f"round {at}: {name} wrote {found['generated']}, not {generated} tokens")
            if not found["moved"] > 0:
                sys.exit(f"round {at}: {name} did not change its parameters")
        if mine["prompt_tokens"] != other["prompt_tokens"]:
            sys.exit(f"round {at}: prompts of {mine['prompt_tokens']}, {other['prompt_tokens']}")


def against_trl(
    preset: str, options: argparse.Namespace, compiled: Compiled, folder: Path
) -> tuple[list[Row], dict[str, Any]]:
    """Rows of one shape, and what the peer is."""
    ours = one_turn(preset, options.tokens, options.micro_rows, options.devices)
    folder.mkdir()
    write_folder(ours, folder, options.warm + MOST_ROUNDS * options.rounds)
    try:
        peer = Peer(options.peer_python, folder)
    except PeerAbsentError as error:
        missing = f"not measured: install herald-jax[trl], {error}"
        mine, _ = settled(ours.step, options.rounds, compiled, options.warm)
        return rows_of(ours, mine, None, missing), {"absent": str(error)}
    gap = np.abs(np.subtract(first_logps(ours), peer.hello.pop("logps"))).max()
    if not gap <= NEAR:
        sys.exit(
            f"{preset}: log-probabilities of the first prompt differ by {gap:.1e} at the start"
        )
    rounds, others = settled(
        lambda: (ours.step(), peer.step()), options.rounds, compiled, options.warm
    )
    peer.close()
    mine, theirs = [found[0] for found in rounds], [found[1] for found in rounds]
    check(mine, theirs, ROWS * options.tokens)
    cpu = [median(one["cpu"] for one in side) for side in (mine, theirs)]
    versions = ", ".join(f"{name} {peer.hello[name]}" for name in ("trl", "torch", "transformers"))
    told = (
        f"CPU seconds {cpu[0]:.2f}, TRL {cpu[1]:.2f}; {versions}, {peer.hello['threads']} threads; "
        f"{len(rounds)} rounds by turns, {others} left out for compiling; log-probabilities at the "
        f"start within {gap:.0e}"
    )
    return rows_of(ours, mine, theirs, told), peer.hello


def rows_of(
    ours: Ours, mine: list[dict[str, float]], theirs: list[dict[str, float]] | None, told: str
) -> list[Row]:
    """The step, its generation and its update, against the peer's where there is one."""
    config = ours.setup.config
    name = f"{config.policy.preset}, {ROWS} rollouts x {config.rollouts.turn_tokens} tokens"

    def row(words: str, part: str, other: str, tokens: str, goal: float | None) -> Row:
        spent = [found[part] for found in mine]
        rate = median(found[tokens] / found[part] for found in mine)
        detail = f"{rate:,.0f} {'generated' if tokens == 'generated' else 'read'} tokens/s"
        if theirs is not None:
            peer = [found[other] for found in theirs]
            detail += (
                f", TRL {median(b[tokens] / t for b, t in zip(mine, peer, strict=True)):,.0f}; "
                f"lowest of a round {lowest(spent, peer):.2f}x"
            )
        return Row(
            name=f"{name}: {words}",
            against="TRL",
            seconds=median(spent),
            peer_seconds=None if theirs is None else median(peer),
            goal=goal,
            detail=f"{detail}; {told}" if part == "step" or theirs is None else detail,
        )

    return [
        row("a whole step", "step", "step", "generated", GOAL_STEP),
        row("generation", "rollout", "generation", "generated", GOAL_GENERATION),
        row("update", "update", "update", "whole", None),
    ]


def in_the_world(options: argparse.Namespace, compiled: Compiled) -> list[Row]:
    """A step of the trainer as it is used, part by part."""
    tables = WORLD | {
        "warm_start": WORLD["warm_start"] | {"steps": options.warm_start},
        "mesh": {"data": options.devices},
    }
    setup, states = prepare(parse_config(tables, "train_step.py"))
    states = warm_start(setup, states, traces_of(setup), lambda *_: None)
    ours = Ours(setup, states)
    found, others = settled(ours.step, options.rounds_world, compiled, options.warm)
    whole = sum(one["step"] for one in found)
    name = f"tiny, built-in world, {setup.config.environment.turns} turns"
    told = (
        f"median of {len(found)} steps after {options.warm} and {others} that compiled; {ROWS} "
        f"rollouts, a step: {median(one['generated'] for one in found):,.0f} action tokens, "
        f"{median(one['whole'] for one in found):,.0f} in all, "
        f"{median(one['searches'] for one in found):.2f} searches a rollout, "
        f"{median(one['answered'] for one in found):.0%} answered"
    )

    def share(part: str) -> Row:
        highest = max(100 * one[part] / one["step"] for one in found)
        return Row(
            name=f"{name}: share of the {part}",
            seconds=median(one[part] for one in found),
            measured=100 * sum(one[part] for one in found) / whole,
            unit="%",
            goal=GOAL_REWARD if part == "reward" else None,
            at_most=part == "reward",
            detail=f"of the seconds of all these steps; highest of one {highest:.1f} %",
        )

    step = Row(
        name=f"{name}: a whole step",
        seconds=median(one["step"] for one in found),
        measured=median(one["generated"] / one["step"] for one in found),
        unit="action tokens/s",
        detail=told,
    )
    return [step, *map(share, PARTS)]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has trl")
    parser.add_argument("--presets", nargs="*", default=["small", "tiny"])
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of a rollout against TRL")
    parser.add_argument("--micro-rows", type=int, default=16, help="of both sides")
    parser.add_argument(
        "--devices", type=int, default=1, help="of the host that ours splits rollouts over"
    )
    parser.add_argument("--rounds", type=int, default=9, help="steps of both sides")
    parser.add_argument("--rounds-world", type=int, default=20, help="steps on the built-in world")
    parser.add_argument("--warm", type=int, default=4, help="steps before those")
    parser.add_argument("--warm-start", type=int, default=400, help="supervised steps before GRPO")
    options = parser.parse_args()
    if options.quick:
        options.presets, options.rounds, options.rounds_world = ["tiny"], 3, 10
        options.warm, options.warm_start = 2, 150
    if options.devices > 1:
        jax.config.update("jax_num_cpu_devices", options.devices)
    before = machine()
    compiled = Compiled()
    rows: list[Row] = []
    peers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for preset in options.presets:
            more, peers[preset] = against_trl(preset, options, compiled, Path(folder) / preset)
            rows += more
    rows += in_the_world(options, compiled)
    finish(options, "a GRPO step and its parts, against TRL", before, rows, peer=peers)


if __name__ == "__main__":
    main()
