"""Scales and tick marks: from data to coordinates, with round numbers at the ticks."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """The linear map of [low, high] onto [start, end]; a domain of no width maps to the middle."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Coordinate of `value`."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def tick_step(low: float, high: float, wanted: int) -> float:
    """The round step (1, 2 or 5 times a power of ten) that gives about `wanted` intervals."""
    if not high > low:
        return 1.0
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    return float(next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9)))


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Multiples of a round step inside [low, high]."""
    step = tick_step(low, high, wanted)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def round_up(value: float, wanted: int = 4) -> float:
    """The first tick at or above `value`, for an axis that starts at zero."""
    if value <= 0.0:
        return 0.0
    step = tick_step(0.0, value, wanted)
    return math.ceil(value / step - 1e-9) * step
