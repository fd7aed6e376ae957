"""One operator tried on one block: ids on offer, edits, verdicts on pairs, selected margins."""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from herald_jax.audit.contracts import ContractSet
from herald_jax.audit.fields import moved_columns
from herald_jax.audit.operators import FAKE, GENERATOR, Operator
from herald_jax.audit.staging import Block, Codes, Floats, Mask
from herald_jax.kernels import programs
from herald_jax.kernels.cancellation import Readmitted, Steps
from herald_jax.kernels.pairs import Rule
from herald_jax.kernels.rewards import Measured
from herald_jax.types import DETECTORS, PAD, Labels, Offer

# The code of a made-up id: no passage and no id of any log has it.
FAKE_CODE = np.int32(2**31 - 1)
# Offers are padded to one of these, so that edits come in few shapes.
OFFER_WIDTHS = (8, 16)


@dataclass(frozen=True)
class Trial:
    """An operator's edits of a block and what they do under every contract."""

    block: Block
    operator: Operator
    offered: jax.Array  # int32 [K, B]
    made: jax.Array  # bool [E, B]
    edits: Measured  # [E, B]
    base_margin: jax.Array | None  # float32 [E, B]
    columns: tuple[str, ...]  # of `rewards.COLUMNS` that the edits can change
    verdicts: programs.Verdicts
    margins: jax.Array  # float32 [J, E, B] under the contracts of the audit
    scores: programs.Scores

    @cached_property
    def isolated(self) -> Mask:
        """Rows with at least one isolated pair: bool [B]."""
        return self.block.real & (np.asarray(self.verdicts.isolated_edits) > 0)

    @cached_property
    def values(self) -> tuple[jax.Array, jax.Array]:
        """Margins of both selectors under each other, float32 [2J, B], and whether they count."""
        picked = self.scores.selected
        return (
            jnp.concatenate([picked.first_visible, picked.oracle_worst]),
            jnp.concatenate([picked.first_valid, picked.worst_valid]),
        )

    @cached_property
    def worst(self) -> tuple[Floats, Mask, npt.NDArray[np.int32]]:
        """Oracle-worst margins [J, B], whether they count, and the edits that they come from."""
        picked = self.scores.selected
        return (
            np.asarray(picked.oracle_worst),
            np.asarray(picked.worst_valid),
            np.asarray(picked.worst_edit),
        )

    def scored(self, contracts: ContractSet) -> programs.Scores:
        """The same pairs under other contracts."""
        device = contracts.device(external_base=self.block.base is not None)
        values = programs.pair_margins(
            self.block.originals, self.edits, device, self.base_margin, columns=self.columns
        )
        return programs.pick(values, self.verdicts.isolated)

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
            self.verdicts.isolated & rows,
            self.block.originals,
            self.edits,
            steps,
            jnp.float32(setup.tie_tolerance),
        )


def operator_rule(operator: Operator, min_searches: int) -> Rule:
    """The operator's target and watched flags, as the kernels take them."""
    watched = operator.watched(min_searches)
    return Rule(
        target=jnp.array([name == operator.target for name in DETECTORS]),
        watched=jnp.array([name in watched for name in DETECTORS]),
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
        return jnp.full((1, rows), FAKE_CODE, jnp.int32)
    return jnp.full((1, rows), PAD, jnp.int32)


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
    made, edits = programs.measure_edits(
        block.state,
        *described(block, offered),
        setup.rules,
        edit=operator.edit,
        each=operator.each,
    )
    margin = None
    if setup.base is not None and block.base is not None:
        after = setup.base.edits(operator, block.place.rows, np.asarray(offered), edits)
        margin = jnp.asarray(after - block.base[None], jnp.float32)
    rule = operator_rule(operator, setup.manifest.detectors.min_searches)
    verdicts = programs.judge(made, block.originals, edits, rule)
    columns = moved_columns(operator)
    values = programs.pair_margins(
        block.originals, edits, setup.device_contracts, margin, columns=columns
    )
    scores = programs.pick(values, verdicts.isolated)
    return Trial(block, operator, offered, made, edits, margin, columns, verdicts, values, scores)


def described(block: Block, offered: jax.Array) -> tuple[Offer, Labels]:
    """What is known of the ids on offer to a block, and what gold says."""
    return (
        programs.describe_offer(offered, block.visible, block.setup.passages),
        programs.label(block.visible.citations, offered, block.oracle),
    )
