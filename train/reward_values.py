"""What a reward function gave back, checked before anything is computed from it.

A function of the user's scores all trajectories of a batch in one call. One number too few, or one
for all, would be stretched or shifted over the batch by array code and train on the wrong
trajectories; so nothing is broadcast, and the error names the function.
"""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from herald_jax.types import HeraldError

# As many wrong values as an error shows.
_SHOWN = 5


class RewardValueError(HeraldError):
    """A reward function gave back something else than one number or null a trajectory."""


def check_rewards(name: str, returned: Any, n: int) -> npt.NDArray[np.float64]:
    """The rewards of `n` trajectories as one function gave them back.

    Args:
        name: the function's, for errors.
        returned: a flat list, tuple or array of one number or None a trajectory, in their order.
            None and NaN say that the trajectory cannot be scored. True and False are 1 and 0.
        n: trajectories that it was called with.

    Returns:
        float64 [n], NaN where a trajectory could not be scored.

    Raises:
        RewardValueError: any other length or nesting, values that are no numbers, or infinite ones.
    """
    values = _flat(name, returned, n)
    if len(values) != n:
        raise _error(name, n, f"{len(values)} of them")
    out = np.full(n, math.nan)
    wrong = []
    for place, value in enumerate(values):
        number = _number(value)
        if number is None or math.isinf(number):
            wrong.append(f"{_short(value)} at place {place}")
        else:
            out[place] = number
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise _error(name, n, ", ".join(wrong[:_SHOWN]) + more)
    return out


def _flat(name: str, returned: Any, n: int) -> Sequence[Any]:
    """The values one by one; an array of another rank than 1 is an error."""
    if isinstance(returned, list | tuple):
        return returned
    rank = getattr(returned, "ndim", None)
    if rank is None or not hasattr(returned, "__array__"):
        raise _error(name, n, _short(returned))
    if rank != 1:
        raise _error(name, n, f"an array of shape {tuple(returned.shape)}")
    flat: list[Any] = np.asarray(returned).tolist()
    return flat


def _number(value: Any) -> float | None:
    """A value as a float, NaN for null; None when it is no number."""
    if value is None:
        return math.nan
    # A number of an array library, of rank 0.
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _short(value: Any) -> str:
    text = repr(value)
    return f"{text[:40]}... ({type(value).__name__})" if len(text) > 40 else text


def _error(name: str, n: int, got: str) -> RewardValueError:
    return RewardValueError(
        f"reward function `{name}`: expected a flat list of one number or None for each of {n} "
        f"trajectories, got {got}; return one value a trajectory, in the order they were given"
    )
