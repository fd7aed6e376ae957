"""The report as one self-contained HTML page, drawn from `report.json` alone."""

from collections.abc import Mapping
from typing import Any

from herald_jax.audit import report_figures as figures
from herald_jax.audit import report_tables as tables
from herald_jax.audit.report_attacks import attacks, by_operator
from herald_jax.audit.report_cells import cell_at
from herald_jax.audit.report_limits import limits
from herald_jax.audit.report_names import (
    BASE,
    FULL,
    OPERATORS,
    Lattice,
    contracts,
    operator_order,
    words,
)
from herald_jax.audit.report_repairs import certificates
from herald_jax.audit.report_scope import Scope
from herald_jax.audit.verdict import verdict
from herald_jax.pages.forest import delta_bar
from herald_jax.pages.templates import render
from herald_jax.types import SYMBOLS

# What a page shows at most; a large lattice has many thousands.
SHOWN_ATTACKS = 300
SHOWN_STEPS = 100
SHOWN_HISTOGRAMS = 60


def render_html(report: Mapping[str, Any]) -> str:
    """The page of a report: no network, no scripts, every word of the user's escaped.

    Args:
        report: the contents of `report.json` (SPEC section 12); keys beyond those are optional.
    """
    return render("report.html.j2", **context(report), delta_bar=delta_bar)


def context(report: Mapping[str, Any]) -> dict[str, Any]:
    """What both templates, HTML and Markdown, are filled with."""
    lattice, scope, found = Lattice.of(report), Scope.of(report), verdict(report)
    shown = figures.shown_contracts(report, lattice)
    cancellations, looked_at = tables.cancellations(report)
    more_histograms, left_out = figures.all_histogram_panels(report, lattice, SHOWN_HISTOGRAMS)
    worst = attacks(report, lattice, scope.tie_tolerance, shown, SHOWN_ATTACKS)
    primary = report.get("primary") or {}
    return {
        "report": report,
        "verdict": found,
        "scope": scope,
        "lattice": lattice,
        "words": words,
        "symbols": SYMBOLS,
        "edits": OPERATORS,
        "base": BASE,
        "full": FULL,
        "shown": shown,
        "cell_at": cell_at,
        "selections": tables.SELECTIONS,
        "primary_operators": operator_order(primary),
        "operators": operator_order(report.get("operators") or {}),
        "lattice_picture": figures.lattice_picture(report, lattice),
        "heat_legend": figures.heat_legend(),
        "lattice_rows": tables.lattice_rows(report, lattice),
        "histograms": figures.histogram_panels(report, shown),
        "more_histograms": more_histograms,
        "histograms_left_out": left_out,
        "budget_panels": figures.budget_panels(report, shown),
        "scale_panels": figures.scale_panels(report, lattice),
        "forests": figures.forests(report.get("models"), shown),
        "cancellations": cancellations[:SHOWN_STEPS],
        "cancellations_total": len(cancellations),
        "cancellation_steps": looked_at,
        "attacks": by_operator(worst),
        "attacks_shown": len(worst),
        "attacks_total": len(report.get("worst") or []),
        "shared": lambda table: tables.shared(table, lattice),
        "cell_table": lambda name, table: tables.cell_table(name, table, lattice),
        "primary_tables": tables.primary_tables(report, lattice),
        "budget_tables": tables.budget_tables(report, lattice),
        "pool_tables": tables.cell_tables(report.get("pools"), lattice),
        "model_tables": tables.cell_tables(report.get("models"), lattice),
        "by_pool_tables": tables.cell_tables(report.get("by_pool"), lattice),
        "certificates": certificates(report),
        "limits": limits(scope),
        "contracts": lattice.ordered(contracts(report)),
        "natural_splits": tables.natural_splits(report),
        "signals": tables.signals(report),
        "settings": list(tables.flatten(report.get("manifest") or {})),
    }
