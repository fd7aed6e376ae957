"""Which questions an update asks, and which rollouts make up its groups."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from herald_jax.train.environment import Task


def questions_of_update(tasks: Sequence[Task], count: int, update: int, seed: int) -> list[Task]:
    """The questions of an update: every question once an epoch, in an order of its own.

    It depends on the arguments alone, so that a resumed run asks what it would have asked.

    Args:
        tasks: n questions.
        count: questions of an update.
        update: its number, from 0.
        seed: of the run.
    """
    positions = np.arange(update * count, (update + 1) * count)
    epochs, places = np.divmod(positions, len(tasks))
    orders = {
        epoch: np.random.default_rng([seed, epoch]).permutation(len(tasks))
        for epoch in np.unique(epochs).tolist()
    }
    return [
        tasks[int(orders[epoch][place])]
        for epoch, place in zip(epochs.tolist(), places.tolist(), strict=True)
    ]


def mixed_groups(bits: NDArray[np.bool_], drawn: int, group: int) -> NDArray[np.int64]:
    """Rollouts to keep, so that as many groups as can be hold both kinds of a detector.

    Of `drawn` rollouts of a question, `group` are kept: in the order in which they were drawn, but
    no more than half of them with the commoner kind while the rarer one lasts. Nothing else of a
    rollout decides, least of all its reward. A question whose rollouts are all alike keeps its
    first ones.

    Args:
        bits: bool [n * drawn], the detector; rollouts of a question side by side.
        drawn: rollouts of a question.
        group: how many are kept.

    Returns:
        int64 [n * group] numbers of the kept rollouts, ascending within each question.
    """
    kept = []
    for first in range(0, len(bits), drawn):
        own = bits[first : first + drawn]
        true, false = np.flatnonzero(own), np.flatnonzero(~own)
        rare, common = (true, false) if len(true) <= len(false) else (false, true)
        few = rare[: group // 2]
        rest = common[: group - len(few)]
        kept.append(first + np.sort(np.concatenate([few, rest])))
    return np.concatenate(kept).astype(np.int64) if kept else np.zeros(0, np.int64)
