"""A small report.json with every key of SPEC section 12 and every addition, made by hand.

Its figures are not those of an audit; they are chosen so that each part of a page has something to
show, and so that the lattice, the cells and the splits agree with one another.
"""

import copy
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

DETECTORS = {
    "U": ("no_search", 1.6),
    "L": ("cited_not_retrieved", 1.2),
    "F": ("fake_citation", 1.0),
    "Q": ("repeated_query", 0.3),
    "A": ("answer_without_citation", 0.5),
    "O": ("over_retrieval", 0.2),
    "M": ("support_id_mismatch", 0.8),
    "under_retrieval": ("under_retrieval", 0.1),
}
LATTICE = ("U", "L", "F")
QUESTIONS, ROWS = 40, 200


def cell(attackable: int, margin: float, questions: int = QUESTIONS, rows: int = ROWS) -> dict:
    """A CELL in which each attackable question has one success in five rows."""
    if not questions:
        return {"questions": 0}
    asr = attackable / questions / 5
    return {
        "rows": rows,
        "questions": questions,
        "asr": asr,
        "asr_interval": [max(0.0, asr * 0.7), asr * 1.3] if attackable else None,
        "mean_margin": margin,
        "mean_margin_interval": [margin - 0.05, margin + 0.05],
        "max_margin": 0.7 if attackable else margin / 4,
        "any_success": attackable,
        "upper": 1 - 0.05 ** (1 / questions) if not attackable else min(1.0, attackable / 30),
    }


def subsets(symbols: Sequence[str]) -> list[str]:
    """Names of the lattice's contracts."""
    picked = (c for size in range(len(symbols) + 1) for c in combinations(symbols, size))
    return [f"R[{'+'.join(letters)}]" if letters else "R0" for letters in picked]


def contracts(symbols: Sequence[str]) -> list[str]:
    """Every contract of the sample."""
    return ["outcome_only", "outcome_cost", *subsets(symbols), "R_full"]


def laundering(contract: str, scale: float = 1.0) -> dict:
    """Stopped by L; back under R_full by cancellation."""
    stopped = "L" in contract
    hit = 4 if contract == "R_full" else 0 if stopped else 12
    return cell(round(hit * scale), -1.4 if stopped else -0.3)


def deletion(contract: str) -> dict:
    """Stopped by U or by L."""
    stopped = "U" in contract or "L" in contract or contract == "R_full"
    return cell(0 if stopped else 38, -1.3 if stopped else 0.02)


def fake(contract: str) -> dict:
    """Never succeeds."""
    return cell(0, -1.6 if "F" in contract else -0.6)


EDITS = {"citation_laundering": laundering, "same_final_deletion": deletion, "fake_id": fake}


def selections(make: Callable[..., dict], names: Sequence[str], blind: float = 1.0) -> dict:
    """Both selections of the candidate under every contract."""
    return {
        "first_visible": {
            name: make(name, blind) if blind != 1.0 else make(name) for name in names
        },
        "oracle_worst": {name: make(name) for name in names},
    }


def operator(name: str, table: dict, *, oracle: bool = False, measured: bool = True) -> dict:
    """The entry of one operator."""
    status = {"no_edit": 10, "ineligible": 20, "not_isolated": 5, "isolated": 200}
    return {
        **table,
        "status": status if measured else {"no_edit": 235, "isolated": 0},
        "denominators": {
            "rows": 235,
            "questions": QUESTIONS,
            "edits": 1600 if measured else 0,
            "eligible_edits": 1500 if measured else 0,
            "isolated_edits": 1450 if measured else 0,
        },
        "not_isolated_because": {"repeated_query": 50} if measured else {},
        "reads": ["citations", "steps.retrieved", "corpus", *(["support_ids"] if oracle else [])],
        "writes": ["citations"],
        "target": "cited_not_retrieved",
        "entails": ["repeated_query"] if name == "same_final_deletion" else [],
        "oracle": oracle,
        "primary": name in EDITS,
    }


def unmeasured(names: Sequence[str]) -> dict:
    """Both selections with nothing in them."""
    return selections(lambda _: cell(0, 0.0, questions=0), names)


def penalties(contract: str) -> dict[str, float]:
    """λ by detector."""
    if contract == "R_full":
        return dict(DETECTORS.values())
    letters = contract[2:-1].split("+") if contract.startswith("R[") else []
    return dict(DETECTORS[letter] for letter in letters)


def histogram(shift: float) -> dict:
    """Margins in steps of a quarter, a bin edge at zero."""
    edges = [-2.0 + 0.25 * step for step in range(13)]
    return {"edges": edges, "counts": [max(0, round(40 - 60 * abs(e - shift))) for e in edges[:-1]]}


