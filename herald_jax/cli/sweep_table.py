"""The table of a sweep over retrieval credit."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from herald_jax.cli.bench_table import printed
from herald_jax.cli.eval_table import cell


def sweep_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line an arm: held-out figures, EM against the first arm, reversed pairs, coverage."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column("Arm")
    for name in ("Updates", "EM", "EM less first arm", "Citation precision", "Searches"):
        grid.add_column(name, justify="right")
    for name in ("Reversed pairs", "Mean coverage", "Tied groups"):
        grid.add_column(name, justify="right")
    for row in rows:
        figures, credit = row["figures"], row["credit"]
        grid.add_row(
            row["arm"],
            f"{row['updates']:,}",
            cell(figures["em"]),
            cell(row["em_difference"], sign="+"),
            cell(figures["citation_precision"]),
            f"{figures['searches']['mean']:.2f}",
            f"{credit['reversed_pairs']:,} of {credit['unequal_pairs']:,}",
            "not measured" if credit["mean_coverage"] is None else f"{credit['mean_coverage']:.3f}",
            "not measured" if row["tied_groups"] is None else f"{row['tied_groups']:.2f}",
        )
    return printed(grid)
