"""Which curves the page of a training run shows: small pictures of one style, by subject."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from herald_jax.pages.curves import Curve, Values, curve_chart, swatch
from herald_jax.pages.held_out import MAIN
from herald_jax.pages.svg import STYLES

Line = Mapping[str, Any]
"""The metrics of one update: name -> number, None where it was not measured."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture with its heading and legend."""

    heading: str
    picture: Markup
    legend: tuple[tuple[Markup, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """Pictures that belong together, and what is to be known of them."""

    heading: str
    about: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a picture shows: names of metrics with their words."""

    heading: str
    lines: tuple[tuple[str, str], ...]
    shares: bool = False
    zero: bool = True


SUBJECTS: tuple[tuple[str, str, tuple[Plan, ...]], ...] = (
    (
        "Answers and evidence",
        "Of the rollouts of each update, which are sampled and of training questions. Coverage is "
        "the share of a question's evidence that its searches brought back.",
        (
            Plan("EM and F1", (("answer/em", "EM"), ("answer/f1", "F1")), shares=True),
            Plan(
                "Actions of a rollout",
                (("searches/mean", "searches"), ("searches/invalid", "invalid actions")),
            ),
            Plan("Evidence coverage", (("evidence/coverage", "mean coverage"),), shares=True),
            Plan(
                "Questions by coverage",
                (
                    ("evidence/complete", "complete in some rollout"),
                    ("evidence/zero", "none in any rollout"),
                ),
            ),
            Plan(
                "Cut off and unanswered",
                (("rollouts/truncated", "truncated"), ("rollouts/unanswered", "no answer")),
                shares=True,
            ),
            Plan(
                "Tokens of a rollout",
                (
                    ("length/whole", "with prompt and tool"),
                    ("length/action", "written by the policy"),
                ),
            ),
        ),
    ),
    (
        "Learning signal",
        "A group whose rewards are all the same teaches nothing. A scalar bonus may place a worse "
        "answer above a better one; the share is of pairs whose answer scores differ.",
        (
            Plan("Groups without signal", (("groups/flat", "flat groups"),), shares=True),
            Plan("Tokens with an advantage", (("advantage/nonzero", "not zero"),), shares=True),
            Plan(
                "Pairs that the scalar bonus reverses",
                (("reversed", "reversed pairs"),),
                shares=True,
            ),
        ),
    ),
    (
        "Policy and optimiser",
        "Entropy and KL are nats a token of the policy; ratios are of the new to the old "
        "probability of a token, clips are shares of tokens; the gradient's norm is taken before "
        "it is clipped.",
        (
            Plan("Entropy", (("policy/entropy", "entropy"),)),
            Plan("KL to the start", (("kl", "KL"),)),
            Plan(
                "Clipped tokens",
                (("policy/clipped_high", "above"), ("policy/clipped_low", "below")),
                shares=True,
            ),
            Plan(
                "Ratio",
                (("policy/ratio_high", "largest"), ("policy/ratio_low", "smallest")),
                zero=False,
            ),
            Plan("Gradient norm", (("grad/norm", "norm"),)),
            Plan("Sampler against trainer", (("policy/sampler_gap", "largest |Δ log p|"),)),
            Plan("Action tokens a second", (("tokens/second", "whole step"),)),
        ),
    ),
)


def subjects(
    metrics: Sequence[Line],
    settings: Mapping[str, Any],
    evaluations: Sequence[tuple[int, Mapping[str, Any]]],
) -> list[Subject]:
    """All pictures of a run; a metric that no update names has none.

    Args:
        metrics: of each update, in order.
        settings: of the run, by section.
        evaluations: update and summary of each evaluation, in order.
    """
    if not metrics:
        return []
    updates = [int(line["update"]) for line in metrics]
    table = columns(metrics, settings)
    found = [reward_subject(table, updates, evaluations)]
    for heading, about, plans in SUBJECTS:
        panels = [panel(plan, table, updates) for plan in plans if known(plan, table)]
        if panels:
            found.append(Subject(heading, about, tuple(panels)))
    return found


def columns(metrics: Sequence[Line], settings: Mapping[str, Any]) -> dict[str, Values]:
    """Metrics by name, and those that are worked out here: `reversed` and `kl`."""
    names = dict.fromkeys(name for line in metrics for name in line)
    table = {name: tuple(line.get(name) for line in metrics) for name in names}
    if "credit/pairs" in table:
        table["reversed"] = tuple(
            line.get("credit/reversed", 0) / line["credit/pairs"]
            if line.get("credit/pairs")
            else None
            for line in metrics
        )
    if "policy/kl" in table:
        # Without a weight the distance to the start is not worked out, and logged as 0.
        paid = settings.get("grpo", {}).get("kl", 1.0)
        table["kl"] = table["policy/kl"] if paid else (None,) * len(metrics)
    return table


def terms_of(table: Mapping[str, Values]) -> list[str]:
    """What the reward is the sum of."""
    ends = ("term/", "/mean")
    return [
        name.removeprefix(ends[0]).removesuffix(ends[1])
        for name in table
        if name.startswith(ends[0]) and name.endswith(ends[1])
    ]


def reward_subject(
    table: Mapping[str, Values],
    updates: Sequence[int],
    evaluations: Sequence[tuple[int, Mapping[str, Any]]],
) -> Subject:
    """The reward, each of its terms, and the held-out figures between which it was earned."""
    terms = {name: table[f"term/{name}/mean"] for name in terms_of(table)}
    never = [name for name, values in terms.items() if all(value == 0 for value in values)]
    plans = [
        Plan("Reward", (("reward/mean", "mean"), ("reward/sd", "standard deviation"))),
        *(
            Plan(f"Term: {name.replace('_', ' ')}", ((f"term/{name}/mean", "mean"),))
            for name in terms
            if name not in never
        ),
    ]
    panels = [panel(plan, table, updates) for plan in plans if known(plan, table)]
    held_out = held_out_panel(evaluations)
    if held_out is not None:
        panels.insert(0, held_out)
    return Subject(
        "Reward",
        "The mean over the rollouts of each update, and that of every term it is the sum of, "
        "weights and penalties included; each picture has an axis of its own."
        + (f" 0 throughout: {', '.join(never).replace('_', ' ')}." if never else ""),
        tuple(panels),
    )


def held_out_panel(evaluations: Sequence[tuple[int, Mapping[str, Any]]]) -> Panel | None:
    """EM and citation precision on held-out questions; None before there are two evaluations."""
    if len(evaluations) < 2:
        return None
    curves = []
    for style, (name, words) in enumerate(MAIN):
        cells = [summary["figures"]["all"][name] for _, summary in evaluations]
        ends = tuple((i[0], i[1]) if (i := cell["interval"]) else None for cell in cells)
        curves.append(Curve(words, tuple(cell["mean"] for cell in cells), style, ends))
    return Panel(
        "Held-out questions",
        curve_chart(
            curves,
            [update for update, _ in evaluations],
            name="held-out",
            title="EM and citation precision on held-out questions",
            shares=True,
            marks=True,
        ),
        tuple((swatch(curve.style, mark=True), curve.label) for curve in curves),
    )


def known(plan: Plan, table: Mapping[str, Values]) -> bool:
    """Whether the run has a metric that the picture shows."""
    return any(name in table for name, _ in plan.lines)


def panel(plan: Plan, table: Mapping[str, Values], updates: Sequence[int]) -> Panel:
    """One picture."""
    curves = [
        Curve(words, table[name], style % STYLES)
        for style, (name, words) in enumerate(plan.lines)
        if name in table
    ]
    return Panel(
        plan.heading,
        curve_chart(
            curves,
            updates,
            name=f"curve-{plan.lines[0][0].replace('/', '-')}",
            title=plan.heading,
            shares=plan.shares,
            zero=plan.zero,
        ),
        tuple((swatch(curve.style), curve.label) for curve in curves) if len(curves) > 1 else (),
    )
