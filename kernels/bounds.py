"""Exact binomial bounds (Clopper and Pearson, Biometrika 26, 1934), on the host in float64.

No successes in n trials do not show that the rate is 0: they bound it. With n = 0 the bounds are
those of ignorance, [0, 1]; a rate of nothing is unknown and never called zero.
"""

import math

from scipy.special import betaincinv


def clopper_pearson(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Two-sided interval of a binomial rate: each end leaves (1 - level) / 2 in its tail.

    lower: P(X >= successes | lower) = (1 - level) / 2, upper: P(X <= successes | upper) the same.

    Args:
        successes: 0 .. n.
        n: trials.
        level: coverage guaranteed, between 0 and 1.

    Returns:
        Lower and upper end; 0 at no success, 1 at n successes, (0, 1) when n is 0.

    Raises:
        ValueError: successes outside 0 .. n, or `level` not between 0 and 1.
    """
    one_sided = (1.0 + level) / 2.0
    lower = 1.0 - clopper_pearson_upper(n - successes, n, level=one_sided)
    return lower, clopper_pearson_upper(successes, n, level=one_sided)


def clopper_pearson_upper(successes: int, n: int, *, level: float = 0.95) -> float:
    """One-sided upper bound of a binomial rate: P(X <= successes | bound) = 1 - level.

    With no success this is 1 - (1 - level)^(1/n): 0.50391 % at n = 593 and level 0.95.

    Args:
        successes: 0 .. n.
        n: trials.
        level: coverage guaranteed, between 0 and 1.

    Returns:
        The bound; 1 at n successes, hence also when n is 0.

    Raises:
        ValueError: successes outside 0 .. n, or `level` not between 0 and 1.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be in 0 .. n, got {successes} of {n}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    if successes == n:
        return 1.0
    if successes == 0:
        return -math.expm1(math.log1p(-level) / n)
    return float(betaincinv(successes + 1, n - successes, level))
