"""Results of benchmarks with every kind of row, made by hand."""

from typing import Any


def row(name: str, **fields: Any) -> dict[str, Any]:
    """A row as benchmarks write it."""
    return {
        "name": name,
        "against": "",
        "ratio": None,
        "unit": "x",
        "goal": None,
        "at_most": False,
        "met": None,
        "seconds": 2.0,
        "peer_seconds": None,
        "detail": "by turns",
    } | fields


def benchmark(name: str, *rows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """One benchmark of a run."""
    return {
        "name": name,
        "about": f"About {name}.",
        "status": "ok",
        "seconds": 12.0,
        "peak_bytes": 700_000_000,
        "load_before": [0.1, 0.2, 0.3],
        "rows": list(rows),
        "more": {},
    } | fields


def results(*benchmarks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A run."""
    return {
        "schema": 1,
        "kind": "herald-jax benchmarks",
        "herald_jax": "0.1.0",
        "commit": "abc1234",
        "begun": "2026-01-02T03:04:05+00:00",
        "quick": False,
        "complete": True,
        "machine": {
            "cpu": "A processor",
            "cores": 4,
            "usable_cores": 2,
            "memory_bytes": 16_000_000_000,
            "load_before": [0.1, 0.2, 0.3],
            "backend": "cpu",
            "devices": "1 x cpu",
            "jax": "0.10",
            "numpy": "2.4",
            "scipy": "1.17",
            "python": "3.11",
        },
        "read_bandwidth": 20e9,
        "benchmarks": list(benchmarks),
    } | fields


POINTS = [
    {"rows": 10_000, "questions": 1250, "seconds": 3.1, "peak_bytes": 5.2e8},
    {"rows": 1_000_000, "questions": 125_000, "seconds": 14.2, "peak_bytes": 1.04e9},
]


def sample() -> dict[str, Any]:
    """A run in which one goal is met, one missed, one has no number, and a benchmark failed."""
    return results(
        benchmark(
            "kernels",
            row("kernels", against="Python", ratio=400.0, goal=350, met=True, peer_seconds=800.0),
            row("kernels", against="NumPy", ratio=5.999, goal=6, met=False, peer_seconds=11.998),
            row("share", ratio=9.96, unit="%", goal=10, met=False),
            row("slower", against="NumPy", ratio=0.25, peer_seconds=0.5),
        ),
        benchmark(
            "growth",
            row("memory", ratio=2.004, unit="GB", goal=2, at_most=True, met=False),
            row("encoded", seconds=0.0, met=False, detail="failed: no such file"),
            more={"points": POINTS},
        ),
        benchmark("bm25", status="failed", failure="Traceback\nImportError: no rank_bm25"),
    )
