"""Every setting of retrieval credit against the others, from one warm start, in one table.

The first arm is warm-started, the others start from its policy before its first update.

All arms have the same seed, questions, group size and budget of generated action tokens, and before
their first update the same rollouts, which is checked by a digest of all but the rewards (SPEC
section 11).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from herald_jax.train.config import CONTROLS, INCORPORATIONS, SIGNALS, Credit, TrainConfig
from herald_jax.train.evaluate import paired_difference
from herald_jax.train.logs import read_metrics, write_json
from herald_jax.train.run import train
from herald_jax.types import HeraldError

Say = Callable[[str], None]
Draw = Callable[[str, int, int, Mapping[str, float | int]], None]
# Written by a run from its rewards; everything else of a first update is the same in all arms.
PAID = ("reward", "terms", "bonus", "advantage", "credit")


class SweepError(HeraldError):
    """Arms that are not matched."""


@dataclass(frozen=True)
class Arm:
    """One setting of the credit."""

    name: str
    credit: Credit


def arms(base: Credit, *, signals: Sequence[str] = SIGNALS[1:]) -> list[Arm]:
    """No credit, and every signal, incorporation and control that go together."""
    found = [Arm("outcome only", replace(base, signal="none", control="none"))]
    for signal in signals:
        for incorporation in INCORPORATIONS:
            for control in CONTROLS:
                if control in ("flat_only", "no_flat") and incorporation != "local":
                    continue
                name = f"{signal} {incorporation}" + ("" if control == "none" else f" {control}")
                credit = replace(base, signal=signal, incorporation=incorporation, control=control)
                found.append(Arm(name, credit))
    return found


def sweep(
    config: TrainConfig, out: Path, chosen: Sequence[Arm], *, say: Say, draw: Draw
) -> list[dict[str, Any]]:
    """Train every arm below `out`, and write `sweep.json`; arms that are done are not repeated.

    Returns:
        One row an arm: figures of the last evaluation, differences from the first arm paired by
        question, the checks of the credit.

    Raises:
        SweepError: arms differ before their first update.
    """
    rows: list[dict[str, Any]] = []
    first: dict[str, Any] | None = None
    opening: str | None = None
    started = config
    for number, arm in enumerate(chosen):
        folder = out / arm.name.replace(" ", "-")
        say(f"arm {number + 1} of {len(chosen)}: {arm.name}")
        train(replace(started, credit=arm.credit), folder, say=say, draw=draw)
        if number == 0:
            # Others have these parameters, whatever the steps to them were.
            start = str(folder / "checkpoints" / "0")
            started = replace(
                config,
                policy=replace(config.policy, start=start),
                warm_start=replace(config.warm_start, steps=0),
            )
        seen = opening_digest(folder)
        opening = opening or seen
        if seen != opening:
            raise SweepError(f"{folder}: its first rollouts differ from those of the first arm")
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        last = summary["evaluations"][str(summary["updates"])]
        first = first or last
        rows.append(
            {
                "arm": arm.name,
                "updates": summary["updates"],
                "action_tokens": summary["action_tokens"],
                "figures": {
                    name: last["figures"]["all"][name]
                    for name in ("em", "f1", "citation_precision", "support_recall", "searches")
                },
                "em_difference": paired_difference(first, last, "em"),
                "credit": summary["credit"],
                "tied_groups": _mean(folder, "groups/flat"),
            }
        )
        write_json(out / "sweep.json", {"arms": rows})
    return rows


def opening_digest(folder: Path) -> str:
    """SHA-256 of the rollouts of the first update, rewards and what follows from them left out."""
    digest = hashlib.sha256()
    path = folder / "log" / "trajectories-00000001.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        row = {name: value for name, value in json.loads(line).items() if name not in PAID}
        digest.update(json.dumps(row, sort_keys=True).encode())
    return digest.hexdigest()


def _mean(folder: Path, name: str) -> float | None:
    values = [line[name] for line in read_metrics(folder) if line.get(name) is not None]
    return sum(values) / len(values) if values else None
