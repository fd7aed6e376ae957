"""The place of R0: a linear reward of the manifest, or any reward that gives numbers.

The engine asks for one number a logged trajectory and one an edit, and for nothing else, so that a
black-box reward takes R0's place without the rest knowing (SPEC section 4: R_S = R_user − Σ λ d).
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from herald_jax.audit.operators import Operator
from herald_jax.kernels.rewards import Measured, Moved

Numbers = npt.NDArray[np.float64]


class BaseReward(Protocol):
    """A reward given as numbers. NaN says that there is none: it is counted, never read as zero."""

    @property
    def reads(self) -> Sequence[str]:
        """Record fields that it reads."""

    @property
    def bound(self) -> float:
        """No finite reward is larger in absolute value: fixes the grid on which sums are exact."""

    def originals(self, rows: npt.NDArray[np.int64], measured: Measured) -> Numbers:
        """Rewards of logged trajectories.

        Args:
            rows: int64 [B] numbers among all rows of the pool, negative for padding.
            measured: their features and detectors.

        Returns:
            float64 [B]; what stands at padding is not read.
        """

    def edits(
        self,
        operator: Operator,
        rows: npt.NDArray[np.int64],
        offered: npt.NDArray[np.int32],
        moved: Moved,
    ) -> Numbers:
        """Rewards of edits.

        Args:
            operator: which edit.
            rows: int64 [B].
            offered: int32 [K, B] ids on offer, the edit's own argument.
            moved: features and detectors that the edits can change, [E, B].

        Returns:
            float64 [E, B]; what stands where no edit was made is not read.
        """
