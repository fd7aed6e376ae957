"""Where the time of a whole `herald audit` goes, from the start of Python to its end.

The command runs in a fresh process whose parts are clocked from outside: functions of the package
are wrapped, JAX reports its own tracing, lowering and compilation. Every moment counts for the
innermost part that is running, so that the parts add up to the whole. The same command is also run
without any of this, by turns, which shows what the clocks cost.

`herald` keeps compiled programs in the user's cache folder. Every round has a new one: its first
audit compiles everything, its second finds it there.

Parts:
  start      Python itself, and the end of the process
  import     loading modules, wherever the import statement stands
  load       reading and checking the files
  boundary   jaxprs of operators, generators and contracts, for the fields that they read
  trace      JAX tracing programs and lowering them
  compile    XLA compiling them, or fetching what it compiled before
  candidates the index of the corpus and what the generators propose
  blocks     padding blocks, running programs, counting: the audit itself
  bootstrap  intervals
  tables     the rest of estimating: points, bounds, lattice, worst examples
  report     HTML, Markdown and JSON
  other      what is left
"""

import argparse
import builtins
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

PARTS = (
    "start",
    "import",
    "load",
    "boundary",
    "trace",
    "compile",
    "candidates",
    "blocks",
    "bootstrap",
    "tables",
    "report",
    "other",
)
# Time that no change of this package's Python loops could save.
FIXED = ("start", "import", "trace", "compile")

# Where a function is looked up when it is called, and the part that it belongs to.
WRAPPED = {
    "load": ("herald_jax.data.pool:load_pool",),
    "boundary": (
        "herald_jax.audit.fields:operator_fields",
        "herald_jax.audit.fields:generator_fields",
        "herald_jax.audit.fields:contract_fields",
        "herald_jax.audit.trials:moved_columns",
    ),
    "candidates": (
        "herald_jax.audit.run:CorpusIndex",
        "herald_jax.audit.candidates:propose",
    ),
    "blocks": ("herald_jax.audit.staging:stage_block", "herald_jax.audit.run:Audit._add"),
    "bootstrap": ("herald_jax.audit.estimates:bootstrap_intervals",),
    "tables": ("herald_jax.audit.run:Audit._assemble",),
    "report": (
        "herald_jax.audit.page:render_html",
        "herald_jax.audit.markdown:render_markdown",
        "herald_jax.audit.report:Report.to_json",
        "herald_jax.cli.files:write_all",
    ),
}
JAX_EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "trace",
    "/jax/core/compile/backend_compile_duration": "compile",
}

# Of one cache folder.
AUDITS = ("first", "second")

EXAMPLES = """examples:
  python benchmarks/audit_process.py
  python benchmarks/audit_process.py herald-sample --rounds 5 --programs 20
  python benchmarks/audit_process.py logs/ --out process.json
"""

Span = tuple[float, float, str]


class Clocks:
    """Spans of time of the running process, each with its part."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.programs: dict[str, list[float]] = {}

    def wrap(self, place: str, part: str) -> None:
        """Clock a function: `module:name` or `module:Class.name`."""
        module, path = place.split(":")
        owner: Any = importlib.import_module(module)
        *classes, name = path.split(".")
        for one in classes:
            owner = getattr(owner, one)
        setattr(owner, name, self.clocked(getattr(owner, name), part))

    def clocked(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        @wraps(function, updated=())
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.time()
            try:
                return function(*args, **kwargs)
            finally:
                self.spans.append((start, time.time(), part))

        return run

    def hear(self, event: str, start: float, end: float, **about: Any) -> None:
        """A span that JAX reports."""
        if event in JAX_EVENTS:
            self.spans.append((start, end, JAX_EVENTS[event]))
            if JAX_EVENTS[event] == "compile":
                self.programs.setdefault(about.get("fun_name", "?"), []).append(end - start)


def innermost(spans: list[Span], start: float, end: float) -> Counter[str]:
    """Seconds of each part between two moments; a moment belongs to the innermost span.

    Within `boundary` nothing else counts: JAX traces there too, but compiles nothing.
    """
    spent: Counter[str] = Counter()
    open_spans: list[tuple[float, str]] = []  # end and part, outermost first
    now = start

    def advance(to: float) -> None:
        nonlocal now
        while open_spans and open_spans[-1][0] <= to:
            until, part = open_spans.pop()
            spent[part] += max(until - now, 0.0)
            now = max(now, until)
        spent[open_spans[-1][1] if open_spans else "other"] += max(to - now, 0.0)
        now = max(now, to)

    for begin, until, part in sorted(spans, key=lambda span: (span[0], -span[1])):
        advance(begin)
        inside = open_spans[-1][1] if open_spans else ""
        open_spans.append((until, "boundary" if inside == "boundary" else part))
    advance(end)
    return spent


def child(pool: str, out: str, answer: str) -> None:
    """Run the command under clocks in this process and write what they say."""
    start = time.time()
    clocks = Clocks()
    before = builtins.__import__
    builtins.__import__ = clocks.clocked(before, "import")
    from herald_jax.cli import main

    for part, places in WRAPPED.items():
        for place in places:
            imported = time.time()
            importlib.import_module(place.split(":")[0])
            clocks.spans.append((imported, time.time(), "import"))
            clocks.wrap(place, part)
    import jax.monitoring

    jax.monitoring.register_event_time_span_listener(clocks.hear)
    sys.argv = ["herald", "audit", pool, "--out", out, "--quiet"]
    try:
        main()
    except SystemExit as stopped:
        if stopped.code:
            raise
    builtins.__import__ = before
    end = time.time()
    found = {
        "spent": innermost(clocks.spans, start, end),
        "whole": end - start,
        "programs": clocks.programs,
    }
    Path(answer).write_text(json.dumps(found), encoding="utf-8")


def clocked_run(pool: str, cache: str) -> dict[str, Any]:
    """Seconds of each part of one whole process, and of each compiled program."""
    with tempfile.TemporaryDirectory() as folder:
        answer = str(Path(folder) / "clocks.json")
        arguments = [__file__, "--child", pool, str(Path(folder) / "report"), answer]
        wall = wall_seconds(arguments, cache)
        found = json.loads(Path(answer).read_text(encoding="utf-8"))
    parts = {part: found["spent"].get(part, 0.0) for part in PARTS}
    return {
        "wall": wall,
        "parts": parts | {"start": wall - found["whole"]},
        "programs": found["programs"],
    }


def plain_run(pool: str, cache: str) -> float:
    """Seconds of the same command without clocks."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "report")
        arguments = ["-m", "herald_jax.cli", "audit", pool, "--out", out, "--quiet"]
        return wall_seconds(arguments, cache)


