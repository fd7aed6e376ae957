"""The page of a run, `page.html`, from what the run leaves behind, while it goes on or afterwards.

Gathers plain values from metrics, settings, evaluations and logged rollouts; `pages.training` draws
them. Files of updates that the metrics do not hold, left by a run that went on from an earlier
checkpoint, are not looked at, and neither is their summary.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import herald_jax
from herald_jax.data.together import write_together
from herald_jax.pages.held_out import HeldOut
from herald_jax.pages.training import Detector, RunData, render_training
from herald_jax.pages.transcripts import Sample
from herald_jax.train.diagnostics import COUNTS, tell
from herald_jax.train.evaluate import paired_difference
from herald_jax.train.logs import read_metrics
from herald_jax.train.page_samples import samples_of
from herald_jax.train.tokens import Tokeniser
from herald_jax.types import DETECTORS, HeraldError

Line = Mapping[str, Any]
_NOT_PAIRED = ("cited", "unsupported")  # counts that a rate is made of


def write_page(out: Path) -> Path:
    """Draw `page.html` of a run into its folder, whole or not at all.

    Args:
        out: folder of the run.

    Returns:
        The path of the page.

    Raises:
        HeraldError: the folder holds no run, one of its files cannot be read, or it cannot be
            written.
    """
    # A setting may name a path that is no Unicode: it is shown with escapes.
    page = render_training(gather(out)).encode("utf-8", errors="backslashreplace")
    remedy = "make the folder of the run writable"
    return write_together(out, {"page.html": lambda path: path.write_bytes(page)}, remedy=remedy)[0]


def gather(out: Path) -> RunData:
    """Everything that the page shows.

    Raises:
        HeraldError: the folder holds no run, or one of its files cannot be read.
    """
    made_from = _json(out / "run.json")
    metrics = read_metrics(out)
    if made_from is None and not metrics:
        raise HeraldError(
            f"{out}: expected the folder of a training run, got one without run.json; "
            "name the --out folder of `herald train`"
        )
    made_from = made_from or {}
    updates = int(metrics[-1]["update"]) if metrics else 0
    summary = _json(out / "summary.json")
    if summary is not None and summary["updates"] != updates:
        summary = None
    evaluations = _evaluations(out, updates)
    return RunData(
        version=herald_jax.__version__,
        finished=summary is not None,
        settings=made_from.get("settings", {}),
        identity=made_from.get("identity", {}),
        device=made_from.get("device", ""),
        metrics=metrics,
        held_out=HeldOut(evaluations, _differences(evaluations)),
        detectors=_detectors(metrics, summary, made_from.get("settings", {})),
        credit=_credit(metrics) if summary is None else summary["credit"],
        samples=_samples(out, updates),
    )


def _json(path: Path) -> dict[str, Any] | None:
    """The contents of a file, None where there is none."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise HeraldError(f"{path}: expected JSON, got {error}") from None
    return found


def _number(path: Path) -> int:
    """The update in the name of a file."""
    return int(path.stem.rsplit("-", 1)[1])


def _evaluations(out: Path, updates: int) -> list[tuple[int, dict[str, Any]]]:
    found = [
        (_number(path), _json(path))
        for path in sorted((out / "evaluations").glob("update-*.json"))
        if _number(path) <= updates
    ]
    return [(update, summary) for update, summary in found if summary is not None]


def _differences(evaluations: Sequence[tuple[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """How far each figure moved from the first evaluation to the last."""
    if len(evaluations) < 2:
        return {}
    before, after = evaluations[0][1], evaluations[-1][1]
    if before["question_ids"] != after["question_ids"]:
        return {}
    return {
        name: paired_difference(before, after, name, level=after["level"])
        for name in after["means"]
        if name in before["means"] and name not in _NOT_PAIRED
    }


def _detectors(
    metrics: Sequence[Line], summary: Mapping[str, Any] | None, settings: Mapping[str, Any]
) -> list[Detector]:
    """What each penalty did: as the run told at its end, or summed up from its metrics."""
    if not metrics:
        return []
    sums = _sums(metrics, settings) if summary is None else summary["signals"]
    found = []
    for at, name in enumerate(DETECTORS):
        told = _told(name, metrics, sums[name]) if summary is None else summary["detectors"][at]
        counts = {count: int(sums[name][count]) for count in COUNTS if count != "mean_square"}
        found.append(
            Detector(
                name=name,
                mean_square=float(sums[name]["mean_square"]),
                told=told.removeprefix(f"{name}: "),
                **counts,
            )
        )
    return found


def _sums(metrics: Sequence[Line], settings: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The sums of `DetectorSignals` from what each update logged of them."""
    groups = len(metrics) * int(settings.get("rollouts", {}).get("questions", 0))
    return {
        name: {
            count: groups
            if count == "groups"
            else sum(line.get(f"signal/{name}/{count}") or 0 for line in metrics)
            for count in COUNTS
        }
        for name in DETECTORS
    }


def _told(name: str, metrics: Sequence[Line], sums: Mapping[str, float]) -> str:
    # The reward has a term for each detector that is paid, and for no other.
    penalty = 1.0 if any(f"term/{name}/mean" in line for line in metrics) else 0.0
    return tell(name, penalty, sums)


def _credit(metrics: Sequence[Line]) -> dict[str, Any]:
    """What the metrics hold of the report of retrieval credit."""
    if not any("credit/pairs" in line for line in metrics):
        return {}
    return {
        name: sum(line.get(f"credit/{key}") or 0 for line in metrics)
        for name, key in (("unequal_pairs", "pairs"), ("reversed_pairs", "reversed"))
    }


def _samples(out: Path, updates: int) -> list[Sample]:
    """Transcripts of the first and of the last update."""
    logs = sorted((out / "log").glob("trajectories-*.jsonl"))
    logs = [path for path in logs if _number(path) <= updates]
    if not logs:
        return []
    tokeniser = Tokeniser.load(out / "tokenizer.json")
    return [
        one for path in dict.fromkeys((logs[0], logs[-1])) for one in samples_of(path, tokeniser)
    ]
