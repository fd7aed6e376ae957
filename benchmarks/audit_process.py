"""Where the time of a whole `herald audit` goes, from the start of Python to its end.

The command runs in a fresh process whose parts are clocked from outside: functions of the package
are wrapped, JAX reports its own tracing, lowering and compilation. Every moment counts for the
innermost part that is running in the main thread, so that the parts add up to the whole. The same
command is also run without any of this, by turns, which shows what the clocks cost.

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

It audits the built-in sample, or a folder of logs:

  python benchmarks/audit_process.py
  python benchmarks/audit_process.py herald-sample --rounds 5 --programs 20
  python benchmarks/audit_process.py logs/ --out process.json
"""

import builtins
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from measured import Row, arguments, finish

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
    "load": ("herald_jax.pool.load:load_pool",),
    "boundary": (
        "herald_jax.audit.fields:operator_fields",
        "herald_jax.audit.fields:generator_fields",
        "herald_jax.audit.fields:contract_fields",
        "herald_jax.audit.trials:moved_columns",
    ),
    "candidates": ("herald_jax.search:CorpusIndex.bm25", "herald_jax.search:CorpusIndex.lexical"),
    "blocks": ("herald_jax.audit.section:SectionAudit.run",),
    "bootstrap": ("herald_jax.audit.estimates:bootstrap_intervals",),
    "tables": ("herald_jax.audit.assemble:Assembly.contents",),
    "report": ("herald_jax.cli.reports:write_reports",),
}
JAX_EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "trace",
    "/jax/core/compile/backend_compile_duration": "compile",
}

# Of one cache folder.
AUDITS = ("first", "second")

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
                if threading.current_thread() is threading.main_thread():
                    self.spans.append((start, time.time(), part))

        return run

    def hear(self, event: str, start: float, end: float, **about: Any) -> None:
        """A span that JAX reports."""
        if event in JAX_EVENTS and threading.current_thread() is threading.main_thread():
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
    """Both audits of a cache folder, clocked and not, by turns."""
    clocked: dict[str, list[dict[str, Any]]] = {audit: [] for audit in AUDITS}
    plain: dict[str, list[float]] = {audit: [] for audit in AUDITS}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            for audit in AUDITS:
                clocked[audit].append(clocked_run(pool, one))
                plain[audit].append(plain_run(pool, other))
    return {audit: summary(clocked[audit], plain[audit]) for audit in AUDITS}


def row(audit: str, found: dict[str, Any]) -> Row:
    """How much of an audit is spent before any of this package's loops runs."""
    parts = sorted(found["parts"].items(), key=lambda item: -item[1])
    return Row(
        name=f"{audit} audit of a small pool: start, imports, tracing and compilation",
        seconds=found["seconds_without_clocks"],
        measured=100 * found["start_import_trace_compile"],
        unit="%",
        detail=", ".join(f"{part} {spent:.2f} s" for part, spent in parts if spent >= 0.01)
        + f"; {found['seconds_with_clocks']:.2f} s in all under the clocks",
    )


def programs_in_words(first: dict[str, Any], shown: int) -> str:
    """The programs that take longest to compile."""
    out = [f"{first['programs']} programs compiled by the first audit; the longest:"]
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
    # Here and not above: it loads JAX, which the child is to load under its clocks.
    from machine import machine

    parser = arguments(__doc__)
    parser.add_argument("pool", nargs="?", help="folder of logs; default: the built-in sample")
    parser.add_argument("--rounds", type=int, default=3, help="turns with and without clocks")
    parser.add_argument("--programs", type=int, default=10, help="compiled programs to list")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options.pool or built_in_sample(folder), options.rounds)
    finish(
        options,
        "where the time of a whole audit of a small pool goes",
        before,
        [row(audit, result[audit]) for audit in AUDITS],
        rounds=options.rounds,
        **result,
    )
    print(programs_in_words(result["first"], options.programs))


if __name__ == "__main__":
    main()