def wall_seconds(arguments: list[str], cache: str) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"XDG_CACHE_HOME": cache},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return time.perf_counter() - start


def summary(runs: list[dict[str, Any]], plain: list[float]) -> dict[str, Any]:
    """Medians over rounds."""
    parts = {part: statistics.median(run["parts"][part] for run in runs) for part in PARTS}
    total = sum(parts.values())
    programs = runs[0]["programs"]
    return {
        "seconds_without_clocks": statistics.median(plain),
        "seconds_with_clocks": statistics.median(run["wall"] for run in runs),
        "parts": parts,
        "fractions": {part: spent / total for part, spent in parts.items()},
        "start_import_trace_compile": sum(parts[part] for part in FIXED) / total,
        "programs": sum(map(len, programs.values())),
        "compile_seconds": {
            name: {"times": len(spent), "seconds": sum(spent)}
            for name, spent in sorted(programs.items(), key=lambda item: -sum(item[1]))
        },
    }


def measure(pool: str, rounds: int) -> dict[str, Any]:
    # Here and not above: it loads JAX, which the child is to load under its clocks.
    from machine import machine

    before = machine()
    clocked: dict[str, list[dict[str, Any]]] = {audit: [] for audit in AUDITS}
    plain: dict[str, list[float]] = {audit: [] for audit in AUDITS}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            for audit in AUDITS:
                clocked[audit].append(clocked_run(pool, one))
                plain[audit].append(plain_run(pool, other))
    return {
        "claim": "imports and compilation, not Python loops, dominate a whole audit",
        "machine": before,
        "rounds": rounds,
        **{audit: summary(clocked[audit], plain[audit]) for audit in AUDITS},
    }


def report(result: dict[str, Any], shown: int) -> str:
    first, second = (result[audit] for audit in AUDITS)
    out = [
        f"{'whole process':20}{first['seconds_without_clocks']:8.2f} s"
        f"{second['seconds_without_clocks']:16.2f} s",
        f"{'  under clocks':20}{first['seconds_with_clocks']:8.2f} s"
        f"{second['seconds_with_clocks']:16.2f} s",
    ]
    out.insert(0, f"{'':20}{'first audit':>10}{'second audit':>18}")
    for part in PARTS:
        columns = [
            f"{found['parts'][part]:8.2f} s{found['fractions'][part]:6.0%}"
            for found in (first, second)
        ]
        out.append(f"  {part:18}{'  '.join(columns)}")
    for audit, found in zip(AUDITS, (first, second), strict=True):
        fixed = found["start_import_trace_compile"]
        largest = sorted(found["parts"], key=lambda part, of=found: -of["parts"][part])[:3]
        out.append(
            f"{audit} audit: start, import, trace and compile take {fixed:.0%}, "
            + ("they dominate" if fixed > 0.5 else "they do NOT dominate")
            + f"; largest parts: {', '.join(largest)}"
        )
    out.append(f"{first['programs']} programs compiled by the first audit; the longest:")
    for name, spent in list(first["compile_seconds"].items())[:shown]:
        out.append(f"  {name:40}{spent['times']:4} times{spent['seconds']:8.2f} s")
    return "\n".join(out)


def built_in_sample(folder: str) -> str:
    out = os.path.join(folder, "sample")
    wall_seconds(["-m", "herald_jax.cli", "sample", out, "--quiet"], folder)
    return out


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pool", nargs="?", help="folder of logs; default: the built-in sample")
    parser.add_argument("--rounds", type=int, default=3, help="turns with and without clocks")
    parser.add_argument("--programs", type=int, default=10, help="compiled programs to list")
    parser.add_argument("--out", type=Path, help="JSON file to write; it does not name the pool")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options.pool or built_in_sample(folder), options.rounds)
    print(report(result, options.programs))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
