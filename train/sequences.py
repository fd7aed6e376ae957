"""Rollouts as the padded arrays that an update reads.

Most tokens of a rollout are a tool's. What is trained is kept apart by its places, so that logits,
the dearest part of an update, are computed for the policy's own tokens alone.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from herald_jax.data.blocks import bucket
from herald_jax.train.rollout import Rollout
from herald_jax.train.spans import POLICY, author_mask, check_aligned
from herald_jax.types import PAD, pytree

# Few widths, so that few programs are compiled.
TRAINED = (32, 64, 96, 128, 256, 512, 1024)
WIDTHS = (64, 128, 160, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)


@pytree
class Sequences:
    """B rows of T tokens, of each of which the policy wrote at most W."""

    tokens: jax.Array  # int32 [B, T]
    length: jax.Array  # int32 [B] tokens of the row; what stands behind is padding
    places: jax.Array  # int32 [B, W] where the policy's tokens stand, ascending, PAD at the end
    logps: jax.Array  # float32 [B, W] the sampler's log-probabilities of them, 0 at PAD


def sequences_of(rollouts: Sequence[Rollout], width: int | None = None) -> Sequences:
    """Rollouts side by side.

    Args:
        rollouts: B of them.
        width: T; None takes the smallest of few that holds all.

    Raises:
        MisalignedError: spans, tokens and log-probabilities of a rollout do not line up.
        ValueError: a rollout is longer than `width`.
    """
    longest = max((len(run.tokens) for run in rollouts), default=1)
    width = width or bucket(longest, WIDTHS)
    if longest > width:
        raise ValueError(f"rows of at most {width} tokens, got one of {longest}")
    found = []
    for run in rollouts:
        check_aligned(f"rollout {run.row}", run.spans, len(run.tokens), len(run.logps))
        found.append(np.flatnonzero(author_mask(run.spans, POLICY, len(run.tokens))))
    places = padded_places(found)
    logps = np.zeros(places.shape, np.float32)
    for at, (run, where) in enumerate(zip(rollouts, found, strict=True)):
        own = np.array(run.logps, np.float32)[where > 0]
        logps[at, : len(own)] = own
    return Sequences(
        tokens=side_by_side([run.tokens for run in rollouts], width),  # type: ignore[arg-type]
        length=np.array([len(run.tokens) for run in rollouts], np.int32),  # type: ignore[arg-type]
        places=places,  # type: ignore[arg-type]
        logps=logps,  # type: ignore[arg-type]
    )


def side_by_side(rows: Sequence[Sequence[int]], width: int) -> NDArray[np.int32]:
    """Lists of ids as one array [B, width], 0 at the end."""
    tokens = np.zeros((len(rows), width), np.int32)
    for at, ids in enumerate(rows):
        tokens[at, : len(ids)] = ids
    return tokens


def padded_places(found: Sequence[NDArray[np.integer[Any]]]) -> NDArray[np.int32]:
    """Places of trained tokens as int32 [B, W], PAD at the end; W is one of few.

    The first token of a row comes after nothing and is never trained.
    """
    found = [where[where > 0] for where in found]
    places = np.full((len(found), bucket(max(map(len, found), default=1), TRAINED)), PAD, np.int32)
    for at, where in enumerate(found):
        places[at, : len(where)] = where
    return places