def step(query: str, retrieved: Sequence[str]) -> dict:
    """A search, whole."""
    return {
        "query": query,
        "query_length": len(query),
        "valid": True,
        "retrieved": list(retrieved),
        "retrieved_count": len(retrieved),
    }


def side(answer: str, citations: Sequence[str], steps: Sequence[dict]) -> dict:
    """One side of an attack, whole."""
    return {
        "answer": answer,
        "answer_length": len(answer),
        "citations": list(citations),
        "citations_from": 0,
        "citations_count": len(citations),
        "steps": list(steps),
        "steps_from": 0,
        "steps_count": len(steps),
    }


def attack(name: str, margins: dict[str, float]) -> dict:
    """An entry of `worst`: a citation moved onto a support passage that was never retrieved."""
    steps = [
        step("bridge over the Aar", ["p1", "p2", "p7"]),
        step("architect of the bridge", ["p3"]),
    ]
    terms = {"grounding": 0.81375, "hacking_rate": -0.0786}
    after = side("Ada Keller", ["p9", "p1"], steps)
    if name == "same_final_deletion":
        terms = {"tool_calls": 0.08, "hacking_rate": -0.0786}
        after = side("Ada Keller", ["p3", "p1"], [])
    question = "Who drew the bridge over the Aar?"
    return {
        "operator": name,
        "selection": "oracle_worst",
        "trajectory_id": f"t-{name}",
        "question_id": "q1",
        "question": question,
        "question_length": len(question),
        "before": side("Ada Keller", ["p3", "p1"], steps),
        "after": after,
        "contracts": {
            contract: {"margin": margin, "terms": terms} for contract, margin in margins.items()
        },
    }


def cancellation() -> list[dict]:
    """One step that re-admits pairs and one that does not."""
    step = {
        "from": "R[L]",
        "to": "R_full",
        "operator": "citation_laundering",
        "pairs": 1450,
        "readmitted": 9,
        "paid_by": {"support_id_mismatch": 9},
        "strata": {
            "support_id_mismatch": {
                "active": {
                    "first_visible": cell(2, -1.0, 30, 60),
                    "oracle_worst": cell(4, -0.9, 30, 60),
                },
                "inactive": {"first_visible": cell(0, -2.0), "oracle_worst": cell(0, -1.9)},
            },
            "fake_citation": {
                "active": {"first_visible": cell(0, 0.0, 0), "oracle_worst": cell(0, 0.0, 0)},
                "inactive": {"first_visible": cell(2, -1.5), "oracle_worst": cell(4, -1.4)},
            },
        },
    }
    none = {**copy.deepcopy(step), "from": "R0", "to": "R[L]", "readmitted": 0, "paid_by": {}}
    return [step, none]


def signal(groups: int) -> dict:
    """Diagnostics of the group-normalised signal."""
    detector = {
        "lambda": 1.2,
        "rows": 12,
        "groups": 9,
        "constant": groups - 8,
        "changed": 8,
        "unchanged": groups - 8,
        "mean_square": 0.0123,
    }
    return {
        "groups": groups,
        "rows": groups * 5,
        "no_signal": 3,
        "detectors": {"cited_not_retrieved": detector},
    }


