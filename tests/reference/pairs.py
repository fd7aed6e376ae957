"""Pairs of original and edit: eligible, isolated, what became of each row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reference.operators import Operator
from reference.rewards import Contract, Judged, margin
from reference.settings import VISIBLE_FLAGS, Settings


@dataclass(frozen=True)
class Outcome:
    """What one operator came to on one trajectory.

    `status` is no_edit, ineligible, not_isolated or isolated; `pairs` are the edits that are
    eligible and isolated, in the order of the candidates.
    """

    original: Judged
    status: str
    pairs: tuple[Judged, ...]

    def margins(self, contract: Contract) -> list[float]:
        """The margin of every pair, in order."""
        return [margin(self.original, edited, contract) for edited in self.pairs]


def is_eligible(original: Judged, edited: Judged, operator: Operator) -> bool:
    return not original.flags[operator.target] and edited.flags[operator.target]


def is_isolated(original: Judged, edited: Judged, operator: Operator, settings: Settings) -> bool:
    excused = {operator.target, *operator.entails}
    twins = {"no_search", "under_retrieval"}
    if operator.target in twins and settings.min_searches == 1:
        excused |= twins
    return all(
        original.flags[name] == edited.flags[name] for name in VISIBLE_FLAGS if name not in excused
    )


def outcome(
    original: Judged, edits: Sequence[Judged], operator: Operator, settings: Settings
) -> Outcome:
    """Sort the edits of one row."""
    eligible = [edited for edited in edits if is_eligible(original, edited, operator)]
    isolated = [e for e in eligible if is_isolated(original, e, operator, settings)]
    if isolated:
        status = "isolated"
    elif eligible:
        status = "not_isolated"
    elif edits:
        status = "ineligible"
    else:
        status = "no_edit"
    return Outcome(original, status, tuple(isolated))


def trajectory_ids(outcomes: Iterable[Outcome]) -> set[str]:
    """The rows on which the operator has at least one pair."""
    return {o.original.trajectory["trajectory_id"] for o in outcomes if o.pairs}
