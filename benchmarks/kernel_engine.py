"""Citation laundering by the programs of an audit, in the order in which an audit calls them.

Only `herald_jax.kernels`, `types` and `manifest` are imported, so that this runs where nothing but
JAX, NumPy, SciPy and chex is installed: the contracts, the operator and the columns that it moves
are written out here, and a test compares them with those of `herald_jax.audit`. Sums per question
are added up on the host as an audit does.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray
from synthetic import GOLD_WORDS, PASSAGES, ROLLOUTS, Synthetic

from herald_jax.data.aligned import aligned
from herald_jax.kernels import edits, programs
from herald_jax.kernels.detectors import Limits
from herald_jax.kernels.features import FeatureWeights
from herald_jax.kernels.margins import Selected
from herald_jax.kernels.pairs import Rule
from herald_jax.kernels.rewards import COLUMNS, Contracts, Measured, Moved, told_apart
from herald_jax.kernels.sums import QuestionSums, margin_scale, margin_totals
from herald_jax.manifest import Manifest
from herald_jax.types import (
    DETECTORS,
    FEATURES,
    NO_ANSWER,
    PAD,
    SYMBOLS,
    VISIBLE_FLAGS,
    Labels,
    Offer,
    Oracle,
    State,
    Visible,
)

SELECTORS = ("first_visible", "oracle_worst")
TARGET = "cited_not_retrieved"
# What a lone citation that moves to an unretrieved passage can change.
MOVED = (
    "grounding",
    "hacking_rate",
    "cited_not_retrieved",
    "fake_citation",
    "support_id_mismatch",
)
# Rows of a block, by backend: what the cache of a CPU likes, and what fills an accelerator.
BLOCK_ROWS = {"cpu": (1 << 15) + 64}
LARGE_BLOCK = 1 << 20
# Sums that the device may still be working on while the host hands it the next block.
MOST_WAITING = 64

Array = NDArray[Any]


def contracts(manifest: Manifest) -> tuple[tuple[str, ...], Array]:
    """Names and weights, float32 [J, X], of all contracts of an audit."""
    reward, penalties = manifest.reward, manifest.penalties
    base = {name: getattr(reward, name) for name in FEATURES}
    detectors = sorted(manifest.lattice.detectors, key=DETECTORS.index)
    rows: dict[str, dict[str, float]] = {
        "outcome_only": {"answer": reward.answer},
        "outcome_cost": {"answer": reward.answer, "tool_calls": reward.tool_calls},
    }
    for size in range(len(detectors) + 1):
        for chosen in combinations(detectors, size):
            letters = "+".join(SYMBOLS[name] for name in chosen)
            rows[f"R[{letters}]" if letters else "R0"] = base | {
                name: -getattr(penalties, name) for name in chosen
            }
    rows["R_full"] = base | {name: -getattr(penalties, name) for name in DETECTORS}
    weights = [[of.get(name, 0.0) for name in COLUMNS] for of in rows.values()]
    return tuple(rows), np.array(weights, np.float32)


@dataclass(frozen=True)
class Block:
    """Some questions, with all their rollouts, as arrays with trajectories along the last axis."""

    rows: slice  # of the trajectories; what the last block has beyond them is padding
    visible: Visible
    oracle: Oracle
    candidates: Array  # int32 [K, B]

    @property
    def real(self) -> NDArray[np.bool_]:
        """bool [B]: which places hold a trajectory."""
        return np.arange(self.candidates.shape[1]) < self.rows.stop - self.rows.start

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that an audit reads, each counted once."""
        arrays = (self.visible, self.oracle, self.candidates)
        return sum(leaf.nbytes for leaf in jax.tree.leaves(arrays))

    @property
    def questions(self) -> slice:
        return slice(self.rows.start // ROLLOUTS, -(-self.rows.stop // ROLLOUTS))


@dataclass(frozen=True)
class Described:
    """What is known of every id of a block, on the device: all that an audit keeps of it."""

    block: Block
    state: State
    originals: Measured
    offer: Offer
    labels: Labels


@dataclass(frozen=True)
class Trial:
    """Laundering tried on a block."""

    verdicts: programs.Verdicts
    selected: Selected  # [D, B], under the contracts that laundering tells apart


def block_rows(backend: str | None = None) -> int:
    """Rows of a block on a backend, by default that of this machine."""
    return BLOCK_ROWS.get(backend or jax.default_backend(), LARGE_BLOCK)


def blocks(data: Synthetic, rows: int) -> list[Block]:
    """All trajectories in blocks of so many rows, in host memory, padded as an audit pads."""
    rows = min(rows, len(data))
    return [_block(data, start, rows) for start in range(0, len(data), rows)]


def _block(data: Synthetic, start: int, size: int) -> Block:
    rows = slice(start, min(start + size, len(data)))
    count = rows.stop - rows.start
    support = data.support[rows.start // ROLLOUTS : rows.stop // ROLLOUTS]

    def column(values: Array, padding: Any, dtype: Any = np.int32) -> Any:
        out = aligned((*values.shape[1:], size), dtype)
        out[..., :count], out[..., count:] = values.T, padding
        return out

    return Block(
        rows=rows,
        visible=Visible(
            retrieved=column(data.retrieved[rows], PAD),
            citations=column(data.citations[rows], PAD),
            searches=column(data.searches[rows], 0),
            invalid=column(data.invalid[rows], 0),
            repeated=column(data.repeated[rows], False, bool),
            answer_tokens=column(data.answer_tokens[rows], NO_ANSWER),
            malformed=column(data.malformed[rows], 0),
        ),
        oracle=Oracle(
            support=column(np.repeat(support, ROLLOUTS, axis=0), PAD),
            em=column(data.f1[rows] == 1, 0, np.float32),
            f1=column(data.f1[rows], 0, np.float32),
            gold_em=column(np.ones(count), np.nan, np.float32),
            gold_f1=column(np.ones(count), np.nan, np.float32),
            gold_tokens=column(np.full(count, GOLD_WORDS), NO_ANSWER),
            is_gold=column(np.zeros(count), False, bool),
        ),
        candidates=column(data.candidates[rows], PAD),
    )


@dataclass(frozen=True)
class Sums:
    """Sums per question under one selector; margins in units of 1 / scale."""

    rows: Array  # int32 [J, Q]
    successes: Array  # int32 [J, Q]
    totals: Array  # int64 [J, Q]
    largest: Array  # float64 [J]

    @classmethod
    def none(cls, contracts: int, questions: int) -> "Sums":
        shape = (contracts, questions)
        return cls(
            np.zeros(shape, np.int32),
            np.zeros(shape, np.int32),
            np.zeros(shape, np.int64),
            np.full(contracts, -np.inf),
        )

    def take(self, questions: slice, found: QuestionSums, alike: Array) -> None:
        """Take in the sums [D, G] of a block; its questions are in no other."""
        count = questions.stop - questions.start
        self.rows[:, questions] = np.asarray(found.rows)[alike, :count]
        self.successes[:, questions] = np.asarray(found.successes)[alike, :count]
        self.totals[:, questions] = margin_totals(found.high, found.low)[alike, :count]
        largest = np.asarray(found.largest)[:, :count].max(axis=1)[alike]
        np.maximum(self.largest, largest, out=self.largest)

    def tobytes(self) -> bytes:
        """All of it, for comparing runs."""
        return b"".join(
            part.tobytes() for part in (self.rows, self.successes, self.totals, self.largest)
        )


class Engine:
    """An audit of laundering under all contracts of the default manifest."""

    def __init__(self, data: Synthetic) -> None:
        manifest = Manifest()
        self.names, self.weights = contracts(manifest)
        none = np.zeros(len(self.names), bool)
        self._kinds, self.alike = told_apart(self.weights, none, MOVED)
        self.questions = -(-len(data) // ROLLOUTS)
        self.tie_tolerance = manifest.statistics.tie_tolerance
        # No margin is larger than all weights times the largest feature.
        reach = float(max(data.answer_tokens.max(), data.searches.max() + 1, 1))
        self.scale = margin_scale(float(np.abs(self.weights).sum(axis=1).max()) * reach)
        self._manifest = manifest

    @cached_property
    def _passages(self) -> jax.Array:
        return jnp.int32(PASSAGES)

    @cached_property
    def _contracts(self) -> Contracts:
        """Those that laundering tells apart."""
        share = jnp.zeros(len(self._kinds), jnp.float32)
        return Contracts(weights=jnp.asarray(self.weights[self._kinds]), base=share)

    @property
    def moved(self) -> Array:
        """Their weights of what laundering can change: float32 [D, len(MOVED)]."""
        return self.weights[self._kinds][:, [COLUMNS.index(name) for name in MOVED]]

    @cached_property
    def _rules(self) -> programs.Rules:
        detectors, features = self._manifest.detectors, self._manifest.features
        listed = np.array([name in features.hacking_flags for name in DETECTORS], np.float64)
        return programs.Rules(
            limits=Limits(
                min_searches=jnp.int32(detectors.min_searches),
                max_searches=jnp.int32(detectors.max_searches),
            ),
            weights=FeatureWeights(
                precision=jnp.float32(features.grounding_precision),
                recall=jnp.float32(features.grounding_recall),
                hacking=jnp.asarray((listed / listed.sum()).astype(np.float32)),
            ),
        )

    @cached_property
    def _rule(self) -> Rule:
        return Rule(
            target=jnp.array([name == TARGET for name in DETECTORS]),
            watched=jnp.array([name in VISIBLE_FLAGS and name != TARGET for name in DETECTORS]),
        )

    def place(self, block: Block) -> Block:
        """The block on the device; on several, its trajectories in as many equal parts."""
        arrays = (block.visible, block.oracle, block.candidates)
        devices = np.array(jax.local_devices())
        if len(devices) == 1:
            return Block(block.rows, *jax.device_put(arrays))
        mesh = Mesh(devices, ("trajectories",))

        def split(leaf: Any) -> jax.Array:
            axes = [None] * (leaf.ndim - 1)
            return jax.device_put(leaf, NamedSharding(mesh, PartitionSpec(*axes, "trajectories")))

        return Block(block.rows, *jax.tree.map(split, arrays))

    def describe(self, block: Block) -> Described:
        """Look at every id of a block that is on the device."""
        state = programs.describe(block.visible, self._passages)
        originals = programs.measure_originals(state, block.oracle, self._rules)
        offer, labels = programs.describe_offer(
            block.candidates, block.visible, block.oracle, self._passages
        )
        return Described(block, state, originals, offer, labels)

    def attempt(self, known: Described) -> Trial:
        """Launder, judge and select."""
        moved, verdicts = self._judged(known)
        selected = programs.pick(known.originals, moved, self._contracts, None, verdicts.isolated)
        return Trial(verdicts, selected)

    def margins(self, known: Described) -> jax.Array:
        """Margins of all pairs, float32 [D, E, B], which an audit need not write down."""
        moved, _ = self._judged(known)
        return programs.pair_margins(known.originals, moved, self._contracts, None)

    def _judged(self, known: Described) -> tuple[Moved, programs.Verdicts]:
        made, moved = programs.measure_edits(
            known.state,
            known.offer,
            known.labels,
            self._rules,
            edit=edits.citation_laundering,
            each=True,
            columns=MOVED,
        )
        return moved, programs.judge(made, known.originals, moved, self._rule)

    def sums(self, block: Block, trial: Trial) -> list[QuestionSums]:
        """Sums per question under each selector, which the device may still be working on."""
        return [
            programs.sum_questions(
                getattr(trial.selected, selector),
                block.real,
                np.float32(self.scale),
                np.float32(self.tie_tolerance),
                width=ROLLOUTS,
            )
            for selector in SELECTORS
        ]

    def audit(self, data: Sequence[Block]) -> dict[str, Sums]:
        """Everything, from arrays in host memory (or on the device) to sums per question."""
        return self._collect(self.describe(self.place(block)) for block in data)

    def audit_described(self, data: Sequence[Described]) -> dict[str, Sums]:
        """The same of blocks of which every id is known already."""
        return self._collect(data)

    def _collect(self, data: Iterable[Described]) -> dict[str, Sums]:
        found = {name: Sums.none(len(self.names), self.questions) for name in SELECTORS}
        waiting: deque[tuple[slice, list[QuestionSums]]] = deque()

        def take(left: int) -> None:
            while len(waiting) > left:
                questions, sums = waiting.popleft()
                for name, of_selector in zip(SELECTORS, sums, strict=True):
                    found[name].take(questions, of_selector, self.alike)

        for known in data:
            waiting.append((known.block.questions, self.sums(known.block, self.attempt(known))))
            if len(waiting) > MOST_WAITING:
                take(MOST_WAITING // 2)
        take(0)
        return found
