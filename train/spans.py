"""Who wrote which tokens of a rollout, and what they are: integers, recorded when written.

Masks come from these spans and from lengths, never from the value of a token: a policy's own end
token may well be the id that pads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from herald_jax.types import HeraldError

AUTHORS: Final = ("prompt", "policy", "tool")
KINDS: Final = ("plain", "think", "query", "answer", "citation")
PROMPT, POLICY, TOOL = range(len(AUTHORS))
PLAIN, THINK, QUERY, ANSWER, CITATION = range(len(KINDS))


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens first .. last - 1."""

    author: int
    kind: int
    first: int
    last: int


class MisalignedError(HeraldError):
    """A rollout whose parts do not fit together."""


def author_mask(spans: Sequence[Span], author: int, length: int) -> NDArray[np.bool_]:
    """bool [length]: tokens that an author wrote, whatever kind they are.

    Raises:
        MisalignedError: a span begins before 0, ends before it begins or beyond the length.
    """
    mask = np.zeros(length, np.bool_)
    for span in spans:
        if not 0 <= span.first <= span.last <= length:
            raise MisalignedError(
                f"span {AUTHORS[span.author]} {span.first}:{span.last}: expected a place within "
                f"{length} tokens"
            )
        if span.author == author:
            mask[span.first : span.last] = True
    return mask


def check_aligned(name: str, spans: Sequence[Span], length: int, logps: int) -> None:
    """Refuse a rollout in which authors overlap or log-probabilities are missing.

    Args:
        name: of the rollout, for the error.
        spans: all of it.
        length: its tokens.
        logps: how many log-probabilities it has.

    Raises:
        MisalignedError: something does not line up.
    """
    masks = [author_mask(spans, author, length) for author in range(len(AUTHORS))]
    owners = np.sum(masks, axis=0)
    if (owners != 1).any():
        at = int(np.flatnonzero(owners != 1)[0])
        raise MisalignedError(f"{name}: token {at}: expected one author, got {int(owners[at])}")
    written = int(masks[POLICY].sum())
    if written != logps:
        raise MisalignedError(
            f"{name}: expected one log-probability for each of its {written} tokens, got {logps}"
        )
