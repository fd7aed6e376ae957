"""Pools as lists of dicts: reading well-formed files, defaults, what is set aside."""

import json
from collections import Counter
from pathlib import Path

from reference.metrics import gold_list
from reference.text import is_blank

Pool = tuple[list[dict], list[dict], list[dict]]


def load_pool(folder: Path) -> Pool:
    """Trajectories, passages and oracle rows of a folder whose files hold no fault."""
    return (
        read_lines(folder / "trajectories.jsonl"),
        read_lines(folder / "corpus.jsonl"),
        read_lines(folder / "oracle.jsonl"),
    )


def read_lines(path: Path) -> list[dict]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def as_id(value: str | int) -> str:
    """An id is its string; an integer is its exact decimal string."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError(f"not an id: {value!r}")


def as_ids(values: list | None) -> list[str] | None:
    return None if values is None else [as_id(value) for value in values]


def complete_trajectory(record: dict, assume_no_citations: bool = False) -> dict:
    """A trajectory with every optional field in place."""
    citations = as_ids(record.get("citations"))
    if citations is None and assume_no_citations:
        citations = []
    return {
        "trajectory_id": as_id(record["trajectory_id"]),
        "question_id": as_id(record["question_id"]),
        "question": record["question"],
        "steps": [
            {
                "query": step["query"],
                "retrieved": as_ids(step.get("retrieved")),
                "valid": step.get("valid", True),
            }
            for step in record["steps"]
        ],
        "answer": record["answer"],
        "citations": citations,
        "model": record.get("model", ""),
        "pool": record.get("pool", ""),
        "rollout": record.get("rollout", 0),
        "selected": record.get("selected", False),
        "malformed_citations": record.get("malformed_citations", 0),
        "candidates": as_ids(record.get("candidates")) or [],
    }


def complete_oracle(record: dict) -> dict:
    """An oracle row; `support_ids` without repeats, in the order of the file."""
    return {
        "question_id": as_id(record["question_id"]),
        "answers": gold_list(record["answers"]),
        "support_ids": list(dict.fromkeys(as_id(value) for value in record["support_ids"])),
    }


def passage_texts(passages: list[dict]) -> dict[str, str]:
    """passage id -> title, a space, text."""
    return {as_id(p["passage_id"]): p.get("title", "") + " " + p["text"] for p in passages}


def executed_searches(trajectory: dict) -> list[dict]:
    """The steps that were valid and had something in their query."""
    return [step for step in trajectory["steps"] if step["valid"] and not is_blank(step["query"])]


def is_logged(trajectory: dict) -> bool:
    """Whether the citations and the results of every executed search are known."""
    if trajectory["citations"] is None:
        return False
    return all(step["retrieved"] is not None for step in executed_searches(trajectory))


def set_aside(trajectories: list[dict], oracle: dict[str, dict]) -> tuple[list[dict], Counter]:
    """The rows that can be judged, and how many of the others there are by reason."""
    kept, reasons = [], Counter()
    for trajectory in trajectories:
        if not is_logged(trajectory):
            reasons["not_logged"] += 1
        elif trajectory["question_id"] not in oracle:
            reasons["no_oracle"] += 1
        else:
            kept.append(trajectory)
    return kept, reasons