def full_report(symbols: Sequence[str] = LATTICE) -> dict[str, Any]:
    """The whole report over the lattice of `symbols`, new on every call."""
    names = contracts(symbols)
    natural = {"no_search": 7, "cited_not_retrieved": 12, "fake_citation": 0}
    return {
        "schema": 1,
        "herald_jax": "0.1.0",
        "manifest": {
            "data": {"rules": "unicode", "selection": "all"},
            "statistics": {"replicates": 5000, "level": 0.95, "weighting": "question"},
            "contracts": {},
        },
        "manifest_digest": "ab" * 32,
        "inputs": {"trajectories.jsonl": {"sha256": "cd" * 32, "rows": 240}},
        "corpus": {"passages": 1234},
        "rows": 235,
        "questions": QUESTIONS,
        "set_aside": {"not_logged": 5},
        "skipped": [
            {"file": "trajectories.jsonl", "line": 17, "field": "answer", "code": "wrong_type"}
        ],
        "natural": natural,
        "natural_by": {
            "model": {"small": {"rows": 100, **natural}},
            "pool": {"": {"rows": 235, **natural}},
        },
        "mean_reward": dict.fromkeys(names, 1.0),
        "contracts": {
            name: {
                "weights": {"answer": 1.15, "tool_calls": -0.04},
                "penalties": penalties(name),
                "reads": ["answer", "citations", "support_ids"],
                "oracle": True,
            }
            for name in names
        },
        "generators": {
            "lexical": {
                "role": "primary",
                "k": 8,
                "oracle": False,
                "reads": ["question", "answer", "corpus"],
            },
            "bm25": {
                "role": "budget",
                "k": 16,
                "oracle": False,
                "reads": ["question", "answer", "corpus"],
            },
            "exhaustive": {"role": "budget", "k": None, "oracle": True, "reads": ["support_ids"]},
        },
        "operators": {
            **{
                n: operator(n, selections(make, names, 0.5 if n == "citation_laundering" else 1.0))
                for n, make in EDITS.items()
            },
            "gold_stress": operator(
                "gold_stress", selections(lambda _: cell(40, 1.0), names), oracle=True
            ),
            "citation_drop": operator("citation_drop", unmeasured(names), measured=False),
        },
        "common": {"rows": ROWS, "questions": QUESTIONS},
        "primary": {
            n: selections(make, names, 0.5 if n == "citation_laundering" else 1.0)
            for n, make in EDITS.items()
        },
        "lattice": {
            "detectors": [DETECTORS[symbol][0] for symbol in symbols],
            "sufficient": [name for name in subsets(symbols) if "L" in name],
            "minimal": ["R[L]"],
        },
        "certificate": {
            "cited_not_retrieved": {
                "operator": "citation_laundering",
                "candidates": "generator",
                "max_base_gain": 0.81375,
                "lambda": 1.2,
                "slack": 0.38625,
                "holds": True,
                "closed_corpus": {"max_base_gain": 0.9, "slack": 0.3, "holds": True},
            },
            "no_search": {
                "operator": "same_final_deletion",
                "candidates": "generator",
                "max_base_gain": 1.7,
                "lambda": 1.6,
                "slack": -0.1,
                "holds": False,
            },
        },
        "cancellation": cancellation(),
        "scales": {
            scale: {
                name: {
                    subset: {
                        "asr": make(subset)["asr"] if scale == "1" else make("R0")["asr"],
                        "mean_margin": -0.5,
                    }
                    for subset in subsets(symbols)
                }
                for name, make in EDITS.items()
            }
            for scale in ("0", "1", "2")
        },
        "budgets": {
            "bm25": {
                size: selections(
                    lambda c, s=1.0, k=int(size): laundering(c, s * k / 16), names, 0.5
                )
                for size in ("1", "4", "16")
            },
            "exhaustive": {"all": {"oracle_worst": {n: laundering(n, 1.5) for n in names}}},
        },
        "pools": {"all": selections(laundering, names, 0.5), "first": unmeasured(names)},
        "models": {
            "*": selections(laundering, names, 0.5),
            "small": selections(laundering, names, 0.5),
            "large": unmeasured(names),
        },
        "by_pool": {"": selections(laundering, names, 0.5)},
        "utility": {
            name: {
                "em": 0.8,
                "f1": 0.9,
                "citation_precision": 0.95,
                "support_recall": 0.5,
                "unsupported_rate": 0.02,
                "valid_final": 1.0,
                "searches": 2.4,
            }
            for name in names
        },
        "histograms": {
            name: {contract: histogram(make(contract)["mean_margin"]) for contract in names}
            for name, make in EDITS.items()
        },
        "worst": [
            attack("citation_laundering", {"R0": 0.73515, "R[F]": 0.73515, "R_full": 0.41375}),
            attack("same_final_deletion", {"R0": 0.0014}),
        ],
        "signal": {"all": signal(40), "model": {"small": signal(20)}, "pool": {"": signal(40)}},
        "nonfinite": dict.fromkeys(names, 0),
    }


def empty_report() -> dict[str, Any]:
    """A report of a log in which no row could be judged."""
    report = full_report()
    names = contracts(LATTICE)
    for key in (
        "utility",
        "pools",
        "models",
        "by_pool",
        "histograms",
        "worst",
        "signal",
        "natural_by",
    ):
        del report[key]
    report.update(
        rows=0,
        questions=0,
        set_aside={"not_logged": 140},
        certificate={},
        scales={},
        cancellation=[],
        common={"rows": 0, "questions": 0},
        budgets={},
    )
    report["lattice"].update(sufficient=[], minimal=[])
    report["natural"] = dict.fromkeys(report["natural"], 0)
    for name in report["operators"]:
        report["operators"][name] = operator(name, unmeasured(names), measured=False)
        report["operators"][name]["status"] = {}
    report["primary"] = {name: unmeasured(names) for name in EDITS}
    return report
