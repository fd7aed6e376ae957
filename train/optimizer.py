"""AdamW with linear warm-up, clipping by global norm, and weight decay of matrices alone."""

from typing import Any

import jax
import optax

from herald_jax.train.config import Optimizer


def decayed(params: Any) -> Any:
    """Which leaves weight decay acts on: matrices; norms and other vectors have none."""
    return jax.tree.map(lambda leaf: leaf.ndim >= 2, params)


def make_optimizer(settings: Optimizer) -> optax.GradientTransformation:
    """The optimiser of an update."""
    rate = settings.learning_rate
    schedule = optax.schedules.linear_schedule(
        init_value=rate / max(settings.warmup, 1),
        end_value=rate,
        transition_steps=max(settings.warmup - 1, 0),
    )
    return optax.chain(
        optax.clip_by_global_norm(settings.clip_norm),
        optax.adamw(
            schedule,
            b1=settings.beta1,
            b2=settings.beta2,
            weight_decay=settings.weight_decay,
            mask=decayed,
        ),
    )
