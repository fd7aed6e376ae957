"""Does a sparse penalty reach the policy? The ways to scale advantages, and mixed groups, compared.

One warm-started policy of `learning.toml`, then a short run from it for each way: advantages over
the sd of the group, not divided, over the sd of the batch, and groups that are composed
so that the detector differs in them. Same seed, questions and budget of
generated action tokens. Of each detector that is paid: groups that hold one, groups in which it is
constant and so erased, groups whose advantages it changed, and how often it is true on held-out
questions before and after.

  python benchmarks/normalisation.py --out benchmarks/results/normalisation.json
  python benchmarks/normalisation.py --quick
  python benchmarks/normalisation.py --start runs/first/checkpoints/0
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from machine import machine
from measured import Row, arguments, finish
from processes import herald

SETTINGS = Path(__file__).with_name("learning.toml")
DETECTOR = "cited_not_retrieved"
ARMS = {
    "sd of the group": (),
    "not divided": ("grpo.scale=none",),
    "sd of the batch": ("grpo.scale=batch",),
    "sd of the group, mixed groups": (
        "rollouts.compose=mixed",
        f"rollouts.detector={DETECTOR}",
        "rollouts.questions=8",
    ),
}
QUICK = ("run.budget=8000", "evaluation.questions=20")


def run(out: Path, settings: list[str], cache: Path) -> tuple[float, dict[str, Any]]:
    """Seconds and summary of a run."""
    flags = [part for setting in settings for part in ("--set", setting)]
    done = herald("train", SETTINGS, "--out", out, *flags, cache=cache)
    return done.seconds, json.loads((out / "summary.json").read_text(encoding="utf-8"))


def rows_of(arm: str, seconds: float, summary: dict[str, Any]) -> list[Row]:
    """One row for each detector that was met."""
    numbers = sorted(map(int, summary["evaluations"]))
    before, after = (
        summary["evaluations"][str(n)]["figures"]["all"] for n in (numbers[0], numbers[-1])
    )
    rows = []
    for name, sums in summary["signals"].items():
        if not sums["rows"]:
            continue
        groups, holding = int(sums["groups"]), int(sums["holding"])
        rows.append(
            Row(
                name=f"{arm}: {name} changed the advantages of groups",
                seconds=seconds,
                measured=100 * sums["changed"] / groups,
                unit="%",
                detail=f"true in {holding} of {groups} groups, erased in "
                f"{holding - (groups - int(sums['constant']))} of these; held-out incidence "
                f"{before[name]['mean']:.3f} to {after[name]['mean']:.3f}; EM "
                f"{before['em']['mean']:.3f} to {after['em']['mean']:.3f}",
            )
        )
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--start", type=Path, help="RUN/checkpoints/0; none: a warm start first")
    parser.add_argument("--budget", type=int, default=100_000, help="action tokens of each arm")
    options = parser.parse_args()
    before = machine()
    rows: list[Row] = []
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        start = options.start
        if start is None:
            steps = ["warm_start.steps=200"] if options.quick else []
            run(folder / "start", ["run.updates=0", "evaluation.questions=1", *steps], folder)
            start = folder / "start" / "checkpoints" / "0"
        for arm, settings in ARMS.items():
            chosen = [f"policy.start={start.absolute()}", "warm_start.steps=0"]
            chosen += [f"run.budget={options.budget}", *settings, *(QUICK if options.quick else ())]
            seconds, summary = run(folder / arm.replace(" ", "-"), chosen, folder)
            rows += rows_of(arm, seconds, summary)
            found[arm] = {"signals": summary["signals"], "told": summary["detectors"]}
    finish(options, "whether sparse penalties reach the policy", before, rows, arms=found)


if __name__ == "__main__":
    main()
