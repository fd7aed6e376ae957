"""Search-GRPO: rollouts, rewards by the audited contract, one clipped step, again.

Everything of an update is decided by the settings, the seed and its number; what is carried from
one to the next is the train state and a few sums, all of which a checkpoint holds. So a run that
was killed goes on to the same bits.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from herald_jax.kernels.policy_loss import token_weights
from herald_jax.train.advantages import (
    Credited,
    credit_rollouts,
    detector_signals,
    query_places,
    spread_advantages,
)
from herald_jax.train.credit_report import CreditReport
from herald_jax.train.diagnostics import DetectorSignals
from herald_jax.train.grouping import mixed_groups, questions_of_update
from herald_jax.train.optimizer import make_optimizer
from herald_jax.train.reward import Rewarded
from herald_jax.train.rollout import Rollout, Sampling
from herald_jax.train.sequences import Sequences, sequences_of
from herald_jax.train.setup import Setup, sampler_of
from herald_jax.train.sharding import batch_sharding, param_shardings, replicated
from herald_jax.train.update import Batch, Stats, TrainState, make_step, reference_logps
from herald_jax.types import DETECTORS, PAD, HeraldError

_CREDIT_STREAM = 1  # of the keys of an update, apart from those of its turns


class DivergedError(HeraldError):
    """Gradients stayed not finite."""


@dataclass(frozen=True, eq=False)
class Update:
    """One update, for logs."""

    number: int
    rollouts: list[Rollout]
    rewarded: Rewarded
    credited: Credited
    metrics: dict[str, float | int]


class Trainer:
    """The state of a run, and how it takes an update.

    Args:
        setup: what stays the same.
        states: the policy's trained and frozen states at the start of GRPO; the frozen reference of
            the KL is this start.
    """

    def __init__(self, setup: Setup, states: tuple[Any, Any]) -> None:
        config = setup.config
        self.setup = setup
        self.updates = 0
        self.spent = 0
        self.skipped = 0
        self.optimizer = make_optimizer(config.optimizer)
        self.signals = DetectorSignals(setup.reward.penalties)
        self.credit = CreditReport()
        self._sampler = sampler_of(setup)
        self._reference = jax.tree.map(jnp.copy, states) if config.grpo.kl else None
        self.state = self._start(states)
        step = make_step(
            setup.graph,
            self.optimizer,
            micro_rows=config.grpo.micro_rows,
            temperature=config.rollouts.temperature,
            clip_low=config.grpo.clip_low,
            clip_high=config.grpo.clip_high,
            kl_weight=config.grpo.kl,
        )
        self._batch = batch_sharding(setup.mesh)
        self._step = jax.jit(
            step, donate_argnums=0, out_shardings=(self.placed, replicated(setup.mesh))
        )

    def _start(self, states: tuple[Any, Any]) -> TrainState:
        trained, frozen = states

        def start(trained: Any, frozen: Any) -> TrainState:
            return TrainState(
                params=trained,
                frozen=frozen,
                optimizer=self.optimizer.init(trained),
                step=jnp.int32(0),
            )

        shapes = jax.eval_shape(start, trained, frozen)
        self.placed = param_shardings(shapes, self.setup.mesh).shardings
        placed: TrainState = jax.jit(start, out_shardings=self.placed)(trained, frozen)
        return placed

    @property
    def saved(self) -> dict[str, Any]:
        """What a checkpoint holds of arrays."""
        return {"train": self.state, "reference": self._reference or ()}

    @property
    def carried(self) -> dict[str, Any]:
        """What it holds beside them, plain values."""
        return {
            "updates": self.updates,
            "spent": self.spent,
            "skipped": self.skipped,
            "signals": self.signals.sums,
            "credit": self.credit.sums,
        }

    def take_over(self, saved: Mapping[str, Any], carried: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.state = saved["train"]
        if self._reference is not None:
            self._reference = saved["reference"]
        self.updates, self.spent = int(carried["updates"]), int(carried["spent"])
        self.skipped = int(carried["skipped"])
        self.signals.sums.update(carried["signals"])
        self.credit.sums.update(carried["credit"])

    @property
    def states(self) -> tuple[Any, Any]:
        """The policy's trained and frozen states."""
        return self.state.params, self.state.frozen

    def update(self) -> Update:
        """Take the next update.

        Raises:
            DivergedError: too many gradients in a row were not finite; the state is the one before
                the first of them.
        """
        number = self.updates
        clock = _Clock()
        rollouts, spent = self._rollouts(number)
        clock.lap("rollout")
        records = [run.record(_name(number, run), "policy", run.row) for run in rollouts]
        rewarded = self.setup.reward(records)
        clock.lap("reward")
        config = self.setup.config
        sequences = sequences_of(rollouts)
        searched = self.setup.evidence.searched(
            rollouts, config.environment.turns, config.credit.signal
        )
        credited = credit_rollouts(
            rewarded.reward,
            np.sum(np.asarray(sequences.places) != PAD, axis=1),
            np.array([run.truncated for run in rollouts]),
            searched,
            group=config.rollouts.group,
            grpo=config.grpo,
            credit=config.credit,
            key=jax.random.fold_in(
                jax.random.fold_in(jax.random.key(config.run.seed), number), _CREDIT_STREAM << 16
            ),
        )
        found = detector_signals(
            credited.reward,
            np.stack([rewarded.detectors[name] for name in DETECTORS]),
            credited.member,
            np.array([self.setup.reward.penalties[name] for name in DETECTORS], np.float32),
            group=config.rollouts.group,
            grpo=config.grpo,
        )
        clock.lap("advantage")
        stats = self._learn(sequences, credited, rollouts)
        clock.lap("update")
        self.updates += 1
        self.spent += spent
        metrics: dict[str, float | int] = {"update": self.updates, "tokens/budget": self.spent}
        metrics |= describe_rollouts(rollouts, rewarded, credited)
        metrics |= describe_steps(stats)
        if not config.grpo.kl:
            metrics["policy/kl"] = float("nan")  # there is no reference
        metrics |= self.signals.add(found)
        metrics |= self.credit.add(
            rewarded.f1,
            np.array([run.final is not None for run in rollouts]),
            searched,
            group=config.rollouts.group,
            weight=config.credit.scalar_weight,
        )
        metrics |= clock.metrics(spent)
        self._watch(stats)
        return Update(self.updates, rollouts, rewarded, credited, metrics)

    def _rollouts(self, number: int) -> tuple[list[Rollout], int]:
        """Rollouts of an update, and how many action tokens were generated for them."""
        config = self.setup.config
        settings = config.rollouts
        mixed = settings.compose == "mixed"
        each = settings.group * (settings.oversample if mixed else 1)
        tasks = questions_of_update(
            self.setup.tasks.train, settings.questions, number, config.run.seed
        )
        runs = self._sampler.run(
            self.states,
            [task for task in tasks for _ in range(each)],
            Sampling(
                turns=config.environment.turns,
                turn_tokens=settings.turn_tokens,
                temperature=settings.temperature,
                top_p=settings.top_p,
            ),
            seed=config.run.seed,
            update=number,
        )
        spent = sum(len(run.logps) for run in runs)
        if not mixed:
            return runs, spent
        records = [run.record(_name(number, run), "policy", run.row) for run in runs]
        bits = self.setup.reward(records).detectors[settings.detector]
        return [runs[at] for at in mixed_groups(bits, each, settings.group)], spent

    def _learn(
        self, sequences: Sequences, credited: Credited, rollouts: list[Rollout]
    ) -> list[Stats]:
        """The inner steps on one batch."""
        config = self.setup.config
        places = np.where(np.asarray(credited.member)[:, None], sequences.places, PAD)
        action = places != PAD
        queries = query_places(
            [[search.query for search in run.searches] for run in rollouts], places
        )
        aggregation: Any = config.grpo.aggregation
        weight = token_weights(jnp.asarray(action), aggregation, float(config.grpo.length))
        reference = jnp.zeros_like(weight)
        if self._reference is not None:
            reference = reference_logps(
                self.setup.graph,
                *self._reference,
                np.asarray(sequences.tokens),
                np.asarray(sequences.length),
                places,
                temperature=config.rollouts.temperature,
                told=replicated(self.setup.mesh),
            )
        batch = Batch(
            tokens=sequences.tokens,
            length=sequences.length,
            places=jnp.asarray(places),
            old_logps=sequences.logps,
            reference=reference,
            advantage=spread_advantages(
                credited.advantage, credited.credit, jnp.asarray(action), jnp.asarray(queries)
            ),
            weight=weight,
        )
        # From the memory of the host: it may be one of several, which all have the same rows.
        batch = jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf), self._batch), batch)
        found = []
        for _ in range(config.grpo.epochs):
            self.state, stats = self._step(self.state, batch)
            found.append(jax.device_get(stats))
        return found

    def _watch(self, stats: list[Stats]) -> None:
        """Stop when gradients stay not finite."""
        for one in stats:
            self.skipped = 0 if bool(one.finite) else self.skipped + 1
        if self.skipped >= self.setup.config.optimizer.skips:
            raise DivergedError(
                f"update {self.updates}: {self.skipped} gradients in a row were not finite and "
                "were skipped; lower optimizer.learning_rate or optimizer.clip_norm and start from "
                "the last checkpoint"
            )


