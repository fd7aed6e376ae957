"""What an audit cannot show, said at the end of every report."""

from herald_jax.audit.report_scope import Scope
from herald_jax.pages.numbers import quantity


def limits(scope: Scope) -> list[str]:
    """The limits of a report as sentences."""
    tried = ", ".join(scope.generators)
    return [
        f"A finite set. Every figure is of {quantity(scope.questions, 'question')} and "
        f"{quantity(scope.rows, 'logged trajectory', 'logged trajectories')}. Zero attackable "
        "questions is an observation with an upper bound, not a proof.",
        f"Only the generators that were tried: {tried}. A better one may find what these did not; "
        "oracle-worst bounds the choice among their candidates, not the candidates themselves.",
        f"A closed corpus. Laundered citations come from {scope.corpus}; passages outside it, and "
        "passages written for the attack, were not tried.",
        "Structured ids. Citations are compared as ids; prose citations, quotations and links are "
        "not read.",
        "No semantic support. Whether a cited passage bears the answer out is not judged: support "
        "is what the gold labels annotate.",
        "Only edits of logged trajectories. A policy trained against the reward may find attacks "
        "that no operator here makes.",
        "What was not measured, listed at the top, is neither zero nor safe.",
    ]
