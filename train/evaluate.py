"""Held-out evaluation: one greedy rollout and some fixed-seed samples of each question.

Everything is averaged within a question first; the question is what the bootstrap draws (SPEC
sections 7 and 11), so that rollouts of one question never pass for independent ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herald_jax.data.records import Trajectory
from herald_jax.kernels.bootstrap import bootstrap_intervals, point_estimates
from herald_jax.train.environment import Task
from herald_jax.train.rollout import Rollout, Sampling
from herald_jax.train.setup import Setup, sampler_of
from herald_jax.types import DETECTORS, HeraldError

Values = dict[str, NDArray[np.float64]]
_ROWS = 128  # rollouts that are run together
# An update has no such number: samples of an evaluation are drawn from a stream of their own.
_STREAM = 2**31 - 1


class EvaluationError(HeraldError):
    """Evaluations that cannot be compared."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A policy on held-out questions.

    Attributes:
        summary: figures with their intervals and denominators, and the means of every question,
            plain values.
        rollouts: the greedy one and the samples of each question, side by side.
        records: the same as records of SPEC section 1.
    """

    summary: dict[str, Any]
    rollouts: list[Rollout]
    records: list[Trajectory]


def evaluate(
    setup: Setup,
    states: tuple[Any, Any],
    tasks: Sequence[Task],
    *,
    samples: int,
    seed: int,
    draw: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Roll out held-out questions and score them.

    Args:
        setup: tasks, environment and reward.
        states: the policy's.
        tasks: the questions.
        samples: sampled rollouts beside the greedy one.
        seed: of the samples.
        draw: told rollouts done and to do.
    """
    each = 1 + samples
    runs = roll_out(setup, states, tasks, samples=samples, seed=seed, draw=draw)
    records = [
        run.record(f"{run.task.question_id}/{at % each}", "policy", at % each)
        for at, run in enumerate(runs)
    ]
    values = score(setup, runs, records)
    statistics = setup.manifest.statistics
    by_question = {name: value.reshape(-1, each) for name, value in values.items()}
    parts = {"all": slice(None), "greedy": slice(0, 1), "sampled": slice(1, None)}
    figures = {
        part: summarise(
            {name: value[:, which].mean(axis=1) for name, value in by_question.items()},
            replicates=statistics.replicates,
            seed=statistics.seed,
            level=statistics.level,
        )
        for part, which in parts.items()
        if part != "sampled" or samples
    }
    means = {name: value.mean(axis=1).tolist() for name, value in by_question.items()}
    summary = {
        "questions": len(tasks),
        "rollouts": len(runs),
        "samples": samples,
        "seed": seed,
        "temperature": setup.config.rollouts.temperature,
        "level": statistics.level,
        "figures": figures,
        "question_ids": [task.question_id for task in tasks],
        "means": means,
    }
    return Evaluation(summary, runs, records)


def roll_out(
    setup: Setup,
    states: tuple[Any, Any],
    tasks: Sequence[Task],
    *,
    samples: int,
    seed: int,
    draw: Callable[[int, int], None] | None = None,
) -> list[Rollout]:
    """The greedy rollout and the samples of each question, side by side."""
    config = setup.config
    sampler = sampler_of(setup)
    whole = len(tasks) * (1 + samples)
    done = 0

    def run(asked: Sequence[Task], greedy: bool) -> list[Rollout]:
        nonlocal done
        found: list[Rollout] = []
        for first in range(0, len(asked), _ROWS):
            part = list(asked[first : first + _ROWS])
            missing = _ROWS - len(part) if len(asked) > _ROWS else 0
            # The last batch is filled up, so that it needs no program of its own.
            padded = part + part[:1] * missing
            runs = sampler.run(
                states,
                padded,
                Sampling(
                    turns=config.environment.turns,
                    turn_tokens=config.rollouts.turn_tokens,
                    temperature=config.rollouts.temperature,
                    top_p=config.rollouts.top_p,
                    greedy=greedy,
                ),
                seed=seed,
                update=_STREAM,
                first_row=first,
            )
            found += runs[: len(part)]
            done += len(part)
            if draw is not None:
                draw(done, whole)
        return found

    greedy = run(tasks, True)
    sampled = run([task for task in tasks for _ in range(samples)], False)
    return [
        one
        for at, first in enumerate(greedy)
        for one in (first, *sampled[at * samples : (at + 1) * samples])
    ]


