"""Blocks of a pool on the device: described, measured and rewarded once, used by every table."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from herald_jax.audit.base import BaseReward
from herald_jax.data.blocks import GroupBlock, Widths, bucket, group_blocks, power_of_two
from herald_jax.kernels import programs
from herald_jax.kernels.rewards import Contracts, Measured
from herald_jax.kernels.sums import MAX_ROLLOUTS, margin_scale
from herald_jax.manifest import Manifest
from herald_jax.manifest.contracts import ContractSet
from herald_jax.manifest.measuring import measuring_rules
from herald_jax.pool.blocks import gather, oracle_block, visible_block
from herald_jax.pool.pool import Pool
from herald_jax.pool.sections import Section
from herald_jax.search import CorpusIndex
from herald_jax.search.passages import index_key
from herald_jax.types import (
    DETECTORS,
    FEATURES,
    PAD,
    Fault,
    InputError,
    Labels,
    Oracle,
    State,
    Visible,
)

Tree = TypeVar("Tree")
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]

# Rows of a block. Small pools take a small block; beyond the largest, more blocks. Not powers of
# two: with them the lists of a block lie so that their rows fall on the same few lines of a CPU's
# cache, and membership takes four times as long. Multiples of 64, so that groups fit.
BLOCK_ROWS = tuple((1 << k) + 64 for k in range(8, 16))
# Numbers of the largest array of a block: margins of all edits under all contracts, or what was
# retrieved. Wider pools take shorter blocks.
BLOCK_NUMBERS = 1 << 25
RETRIEVED_WIDTHS = (8, 16, 24, 32, 40, 48, 64)
CITATION_WIDTHS = (4, 8, 16, 32)
SUPPORT_WIDTHS = (4, 8, 16)


@dataclass(frozen=True)
class Setup:
    """What stays the same for all blocks of an audit."""

    pool: Pool
    manifest: Manifest
    contracts: ContractSet
    base: BaseReward | None
    widths: Widths
    block_rows: int

    @cached_property
    def corpus(self) -> CorpusIndex | None:
        """The corpus as generators search it, with the manifest's settings of BM25."""
        index, settings = self.pool.index, self.manifest.generators
        if index is None:
            return None
        texts = [(passage.title, passage.text) for passage in self.pool.passages]
        bm25: dict[str, Any] = {
            "k1": settings.bm25_k1,
            "b": settings.bm25_b,
            "epsilon": settings.bm25_epsilon,
            "variant": settings.bm25_variant,
        }
        if index.key == index_key(texts, **bm25):
            return index
        return CorpusIndex(texts, **bm25)

    @cached_property
    def passages(self) -> jax.Array:
        """Size of the corpus, int32 []."""
        return jnp.asarray(np.int32(len(self.pool.passages)))

    @cached_property
    def rules(self) -> programs.Rules:
        """Thresholds and weights of measuring."""
        return measuring_rules(self.manifest)

    @cached_property
    def device_contracts(self) -> Contracts:
        """All contracts, as the kernels take them."""
        return self.contracts.device(external_base=self.base is not None)

    @cached_property
    def scale(self) -> float:
        """Fixed point of the margins: exact for any margin that these trajectories can have."""
        longest, asked = self.pool.longest, self.pool.counts > 0
        reach = dict.fromkeys(FEATURES, 1.0)
        reach["tool_calls"] = longest.searches + 1.0
        reach["answer_length"] = float(
            max(longest.answer_tokens, self.pool.questions.gold_tokens[asked].max(initial=0))
        )
        external = self.base is not None
        factor = max(self.manifest.lattice.scales, default=1.0)
        weights = np.abs(self.contracts.weights(external))
        spans = np.concatenate([list(reach.values()), np.full(len(DETECTORS), max(factor, 1.0))])
        bound = float((weights * spans).sum(axis=1).max())
        if self.base is not None:
            bound += 2.0 * self.base.bound
        return margin_scale(bound)

    @property
    def tie_tolerance(self) -> float:
        """A margin of at least minus this is a success."""
        return self.manifest.statistics.tie_tolerance


@dataclass(frozen=True)
class Block:
    """One block on the device; `rows` of its place are rows of the section."""

    setup: Setup
    section: Section
    place: GroupBlock
    visible: Visible
    oracle: Oracle
    state: State
    originals: Measured
    base: npt.NDArray[np.float64] | None  # [B] external base rewards

    @property
    def real(self) -> Mask:
        """bool [B]: which places hold a trajectory."""
        return self.place.rows >= 0

    @property
    def grouped(self) -> tuple[int, int]:
        """(G, M): questions and rollouts of each."""
        return len(self.place.groups), self.place.width

    @cached_property
    def labels(self) -> Labels:
        """What gold says of the citations."""
        nothing = np.zeros((0, len(self.place.rows)), np.int32)
        return programs.describe_offer(nothing, self.visible, self.oracle, self.setup.passages)[1]

    @cached_property
    def flags(self) -> Mask:
        """Detectors of the logged trajectories: bool [D, B]."""
        return np.stack([np.asarray(getattr(self.originals.flags, name)) for name in DETECTORS])

    @cached_property
    def rewards(self) -> Floats:
        """Rewards of the logged trajectories: float32 [J, B]."""
        base = None if self.base is None else self.base.astype(np.float32)
        return np.asarray(programs.rewards(self.setup.device_contracts, self.originals, base))

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """int64 [B]: numbers of the trajectories among all of the pool, negative for padding."""
        return gather(self.section.numbers, self.place.rows, PAD)

    def gather(self, field: str, padding: Any) -> npt.NDArray[Any]:
        """A field of the rows in the order of the block."""
        return gather(self.section.rows.table[field], self.place.rows, padding)


