"""Selections of rows before an audit (SPEC section 9), for the rollouts of whole questions."""

import hashlib

import numpy as np
import numpy.typing as npt

from herald_jax.audit.staging import Block, Mask


def best(scores: npt.NDArray[np.floating], among: Mask, tolerance: float) -> Mask:
    """Those within the tolerance of the highest score of their question.

    Args:
        scores: [G, M], rollouts in the order of ties.
        among: bool [G, M].
        tolerance: scores this close to the highest are equal to it.

    Returns:
        bool [G, M]. Scores that are not finite are below all others; where no other is left, all
        are equal.
    """
    finite = among & np.isfinite(scores)
    highest = np.where(finite, scores, -np.inf).max(axis=1, keepdims=True)
    top = finite & (scores >= highest - tolerance)
    return np.where(finite.any(axis=1, keepdims=True), top, among)


def first_of(among: Mask) -> Mask:
    """The first of each question alone: bool [G, M] -> bool [G, M]."""
    return among & (np.cumsum(among, axis=1) == 1)


def hashed_rollout(question_id: str, rollouts: int) -> int:
    """SHA-256 of the UTF-8 id, its first eight bytes big-endian, modulo the number of rollouts."""
    digest = hashlib.sha256(question_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") % rollouts


def select(block: Block, selection: str) -> Mask:
    """Rows of a block that a selection takes: bool [B].

    Args:
        block: whole questions, rollouts in order.
        selection: one of SPEC section 9.

    Raises:
        ValueError: an unknown name.
    """
    real = block.real.reshape(block.grouped)
    if selection == "all":
        return block.real
    if selection == "stored":
        return block.gather("selected", False)
    if selection == "first":
        return first_of(real).reshape(-1)
    if selection == "hash_random":
        return _hash_random(block, real).reshape(-1)
    scores = block.rewards[block.setup.contracts.index("R0")].reshape(block.grouped)
    tolerance = block.setup.tie_tolerance
    if selection == "r0_best":
        return first_of(best(scores, real, tolerance)).reshape(-1)
    if selection == "gold_informed":
        left = real
        for column in ("em", "f1"):
            left = best(block.gather(column, 0.0).reshape(block.grouped), left, tolerance)
        return first_of(best(scores, left, tolerance)).reshape(-1)
    raise ValueError(f"unknown selection {selection!r}")


def _hash_random(block: Block, real: Mask) -> Mask:
    picked = np.zeros_like(real)
    ids = block.setup.pool.questions.ids
    for group, question in enumerate(block.place.groups):
        if question >= 0:
            picked[group, hashed_rollout(ids[question], int(real[group].sum()))] = True
    return picked