def score(setup: Setup, runs: Sequence[Rollout], records: Sequence[Trajectory]) -> Values:
    """What is measured of each rollout: float64 [n] each.

    Citation precision and support recall are over distinct ids, and 0 where nothing is cited or
    nothing supports (SPEC section 4); `cited` and `unsupported` are numbers of distinct ids.
    """
    rewarded = setup.reward(records)
    support = {row.question_id: set(row.support_ids) for row in setup.tasks.oracle}
    cited = [set(record.citations or ()) for record in records]
    gold = [support[record.question_id] for record in records]
    hits = np.array([len(c & s) for c, s in zip(cited, gold, strict=True)], np.float64)
    n_cited = np.array([len(c) for c in cited], np.float64)
    n_gold = np.array([len(s) for s in gold], np.float64)
    values: Values = {
        "em": rewarded.em.astype(np.float64),
        "f1": rewarded.f1.astype(np.float64),
        "reward": rewarded.reward.astype(np.float64),
        "citation_precision": hits / np.maximum(n_cited, 1),
        "support_recall": hits / np.maximum(n_gold, 1),
        "cites": (n_cited > 0).astype(np.float64),
        "cited": n_cited,
        "unsupported": n_cited - hits,
        "searches": np.array([len(run.searches) for run in runs], np.float64),
        "invalid": np.array([run.invalid for run in runs], np.float64),
        "unanswered": np.array([run.final is None for run in runs], np.float64),
        "truncated": np.array([run.truncated for run in runs], np.float64),
        "tokens": np.array([len(run.logps) for run in runs], np.float64),
    }
    for name in DETECTORS:
        values[name] = rewarded.detectors[name].astype(np.float64)
    return values


def summarise(
    values: Mapping[str, NDArray[np.float64]], *, replicates: int, seed: int, level: float
) -> dict[str, Any]:
    """Means over questions with their intervals, and the rate of unsupported citations.

    Args:
        values: name -> float64 [n], means of each question.
        replicates: of the bootstrap.
        seed: of the bootstrap.
        level: of the intervals.

    Returns:
        name -> `{"mean", "interval", "questions"}`; the rate is a ratio of sums over the questions
        that cite anything. An interval is None where there are fewer than two questions.
    """
    names = [name for name in values if name not in ("cited", "unsupported")]
    table = np.stack([values[name] for name in names], axis=1)
    found = dict(
        zip(names, _cells(table, None, replicates=replicates, seed=seed, level=level), strict=True)
    )
    citing = values["cited"] > 0
    found["unsupported_citation_rate"] = (
        _cells(
            values["unsupported"][citing, None],
            values["cited"][citing],
            replicates=replicates,
            seed=seed,
            level=level,
        )[0]
        if citing.any()
        else {"mean": None, "interval": None, "questions": 0}
    )
    return found


def _cells(
    table: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    *,
    replicates: int,
    seed: int,
    level: float,
) -> list[dict[str, Any]]:
    points = point_estimates(table, weights)
    ends: list[list[float] | None] = [None] * table.shape[1]
    if len(table) > 1:
        found = bootstrap_intervals(table, weights, seed=seed, replicates=replicates, level=level)
        ends = [[float(low), float(high)] for low, high in found]
    return [
        {"mean": float(point), "interval": interval, "questions": len(table)}
        for point, interval in zip(points, ends, strict=True)
    ]


def paired_difference(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    name: str,
    *,
    replicates: int = 5000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, Any]:
    """How far a figure moved between two evaluations of the same questions, paired by question.

    Args:
        before: `Evaluation.summary` of one policy.
        after: of the other.
        name: of the figure.
        replicates: of the bootstrap.
        seed: of the bootstrap.
        level: of the interval.

    Raises:
        EvaluationError: they are of other questions.
    """
    if before["question_ids"] != after["question_ids"]:
        raise EvaluationError(
            "the two evaluations are of different questions; evaluate both policies on one pool"
        )
    moved = np.array(after["means"][name]) - np.array(before["means"][name])
    return _cells(moved[:, None], None, replicates=replicates, seed=seed, level=level)[0]
