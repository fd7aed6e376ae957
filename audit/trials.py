"""One operator tried on one block: ids on offer, edits, verdicts on pairs, selected margins."""

from dataclasses import dataclass
from functools import cache, cached_property

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from herald_jax.audit.fields import moved_columns
from herald_jax.audit.operators import FAKE, GENERATOR, Operator
from herald_jax.audit.staging import Block, Codes, Floats, Mask
from herald_jax.kernels import programs
from herald_jax.kernels.cancellation import Readmitted, Steps
from herald_jax.kernels.margins import Selected
from herald_jax.kernels.pairs import Rule
from herald_jax.kernels.rewards import Contracts, Moved
from herald_jax.manifest.contracts import ContractSet
from herald_jax.types import DETECTORS, PAD, Labels, Offer

# The code of a made-up id: no passage and no id of any log has it.
FAKE_CODE = np.int32(2**31 - 1)
# Which kind of contract each contract is (`ContractSet.told_apart`): int [J].
Kinds = npt.NDArray[np.intp]
# Offers are padded to one of these, so that edits come in few shapes.
OFFER_WIDTHS = (8, 16)


@dataclass(frozen=True)
class Trial:
    """An operator's edits of a block and what they do under every contract.

    Attributes:
        block: trajectories.
        operator: the edit.
        offered: int32 [K, B].
        moved: [E, B].
        base_margin: float32 [E, B].
        verdicts: which edits count.
        selected: [D, B], under the contracts that this operator tells apart.
        alike: int [J], which of these stands for each contract of the audit.
    """

    block: Block
    operator: Operator
    offered: jax.Array
    moved: Moved
    base_margin: jax.Array | None
    verdicts: programs.Verdicts
    selected: Selected
    alike: Kinds

    @cached_property
    def margins(self) -> jax.Array:
        """Margins of all pairs, which the sums of a table do not need: float32 [J, E, B]."""
        return programs.pair_margins(
            self.block.originals, self.moved, self.block.setup.device_contracts, self.base_margin
        )

    @cached_property
    def isolated(self) -> Mask:
        """Rows with at least one isolated pair: bool [B]."""
        return self.block.real & (np.asarray(self.verdicts.isolated_edits) > 0)

    @cached_property
    def worst(self) -> Floats:
        """Oracle-worst margins, -inf where none counts: float32 [D, B]."""
        return np.asarray(self.selected.oracle_worst)

    def selected_under(self, contracts: ContractSet) -> tuple[Selected, Kinds]:
        """`selected` and `alike` of the same pairs under other contracts."""
        return _select(contracts, self.block, self.moved, self.base_margin, self.verdicts)

    def written_out(self) -> programs.Edited:
        """The edited trajectories themselves, which no figure needs."""
        return programs.apply(
            self.block.state,
            *described(self.block, self.offered),
            edit=self.operator.edit,
            each=self.operator.each,
        )

    def readmitted(self, rows: Mask, steps: Steps) -> Readmitted:
        """Pairs of some rows that a further penalty admits again."""
        setup = self.block.setup
        return programs.count_readmitted(
            self.margins,
            np.asarray(self.verdicts.isolated) & rows,
            self.block.originals,
            self.moved,
            steps,
            np.float32(setup.tie_tolerance),
        )


@cache
def operator_rule(operator: Operator, min_searches: int) -> Rule:
    """The operator's target and watched flags, as the kernels take them."""
    watched = operator.watched(min_searches)
    return Rule(
        target=jnp.asarray(np.array([name == operator.target for name in DETECTORS])),
        watched=jnp.asarray(np.array([name in watched for name in DETECTORS])),
    )


def offers(block: Block, operator: Operator, candidates: Codes | None) -> jax.Array:
    """Ids on offer to each trajectory: int32 [K, B].

    Args:
        block: trajectories.
        operator: decides where the ids come from.
        candidates: int32 [K, B] proposals of a generator, for an operator that takes them.
    """
    rows = len(block.place.rows)
    if callable(operator.offers):
        setup = block.setup
        width = setup.widths.citations
        if operator.each:
            width = max(setup.widths.support, OFFER_WIDTHS[0])
        return programs.oracle_offers(
            block.visible, block.oracle, setup.passages, offers=operator.offers, width=width
        )
    if operator.offers == GENERATOR:
        if candidates is None:
            raise ValueError(f"operator {operator.name!r} needs candidates")
        return jnp.asarray(candidates)
    if operator.offers == FAKE:
        return jnp.asarray(np.full((1, rows), FAKE_CODE, np.int32))
    return jnp.asarray(np.full((1, rows), PAD, np.int32))


def attempt(block: Block, operator: Operator, candidates: Codes | None = None) -> Trial:
    """Try an operator on a block.

    Args:
        block: trajectories.
        operator: the edit.
        candidates: int32 [K, B] passages that a generator proposes, PAD where fewer.

    Returns:
        The `Trial`.
    """
    setup = block.setup
    offered = offers(block, operator, candidates)
    made, moved = programs.measure_edits(
        block.state,
        *described(block, offered),
        setup.rules,
        edit=operator.edit,
        each=operator.each,
        columns=moved_columns(operator, setup.widths),
    )
    base_margin = None
    if setup.base is not None and block.base is not None:
        after = setup.base.edits(operator, block.numbers, np.asarray(offered), moved)
        base_margin = jnp.asarray((after - block.base[None]).astype(np.float32))
    rule = operator_rule(operator, setup.manifest.detectors.min_searches)
    verdicts = programs.judge(made, block.originals, moved, rule)
    selected, alike = _select(setup.contracts, block, moved, base_margin, verdicts)
    return Trial(block, operator, offered, moved, base_margin, verdicts, selected, alike)


def _select(
    contracts: ContractSet,
    block: Block,
    moved: Moved,
    base_margin: jax.Array | None,
    verdicts: programs.Verdicts,
) -> tuple[Selected, Kinds]:
    """What both selectors take under every kind of contract, and the kind of each contract."""
    device, alike = _told_apart(contracts, tuple(sorted(moved)), base_margin is not None)
    return programs.pick(block.originals, moved, device, base_margin, verdicts.isolated), alike


@cache
def _told_apart(
    contracts: ContractSet, columns: tuple[str, ...], external_base: bool
) -> tuple[Contracts, Kinds]:
    kinds, alike = contracts.told_apart(columns, external_base)
    return kinds.device(external_base), alike


def described(block: Block, offered: jax.Array) -> tuple[Offer, Labels]:
    """What is known of the ids on offer to a block, and what gold says."""
    return programs.describe_offer(offered, block.visible, block.oracle, block.setup.passages)
