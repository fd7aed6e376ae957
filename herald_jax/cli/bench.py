"""`herald bench`: every benchmark of the checkout, one table, JSON and a page of results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from herald_jax.cli.console import say, show

if TYPE_CHECKING:
    from herald_jax.cli.bench_suite import Benchmark

EXAMPLES = """
\b
Examples:
  herald bench --quick
  herald bench --out benchmarks/results/bench.json
  herald bench --only kernels --only bm25
  herald bench --compare laptop.json server.json
\b
Needs the checkout: benchmarks/ is no part of the installed package. Ctrl-C keeps what was
measured. A goal that is missed is no error: the exit code is 0 unless a benchmark failed.
"""

FAILED = 1


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes, the long ones left out: minutes in all.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="JSON; the page goes beside it.")
    ] = Path("bench.json"),
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run this one; repeat for several."),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Say what there is, and run nothing.")
    ] = False,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A.json B.json", help="Show two results side by side, run nothing."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress; the table is still printed.")
    ] = False,
) -> None:
    """Measure this package against plain Python, NumPy and its peers, on this machine.

    Writes bench.json and bench.html, which hold every figure, its goal and the machine.
    """
    from herald_jax.cli.bench_results import read_results
    from herald_jax.cli.bench_table import comparison, table

    if compare is not None:
        show(comparison(*((path.name, read_results(path)) for path in compare)))
        return

    from herald_jax.cli.bench_suite import load_suite

    suite = load_suite()
    if list_:
        show("\n".join(f"{one.name:14} {one.about}" for one in suite))
        return
    chosen = choose(suite, only or [], quick)
    results = measure(chosen, out, quick=quick, quiet=quiet)
    show(table(results))
    show(f"\nResults: {out.resolve()}\n         beside it {out.with_suffix('.html').name}")
    failed = [one["name"] for one in results["benchmarks"] if one["status"] != "ok"]
    if failed:
        say(f"failed: {', '.join(failed)}")
        raise typer.Exit(FAILED)


def choose(suite: list["Benchmark"], only: list[str], quick: bool) -> list["Benchmark"]:
    """What is to run: the memory always, since others are compared with it."""
    names = [one.name for one in suite]
    unknown = [name for name in only if name not in names]
    if unknown:
        raise typer.BadParameter(f"--only {unknown[0]}: there are {', '.join(names)}")
    if only:
        return [one for one in suite if one.name in only or one.always]
    return [one for one in suite if not (quick and one.long)]


def measure(chosen: list["Benchmark"], out: Path, *, quick: bool, quiet: bool) -> dict[str, Any]:
    """Run them, and write what there is after each."""
    from herald_jax.cli.bench_results import Results
    from herald_jax.cli.bench_suite import run_benchmark
    from herald_jax.cli.progress import progress
    from herald_jax.interrupts import at_interrupt

    if out.is_dir():
        raise typer.BadParameter(f"--out {out} is a folder; name a file")
    results = Results(out, quick=quick)
    with at_interrupt(results.say_kept), progress(quiet) as draw:
        for number, one in enumerate(chosen):
            draw(one.name, 0, 0)
            found = run_benchmark(one, quick=quick)
            results.add(found, complete=number + 1 == len(chosen))
            figures = max(len(found["rows"]), 1)
            draw(one.name, figures, figures)
            if found["status"] != "ok":
                say(f"{one.name} failed: {found['failure'].splitlines()[-1]}")
    return results.data
