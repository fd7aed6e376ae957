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


@dataclass(frozen=True, slots=True)
class LogScale:
    """The logarithmic map of [low, high], both positive, onto [start, end]."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Coordinate of `value`, which is positive."""
        linear = Scale(math.log(self.low), math.log(self.high), self.start, self.end)
        return linear(math.log(value))


def decades(low: float, high: float) -> list[float]:
    """Powers of ten that enclose [low, high], both positive, and those between; at least two."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks that enclose [low, high], both positive: decades, or 1, 2 and 5 times if few."""
    powers = decades(low, high)
    if len(powers) > 3:
        return powers
    steps = [m * power for power in powers for m in (1.0, 2.0, 5.0)]
    below = max(step for step in steps if step <= low * (1 + 1e-9))
    above = min((step for step in steps if step >= high * (1 - 1e-9)), default=steps[-1])
    inside = [step for step in steps if below <= step <= above]
    return inside if len(inside) > 1 else powers


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
