"""The policy's loss, one token at a time, in double precision."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple


class Token(NamedTuple):
    """What the clipped objective says of one token, with its derivative by the log probability."""

    value: float
    ratio: float
    clipped_low: bool
    clipped_high: bool
    slope: float


def objective(
    logp: float, old_logp: float, advantage: float, clip_low: float, clip_high: float, bound: float
) -> Token:
    """The smaller of ρ A and clip(ρ) A."""
    apart = logp - old_logp
    ratio = math.exp(max(-bound, min(bound, apart)))
    clipped = max(1 - clip_low, min(1 + clip_high, ratio))
    value = min(ratio * advantage, clipped * advantage)
    binds = value < ratio * advantage
    low, high = binds and ratio < 1 - clip_low, binds and ratio > 1 + clip_high
    slope = 0.0 if binds or abs(apart) > bound else ratio * advantage
    return Token(value, ratio, low, high, slope)


def kl(logp: float, reference: float, cap: float) -> tuple[float, float]:
    """e^d - d - 1 and its derivative by the log probability of the policy."""
    apart = reference - logp
    d = min(apart, cap)
    # The sum d²/2 + d³/6 + ... where the closed form would lose its digits.
    value = (
        math.exp(d) - d - 1
        if abs(d) > 0.1
        else math.fsum(d**k / math.factorial(k) for k in range(2, 15))
    )
    return value, 0.0 if apart > cap else 1 - math.exp(d)


def token_weights(
    mask: Sequence[Sequence[bool]], aggregation: str, length: Fraction | None = None
) -> list[list[Fraction]]:
    """What each token's loss is multiplied by before all are added up."""
    rows = sum(any(row) for row in mask)
    tokens = sum(sum(row) for row in mask)

    def weight(row: Sequence[bool]) -> Fraction:
        if aggregation == "token_mean":
            return Fraction(1, tokens)
        if aggregation == "row_mean":
            return Fraction(1, rows * sum(row))
        assert length is not None
        return 1 / (rows * length)

    return [[weight(row) if here else Fraction(0) for here in row] for row in mask]


def token_advantages(
    advantage: float, action: Sequence[bool], credit: Sequence[float], query: Sequence[int]
) -> list[float]:
    """The rollout's advantage at each action token, and the search's at the tokens of its query."""
    found = []
    for acts, search in zip(action, query, strict=True):
        local = credit[search] if 0 <= search < len(credit) else 0.0
        found.append(advantage + local if acts else 0.0)
    return found