class _Clock:
    """Seconds of the parts of an update."""

    def __init__(self) -> None:
        self._parts: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self._parts[name] = now - self._last
        self._last = now

    def metrics(self, tokens: int) -> dict[str, float | int]:
        whole = sum(self._parts.values())
        found: dict[str, float | int] = {
            f"seconds/{name}": spent for name, spent in self._parts.items()
        }
        return found | {"seconds/step": whole, "tokens/second": tokens / max(whole, 1e-9)}


def _name(update: int, run: Rollout) -> str:
    return f"update-{update + 1}/{run.row}"


def describe_rollouts(
    rollouts: list[Rollout], rewarded: Rewarded, credited: Credited
) -> dict[str, float | int]:
    """What users of such trainers look for in their logs, of one update's rollouts."""
    reward, member = np.asarray(credited.reward), np.asarray(credited.member)
    own = np.array([len(run.logps) for run in rollouts])
    whole = np.array([len(run.tokens) for run in rollouts])
    searches = np.array([len(run.searches) for run in rollouts])
    steps = np.array([len(run.steps) for run in rollouts])
    known = reward[member].astype(np.float64)
    found: dict[str, float | int] = {
        "reward/mean": float(known.mean()) if len(known) else float("nan"),
        "reward/sd": spread_of(known),
        "answer/em": float(rewarded.em.mean()),
        "answer/f1": float(rewarded.f1.mean()),
        "groups/flat": float(np.asarray(credited.flat).mean()),
        "rollouts/members": int(member.sum()),
        "rollouts/unscored": int(np.isnan(rewarded.reward).sum()),
        "rollouts/truncated": float(np.mean([run.truncated for run in rollouts])),
        "rollouts/unanswered": float(np.mean([run.final is None for run in rollouts])),
        "searches/mean": float(searches.mean()),
        "searches/invalid": float((steps - searches).mean()),
        "length/action": float(own.mean()),
        "length/whole": float(whole.mean()),
        "tokens/action": int(own.sum()),
    }
    for name, values in rewarded.terms.items():
        found[f"term/{name}/mean"] = float(values.mean())
        found[f"term/{name}/sd"] = spread_of(values)
    return found


def spread_of(values: NDArray[np.float32]) -> float:
    """Their sd with n - 1; NaN, which the log writes as null, where it is not known."""
    if len(values) < 2 or not np.isfinite(values).all():
        return float("nan")
    return float(values.std(ddof=1))


def describe_steps(stats: list[Stats]) -> dict[str, float | int]:
    """The same of its optimiser steps; ratios and clips over all of them, the rest of the last."""
    last = stats[-1]
    tokens = max(sum(int(one.tokens) for one in stats), 1)
    mine = max(int(last.tokens), 1)
    return {
        "loss": float(last.loss),
        "grad/norm": float(last.grad_norm),
        "grad/skipped": sum(not bool(one.finite) for one in stats),
        "policy/entropy": float(last.entropy) / mine,
        "policy/kl": float(last.kl) / mine,
        "policy/clipped_low": sum(int(one.clipped_low) for one in stats) / tokens,
        "policy/clipped_high": sum(int(one.clipped_high) for one in stats) / tokens,
        "policy/ratio_low": float(min(one.ratio_low for one in stats)),
        "policy/ratio_high": float(max(one.ratio_high for one in stats)),
        "policy/sampler_gap": float(stats[0].gap),
        "advantage/nonzero": int(last.credited) / mine,
    }
