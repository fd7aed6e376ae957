"""Does training on an audited reward make a better search agent? From nothing, on this machine.

Each seed: a `tiny` policy learns the format from the scripted agents of the built-in world, then
GRPO trains it on a contract of `learning_reward.toml` (`learning.toml`). Exact match and citation
precision on held-out questions must rise over the warm-started policy, the lower ends of the
question-clustered intervals of the paired differences above zero, in every seed. The control starts
from the same warm-started policy as its seed and has the advantages of each group shuffled, all
else alike: there the same intervals must not lie above zero. Every run is a process of its own, and
takes less than 15 minutes; `--jobs` of them run side by side.

  python benchmarks/learning.py --out benchmarks/results/learning.json
  python benchmarks/learning.py --quick
  python benchmarks/learning.py --seeds 0 --folder runs
"""

import argparse
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from machine import machine
from measured import Row, arguments, finish
from processes import herald

from herald_jax.train.evaluate import paired_difference

SETTINGS = Path(__file__).with_name("learning.toml")
MINUTES = 15.0
FIGURES = {"em": "exact match", "citation_precision": "citation precision"}
CONTROL = "grpo.shuffle_advantages=true"
QUICK = ("warm_start.steps=200", "run.budget=40000", "evaluation.questions=40")


def train(out: Path, seed: int, options: argparse.Namespace, *, control: bool) -> dict[str, Any]:
    """One run, and what became of it."""
    chosen = [f"run.seed={seed}", *(QUICK if options.quick else ()), *options.set]
    if control:
        start = out.with_name(f"seed-{seed}") / "checkpoints" / "0"
        chosen += [f"policy.start={start}", "warm_start.steps=0", CONTROL]
    flags = [part for setting in chosen for part in ("--set", setting)]
    done = herald("train", options.settings, "--out", out, *flags, cache=options.cache)
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    numbers = sorted(map(int, summary["evaluations"]))
    before, after = (summary["evaluations"][str(n)] for n in (numbers[0], numbers[-1]))
    return {
        "seed": seed,
        "control": control,
        "seconds": done.seconds,
        "updates": summary["updates"],
        "action_tokens": summary["action_tokens"],
        "before": {name: before["figures"]["all"][name] for name in FIGURES},
        "after": {name: after["figures"]["all"][name] for name in FIGURES},
        "difference": {name: paired_difference(before, after, name) for name in FIGURES},
        "detectors": summary["detectors"],
    }


def rows_of(run: dict[str, Any], quick: bool) -> list[Row]:
    """One row a figure; the goal is about the lower end of its interval."""
    rows = []
    who = f"seed {run['seed']}" + (", advantages shuffled" if run["control"] else "")
    for name, words in FIGURES.items():
        moved = run["difference"][name]
        low, high = moved["interval"]
        above = low > 0
        rows.append(
            Row(
                name=f"{who}: held-out {words} after GRPO less warm start",
                seconds=run["seconds"],
                measured=100 * moved["mean"],
                unit="points",
                met=None if quick else (not above if run["control"] else above),
                detail=f"interval {100 * low:+.1f} to {100 * high:+.1f} over "
                f"{moved['questions']} questions; {run['before'][name]['mean']:.3f} to "
                f"{run['after'][name]['mean']:.3f}; {run['updates']:,} updates, "
                f"{run['action_tokens']:,} action tokens",
            )
        )
    rows.append(
        Row(
            name=f"{who}: minutes",
            seconds=run["seconds"],
            measured=run["seconds"] / 60,
            unit="minutes",
            goal=MINUTES,
            at_most=True,
        )
    )
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--control", type=int, nargs="*", default=[0], help="seeds of the control")
    parser.add_argument("--settings", type=Path, default=SETTINGS)
    parser.add_argument("--set", nargs="*", default=[], help="table.key=value")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--folder", type=Path, help="keeps the runs; default: they are deleted")
    options = parser.parse_args()
    if missing := set(options.control) - set(options.seeds):
        parser.error(f"--control {min(missing)}: name it under --seeds as well")
    before = machine()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        options.cache = folder

        def one(task: tuple[int, bool]) -> dict[str, Any]:
            seed, control = task
            name = f"{'control' if control else 'seed'}-{seed}"
            return train(folder / name, seed, options, control=control)

        with ThreadPoolExecutor(options.jobs) as pool:
            # A control needs the policy that its seed starts from.
            seeds = pool.map(one, [(seed, False) for seed in options.seeds])
            runs = [*seeds, *pool.map(one, [(seed, True) for seed in options.control])]
    rows = [row for run in runs for row in rows_of(run, options.quick)]
    finish(options, "learning on the audited reward", before, rows, runs=runs)


if __name__ == "__main__":
    main()
