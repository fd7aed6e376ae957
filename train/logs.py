"""What a run leaves behind for people and for audits, so that it can be cut off at any moment.

    OUT/run.json               settings, digests, what the run was made from
    OUT/metrics.jsonl          one line an update
    OUT/tensorboard/           the same numbers for TensorBoard
    OUT/log/                   a pool: corpus, oracle, the rollouts of every update, a file each

A run that goes on from a checkpoint writes the updates behind it again: lines and files of those
are dropped first, and the same bytes come back.
"""

import json
import math
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tensorboardX import SummaryWriter

from herald_jax.data.jsonl import write_jsonl
from herald_jax.data.records import OracleRow, Passage

Metrics = Mapping[str, float | int]


class RunLog:
    """The files of one run.

    Args:
        out: its folder, made when absent.
        update: updates done so far; later ones are dropped.
    """

    def __init__(self, out: Path, update: int) -> None:
        self.out = out
        self.pool = out / "log"
        self.pool.mkdir(parents=True, exist_ok=True)
        self._metrics = out / "metrics.jsonl"
        kept = [line for line in read_metrics(out) if line["update"] <= update]
        _write_whole(self._metrics, "".join(_line(metrics) for metrics in kept))
        for path in self.pool.glob("trajectories-*.jsonl"):
            if int(path.stem.rsplit("-", 1)[1]) > update:
                path.unlink()
        board = out / "tensorboard"
        shutil.rmtree(board, ignore_errors=True)
        self._board = SummaryWriter(str(board), write_to_disk=True)
        for metrics in kept:
            self._show(metrics)

    def write_pool(self, passages: Iterable[Passage], oracle: Iterable[OracleRow]) -> None:
        """Corpus and gold labels beside the rollouts, so that the folder is a pool."""
        for name, records in (("corpus.jsonl", passages), ("oracle.jsonl", oracle)):
            if not (self.pool / name).exists():
                write_jsonl(self.pool / name, records)

    def write_rollouts(self, update: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """The rollouts of an update, whole or not at all."""
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        _write_whole(self.pool / f"trajectories-{update:08d}.jsonl", lines.decode())

    def write_metrics(self, metrics: Metrics) -> None:
        """One update's numbers."""
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(_line(metrics))
        self._show(metrics)

    def close(self) -> None:
        """Flush what is written in the background."""
        self._board.close()

    def _show(self, metrics: Metrics) -> None:
        step = int(metrics["update"])
        for name, value in metrics.items():
            if name != "update" and isinstance(value, int | float) and math.isfinite(value):
                self._board.add_scalar(name, value, step)


def read_metrics(out: Path) -> list[dict[str, Any]]:
    """Metrics of a run, update by update; a last line that was cut off is left out."""
    path = out / "metrics.jsonl"
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def write_json(path: Path, value: Any) -> None:
    """A JSON file, whole or not at all."""
    _write_whole(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def _line(metrics: Metrics) -> str:
    # What is not measured is null: JSON has no NaN.
    plain = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in metrics.items()
    }
    return json.dumps(plain) + "\n"


def _write_whole(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
