"""Rewards of rollouts by a contract of the manifest, through the kernels of the audit.

Nothing of a reward is written here: records are encoded, measured and rewarded by the very
functions that `herald audit` calls, so that an audit of a run's log gives every logged reward
again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from herald_jax.data.blocks import Widths, bucket
from herald_jax.data.encode import Encoder
from herald_jax.data.flat import Flat
from herald_jax.data.ids import IdTable
from herald_jax.data.questions import questions_of
from herald_jax.data.ragged import Ragged
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.kernels import programs
from herald_jax.kernels.rewards import COLUMNS, Contracts, Measured, column
from herald_jax.manifest import Manifest
from herald_jax.manifest.contracts import build_contracts
from herald_jax.manifest.measuring import measuring_rules
from herald_jax.manifest.rules import suggestion
from herald_jax.pool.blocks import oracle_block, visible_block
from herald_jax.pool.rows import rows_of
from herald_jax.train.reward_values import check_rewards
from herald_jax.types import DETECTORS, ManifestError

_WIDTHS = (8, 16, 32, 64)
Float32 = NDArray[np.float32]
RewardFn = Callable[[Measured], jax.Array]


@dataclass(frozen=True, eq=False)
class Rewarded:
    """What is known of B rollouts once they are over.

    Attributes:
        reward: float32 [B].
        terms: what the reward is the sum of: column -> weight times value, float32 [B].
        detectors: detector -> bool [B], all of them, paid or not.
        em: float32 [B] exact match of the answer.
        f1: float32 [B] its token F1.
    """

    reward: Float32
    terms: dict[str, Float32]
    detectors: dict[str, NDArray[np.bool_]]
    em: Float32
    f1: Float32


class RewardModel:
    """A contract, ready for any records over one corpus and its gold labels.

    Args:
        passages: the corpus.
        oracle: gold labels.
        manifest: thresholds, weights and contracts, as an audit reads them.
        contract: name of the contract; or a JAX function of what was measured, [B] -> [B], NaN for
            a rollout that it cannot score.

    Raises:
        ManifestError: the manifest has no such contract; names the nearest.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        oracle: Sequence[OracleRow],
        manifest: Manifest,
        contract: str | RewardFn,
    ) -> None:
        self._ids = IdTable(sorted(passage.passage_id for passage in passages))
        self._questions = questions_of(oracle, self._ids, manifest.data.rules)
        self._encoder = Encoder(
            self._ids, self._questions, rules=manifest.data.rules, assume_no_citations=False
        )
        self._passages = jnp.asarray(np.int32(len(passages)))
        self._rules = measuring_rules(manifest)
        self._support = bucket(int(self._questions.support.lengths.max(initial=1)), _WIDTHS)
        self._function = None if isinstance(contract, str) else jax.jit(contract)
        self._name = getattr(contract, "__name__", type(contract).__name__)
        self._weights = np.zeros(len(COLUMNS))
        self.penalties = dict.fromkeys(DETECTORS, 0.0)
        if isinstance(contract, str):
            chosen = build_contracts(manifest)
            if contract not in chosen.names:
                raise ManifestError(
                    f"reward.contract: expected one of {', '.join(chosen.names)}, got "
                    f"{contract!r}; {suggestion(contract, chosen.names, 'name one of them')}"
                )
            row = chosen.index(contract)
            self._contracts = chosen.take([row]).device(external_base=False)
            self._weights = chosen.weights(external_base=False)[row]
            self.penalties = dict(zip(DETECTORS, chosen.penalties[row].tolist(), strict=True))

    def __call__(self, records: Sequence[Trajectory]) -> Rewarded:
        """Rewards of B records.

        Raises:
            ValueError: a record is of a question without gold labels, or has something not logged.
            RewardValueError: a function gave back something else than one number a record.
        """
        chunk = self._encoder.encode(Flat.of_records(records, range(1, len(records) + 1)))[0]
        if len(chunk) != len(records):
            unknown = {record.question_id for record in records} - set(self._questions.ids)
            raise ValueError(
                f"{len(records) - len(chunk)} of {len(records)} rollouts cannot be judged; "
                f"questions without gold labels: {sorted(unknown)[:5]}"
            )
        rows = rows_of(chunk, 0, Ragged.of_lists([[]] * len(chunk)))
        widths = Widths(
            retrieved=bucket(int(rows.retrieved.lengths.max(initial=1)), _WIDTHS),
            citations=bucket(int(rows.citations.lengths.max(initial=1)), _WIDTHS),
            support=self._support,
        )
        at = np.arange(len(records), dtype=np.int32)
        visible = visible_block(rows, at, widths)
        oracle = oracle_block(rows, self._questions, at, widths)
        state = programs.describe(visible, self._passages)
        measured = programs.measure_originals(state, oracle, self._rules)
        return self._rewarded(measured, np.asarray(oracle.em), np.asarray(oracle.f1))

    def _rewarded(self, measured: Measured, em: Float32, f1: Float32) -> Rewarded:
        if self._function is None:
            reward = np.asarray(programs.rewards(self._contracts, measured, None))[0]
        else:
            given = check_rewards(self._name, self._function(measured), len(em))
            reward = given.astype(np.float32)
        values = {name: np.asarray(column(measured, name)) for name in COLUMNS}
        terms = {
            name: np.float32(weight) * values[name].astype(np.float32)
            for name, weight in zip(COLUMNS, self._weights.tolist(), strict=True)
            if weight
        }
        detectors = {name: values[name].astype(np.bool_) for name in DETECTORS}
        return Rewarded(reward, terms, detectors, em, f1)

    def explain(self) -> dict[str, float]:
        """Weight of each term, penalties negative."""
        return {
            name: weight
            for name, weight in zip(COLUMNS, self._weights.tolist(), strict=True)
            if weight
        }

    @property
    def contracts(self) -> Contracts:
        """The contract as the kernels take it."""
        return self._contracts
