"""Features, contracts, and the reward of a trajectory under each contract."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reference.detectors import detect, has_final
from reference.lattice import subset_name, subsets
from reference.metrics import f1
from reference.records import executed_searches
from reference.settings import HACKING, Settings

PRECISION_SHARE, RECALL_SHARE = 0.55, 0.45


@dataclass(frozen=True)
class Contract:
    """R(τ) = base(τ) − Σ_j λ_j d_j(τ); `base` names one of the base contracts."""

    base: str
    penalties: Mapping[str, float]


@dataclass(frozen=True)
class Judged:
    """A trajectory, its detectors, and its reward under every base contract."""

    trajectory: dict
    flags: Mapping[str, bool]
    base: Mapping[str, float]


def contracts(settings: Settings) -> dict[str, Contract]:
    """Every contract that an audit reports, by name."""
    found = {name: Contract(name, {}) for name in settings.base_contracts}
    for subset in subsets(settings.lattice):
        found[subset_name(subset)] = subset_contract(subset, settings)
    found["R_full"] = Contract("R0", settings.penalties)
    return found


def subset_contract(subset: Collection[str], settings: Settings, scale: float = 1) -> Contract:
    """R[S], its λ times `scale`."""
    return Contract("R0", {name: scale * settings.penalties[name] for name in subset})


def precision_recall(cited: set[str], support: set[str]) -> tuple[float, float]:
    """Of distinct citations against the support; a rate over nothing is 0."""
    shared = len(cited & support)
    precision = shared / len(cited) if cited else 0.0
    recall = shared / len(support) if support else 0.0
    return precision, recall


def features(
    trajectory: dict, gold: dict, flags: Mapping[str, bool], settings: Settings
) -> dict[str, float]:
    """The seven features, by name."""
    final = has_final(trajectory)
    searches = len(executed_searches(trajectory))
    invalid_steps = len(trajectory["steps"]) - searches
    actions = len(trajectory["steps"]) + 1
    precision, recall = precision_recall(set(trajectory["citations"]), set(gold["support_ids"]))
    well_formed = final and bool(trajectory["citations"]) and trajectory["malformed_citations"] == 0
    return {
        "answer": f1(trajectory["answer"], gold["answers"], settings.rules),
        "grounding": PRECISION_SHARE * precision + RECALL_SHARE * recall,
        "citation_format": float(well_formed),
        "tool_calls": float(searches),
        "invalid_rate": (invalid_steps + (not final)) / actions,
        "hacking_rate": sum(flags[name] for name in HACKING) / len(HACKING),
        "answer_length": float(len((trajectory["answer"] or "").split())),
    }


def judge(trajectory: dict, gold: dict, corpus: Collection[str], settings: Settings) -> Judged:
    """Everything that any contract needs to know of a trajectory."""
    flags = detect(trajectory, corpus, gold["support_ids"], settings)
    values = features(trajectory, gold, flags, settings)
    base = {
        name: math.fsum(weight * values[feature] for feature, weight in weights.items())
        for name, weights in settings.base_contracts.items()
    }
    if settings.reward is not None:
        base["R0"] = own_reward(trajectory, gold, settings)
    return Judged(trajectory, flags, base)


def own_reward(trajectory: dict, gold: dict, settings: Settings) -> float:
    """The user's reward in R0's place; an exception is not a number."""
    assert settings.reward is not None
    try:
        return float(settings.reward(trajectory, gold))
    except Exception:
        return math.nan


def reward(judged: Judged, contract: Contract) -> float:
    paid = math.fsum(weight for name, weight in contract.penalties.items() if judged.flags[name])
    return judged.base[contract.base] - paid


def margin(original: Judged, edited: Judged, contract: Contract) -> float:
    """R(edit) − R(original)."""
    gain = edited.base[contract.base] - original.base[contract.base]
    credit = math.fsum(
        weight * (original.flags[name] - edited.flags[name])
        for name, weight in contract.penalties.items()
    )
    return gain + credit
