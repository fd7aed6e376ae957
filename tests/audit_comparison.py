"""The engine and the slow reference on the same files, and where their figures differ."""

import json
import math
from pathlib import Path
from typing import Any

from reference.audit import audit
from reference.settings import Settings

from herald_jax.audit import Report, run
from herald_jax.manifest import Manifest, parse_manifest
from herald_jax.pool.load import load_pool

TOLERANCE = 2e-6
# Keys of the reference whose content the report spells in its own way; compared apart.
APART = ("signal", "schema")


def write_pool(folder: Path, pool: tuple[list[dict], list[dict], list[dict]]) -> None:
    for name, records in zip(("trajectories", "corpus", "oracle"), pool, strict=True):
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def manifest_of(settings: Settings) -> Manifest:
    """The manifest that asks the engine for what `settings` asks the reference for."""
    return parse_manifest(
        {
            "penalties": {"under_retrieval": 0.0, **settings.penalties},
            "lattice": {"detectors": list(settings.lattice), "scales": list(settings.scales)},
            "detectors": {
                "min_searches": settings.min_searches,
                "max_searches": settings.max_searches,
            },
            "data": {
                "rules": settings.rules,
                "assume_no_citations": settings.assume_no_citations,
                "selection": settings.selection,
            },
            "statistics": {
                "weighting": settings.weighting,
                "tie_tolerance": settings.tie_tolerance,
                "replicates": 50,
            },
            "generators": {
                "primary": settings.generator,
                "primary_k": settings.candidates,
                "budget_generators": [settings.budget_generator, "exhaustive"],
                "budgets": list(settings.budgets),
                "bm25_variant": settings.bm25_variant,
            },
        },
        "settings",
    )


def both(
    folder: Path, pool: tuple[list[dict], list[dict], list[dict]], settings: Settings
) -> tuple[dict[str, Any], Report]:
    """The reference's figures and the engine's report of one pool."""
    write_pool(folder, pool)
    manifest = manifest_of(settings)
    loaded = load_pool(
        [folder / "trajectories.jsonl"],
        [folder / "corpus.jsonl"],
        [folder / "oracle.jsonl"],
        rules=settings.rules,
        assume_no_citations=settings.assume_no_citations,
    )
    report = run(loaded, manifest)
    if settings.certificate == "exhaustive":
        for entry in report.data["certificate"].values():
            if "closed_corpus" in entry:
                entry.update(candidates="exhaustive", **entry.pop("closed_corpus"))
            else:
                # An edit without a replacement: what was tried is all there is.
                entry.update(candidates="exhaustive")
    return audit(*pool, settings), report


def differences(expected: Any, got: Any, path: str = "") -> list[str]:
    """Every figure of `expected` that `got` lacks or has otherwise."""
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return [f"{path}: expected a table, got {got!r:.80}"]
        found = []
        for key, value in expected.items():
            if path == "" and key in APART:
                continue
            if key not in got:
                if _figures(value):
                    found.append(f"{path}.{key}: missing, expected {value!r:.80}")
                continue
            found += differences(value, got[key], f"{path}.{key}")
        return found
    if isinstance(expected, list) and expected and isinstance(expected[0], dict):
        # A file of expected figures may hold some of the entries only.
        named = {_step(item): item for item in got}
        found = []
        for item in expected:
            if _step(item) not in named:
                found.append(f"{path}[{_step(item)}]: missing")
            else:
                found += differences(item, named[_step(item)], f"{path}[{_step(item)}]")
        return found
    if isinstance(expected, list) and any(isinstance(item, float) for item in expected):
        if not isinstance(got, list) or len(got) != len(expected):
            return [f"{path}: {expected} against {got}"]
        pairs = enumerate(zip(expected, got, strict=True))
        return [found for i, (a, b) in pairs for found in differences(a, b, f"{path}[{i}]")]
    if isinstance(expected, list):
        return [] if sorted(expected) == sorted(got) else [f"{path}: {expected} against {got}"]
    if isinstance(expected, float) or (isinstance(expected, int) and isinstance(got, float)):
        near = isinstance(got, int | float) and math.isclose(
            expected, got, rel_tol=TOLERANCE, abs_tol=TOLERANCE
        )
        return [] if near else [f"{path}: {expected!r} against {got!r}"]
    return [] if expected == got else [f"{path}: {expected!r} against {got!r}"]


def _figures(value: Any) -> bool:
    """Whether there is a figure in a tree; a count of zero may be left out."""
    if isinstance(value, dict | list):
        return any(map(_figures, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, bool) or value != 0


def _step(item: dict[str, Any]) -> tuple[Any, ...]:
    return (item.get("from"), item.get("to"), item.get("operator"))