def prepare(
    pool: Pool,
    manifest: Manifest,
    contracts: ContractSet,
    base: BaseReward | None,
    block_rows: int | None = None,
) -> Setup:
    """Choose shapes for a pool and refuse what no shape fits.

    Raises:
        InputError: a question has more rollouts than sums are exact for.
    """
    counts = pool.counts
    if counts.max(initial=0) > MAX_ROLLOUTS:
        question = pool.questions.ids[int(counts.argmax())]
        raise InputError(
            [
                Fault(
                    file=", ".join(log.name for log in pool.logs),
                    line=0,
                    field="question_id",
                    code="too_many_rollouts",
                    expected=f"at most {MAX_ROLLOUTS:,} rollouts of one question",
                    got=f"{counts.max():,} of question {question!r}",
                    remedy="keep a sample of that question's trajectories",
                )
            ]
        )
    support = int(pool.questions.support.lengths[counts > 0].max(initial=1))
    widths = Widths(
        retrieved=bucket(pool.longest.retrieved, RETRIEVED_WIDTHS),
        # gold_stress cites the whole support.
        citations=bucket(max(pool.longest.citations, support), CITATION_WIDTHS),
        support=bucket(support, SUPPORT_WIDTHS),
    )
    sizes, questions = np.unique(counts[counts > 0], return_counts=True)
    padded = sum(
        power_of_two(size) * number
        for size, number in zip(sizes.tolist(), questions.tolist(), strict=True)
    )
    return Setup(
        pool=pool,
        manifest=manifest,
        contracts=contracts,
        base=base,
        widths=widths,
        block_rows=block_rows or _block_rows(padded, widths, manifest, len(contracts.names)),
    )


def _block_rows(padded: int, widths: Widths, manifest: Manifest, contracts: int) -> int:
    """Rows of a block for so many padded trajectories of these widths."""
    generators, lattice = manifest.generators, manifest.lattice
    edits = max(generators.primary_k, *generators.budgets, widths.support)
    scaled = len(lattice.scales) * 2 ** len(lattice.detectors)
    numbers = max(edits * contracts, generators.primary_k * scaled, widths.retrieved)
    fitting = [rows for rows in BLOCK_ROWS if rows * numbers <= BLOCK_NUMBERS]
    largest = max(fitting, default=BLOCK_ROWS[0])
    devices = jax.local_device_count()
    share = min(bucket(-(-padded // devices), BLOCK_ROWS), largest)
    return share * devices


def spread(arrays: Tree, rows: int) -> Tree:
    """Arrays of a block on the local devices, its trajectories split evenly among them.

    Args:
        arrays: any tree of arrays with trajectories along the last axis.
        rows: how many; what does not divide by the number of devices goes to one of them.

    Returns:
        The same tree; every program that takes it runs on all devices, since sums are of integers
        with the same figures.
    """
    devices = np.array(jax.local_devices())
    if len(devices) == 1 or rows % len(devices):
        return jax.device_put(arrays)
    mesh = Mesh(devices, ("trajectories",))

    def placed(leaf: jax.Array) -> jax.Array:
        axes = [None] * (leaf.ndim - 1)
        return jax.device_put(leaf, NamedSharding(mesh, PartitionSpec(*axes, "trajectories")))

    return jax.tree.map(placed, arrays)


def stage(setup: Setup, section: Section) -> Iterator[Block]:
    """The blocks of a section, one after the other."""
    for place in group_blocks(section.rows.question, setup.block_rows):
        yield stage_block(setup, section, place)


def stage_block(setup: Setup, section: Section, place: GroupBlock) -> Block:
    """Describe and measure the trajectories of one block."""
    rows, questions = section.rows, setup.pool.questions
    size = len(place.rows)
    visible = spread(visible_block(rows, place.rows, setup.widths), size)
    oracle = spread(oracle_block(rows, questions, place.rows, setup.widths), size)
    state = programs.describe(visible, setup.passages)
    originals = programs.measure_originals(state, oracle, setup.rules)
    block = Block(setup, section, place, visible, oracle, state, originals, None)
    if setup.base is None:
        return block
    return replace(block, base=setup.base.originals(block.numbers, originals))
