"""The page of a training run: what came of it in words, curves, signals, transcripts.

Takes plain values, which `train.page` gathers from what a run leaves behind, and draws one file
that needs no network and runs no script. A run that is not over has a page too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from herald_jax.pages.curves import span
from herald_jax.pages.held_out import HeldOut
from herald_jax.pages.numbers import UNKNOWN, count, out_of, percent, plain, quantity
from herald_jax.pages.templates import render
from herald_jax.pages.training_panels import Line, subjects
from herald_jax.pages.transcripts import Sample, visible, written

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Detector:
    """What the penalty of one detector did to training; sums over the run."""

    name: str
    groups: int
    rows: int
    holding: int
    constant: int
    changed: int
    mean_square: float
    told: str

    @property
    def erased(self) -> int:
        """Groups that hold it on every rollout, so that it is subtracted with the mean."""
        return self.holding - (self.groups - self.constant)


@dataclass(frozen=True)
class RunData:
    """Everything that the page is drawn from.

    Attributes:
        version: of the package.
        finished: whether the run came to its end.
        settings: by section.
        identity: digests of what decides the run.
        device: what it ran on.
        metrics: of each update, in order.
        held_out: its evaluations.
        detectors: in the order of the detectors.
        credit: the report of retrieval credit; of a run that is not over only its pairs.
        samples: transcripts.
    """

    version: str
    finished: bool
    settings: Data = field(default_factory=dict)
    identity: Data = field(default_factory=dict)
    device: str = ""
    metrics: Sequence[Line] = ()
    held_out: HeldOut = field(default_factory=HeldOut)
    detectors: Sequence[Detector] = ()
    credit: Data = field(default_factory=dict)
    samples: Sequence[Sample] = ()

    def total(self, name: str) -> int:
        """A count summed over the updates."""
        return sum(int(line.get(name) or 0) for line in self.metrics)


def render_training(run: RunData) -> str:
    """The page: no network, no scripts, every word of policy and user escaped."""
    return render(
        "training.html.j2",
        run=run,
        headline=headline(run),
        facts=facts(run),
        lead=lead(run),
        control=bool(run.settings.get("grpo", {}).get("shuffle_advantages", False)),
        table=run.held_out.table(),
        subjects=subjects(run.metrics, run.settings, run.held_out.evaluations),
        smoothed=span(len(run.metrics)),
        rollouts=run.total("rollouts/members"),
        time=time_shares(run.metrics),
        incidents=incidents(run),
        credit=credit_rows(run.credit),
        coverage=coverage_rows(run.credit),
        settings=[(name, pairs(values)) for name, values in run.settings.items()],
        visible=visible,
        written=written,
        out_of=out_of,
    )


def headline(run: RunData) -> str:
    """What came out, in a sentence."""
    steps = quantity(len(run.metrics), "update")
    so_far = steps if run.finished else f"{steps} so far"
    return run.held_out.headline() or f"Search-GRPO, {so_far}"


def lead(run: RunData) -> str:
    """The result in plain words."""
    spent = int(run.metrics[-1].get("tokens/budget") or 0) if run.metrics else 0
    budget = run.settings.get("run", {}).get("budget")
    of_budget = f", of a budget of {count(budget)}" if budget else ""
    words = [
        f"{quantity(len(run.metrics), 'update')} on {quantity(spent, 'action token')} that the "
        f"policy generated{of_budget}."
    ]
    if not run.finished:
        words.append("The run is not over, or was cut off: this is how far it came.")
    return " ".join([*words, *run.held_out.sentences()])


def pairs(values: Data) -> list[tuple[str, str]]:
    """Settings of a section, strings in quotes."""
    return [(n, visible(json.dumps(v, ensure_ascii=False))) for n, v in values.items()]


def facts(run: RunData) -> list[tuple[str, str]]:
    """What the run was."""
    settings, found = run.settings, []
    if settings:
        policy, data, credit = settings["policy"], settings["data"], settings["credit"]
        rollouts = settings["rollouts"]
        control = "" if credit["control"] == "none" else f", control {credit['control']}"
        signal = f"{credit['signal']}, {credit['incorporation']}{control}"
        kinds = ", ".join(data["kinds"])
        found = [
            ("Policy", policy["folder"] or policy["preset"]),
            ("Questions", data["pool"] or f"the built-in world: {kinds}"),
            ("Reward", settings["reward"]["contract"]),
            ("Retrieval credit", "none" if credit["signal"] == "none" else signal),
            (
                "An update",
                f"{quantity(rollouts['questions'], 'question')}, "
                f"{quantity(rollouts['group'], 'rollout')} of each",
            ),
            ("Seed", count(settings["run"]["seed"])),
        ]
    if run.device:
        found.append(("Device", run.device))
    return found


def time_shares(metrics: Sequence[Line]) -> list[tuple[str, str]]:
    """What the parts of all steps took, as shares of the whole."""
    prefix = "seconds/"
    names = dict.fromkeys(name for line in metrics for name in line if name.startswith(prefix))
    spent = {
        name.removeprefix(prefix): sum(float(line.get(name) or 0.0) for line in metrics)
        for name in names
        if name != "seconds/step"
    }
    whole = sum(spent.values())
    return [(name, percent(value / whole)) for name, value in spent.items()] if whole else []


def incidents(run: RunData) -> list[str]:
    """What went wrong and was counted."""
    skipped, unscored = run.total("grad/skipped"), run.total("rollouts/unscored")
    found = []
    if skipped:
        found.append(
            f"{quantity(skipped, 'gradient')} not finite: nothing was learned from "
            f"{'it' if skipped == 1 else 'them'}."
        )
    if unscored:
        found.append(
            f"{quantity(unscored, 'rollout')} without a reward, left out of "
            f"{'its group' if unscored == 1 else 'their groups'}."
        )
    return found


def credit_rows(credit: Data) -> list[tuple[str, str]]:
    """The two checks of retrieval credit, each figure with its denominator."""
    if not credit:
        return []
    pairs = credit["unequal_pairs"]
    rows = [
        (
            "Pairs of rollouts with unequal answer scores whose order the scalar bonus reverses",
            share(credit["reversed_pairs"], pairs),
        )
    ]
    if "questions" not in credit:
        return rows
    gaps = [
        f"{count(int(n))} from {at / 10:g}" for at, n in enumerate(credit["gaps_of_reversed"]) if n
    ]
    known = credit["questions_with_evidence"]
    return [
        *rows,
        ("The same pairs, made equal", share(credit["tied_pairs"], pairs)),
        (
            "Mean gap between the answer scores of reversed pairs",
            plain(credit["mean_gap_of_reversed"]),
        ),
        ("Reversed pairs by that gap, in steps of 0.1", ", ".join(gaps) or "none"),
        ("Questions whose evidence is known", share(known, credit["questions"])),
        ("Of these, no evidence in any rollout", share(credit["zero_coverage"], known)),
        ("Of these, all evidence in some rollout", share(credit["complete_coverage"], known)),
        ("Mean coverage of these questions", percent(credit["mean_coverage"])),
        ("Searches a rollout, on these questions", plain(credit["searches_per_question"], 2)),
    ]


def coverage_rows(credit: Data) -> list[tuple[str, str, str]]:
    """Rollouts by what they covered, and their answer F1."""
    return [
        (name, count(int(rollouts)), percent(credit["f1_by_coverage"][name]))
        for name, rollouts in credit.get("rollouts_by_coverage", {}).items()
    ]


def share(part: float, whole: float) -> str:
    """A share with both its counts."""
    if not whole:
        return f"{UNKNOWN}: there are none"
    return f"{out_of(int(part), int(whole))} ({percent(part / whole)})"
