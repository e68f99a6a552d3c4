"""The plane of ceiling and efficiency, and the linearised view."""

import streamlit as st

from ablations.errors import AblationsError
from ablations.findings.paper_comparison import paper_comparison
from ablations.findings.results import Results
from ablations.report.linearised import LINEARISED_LEGEND, linearised_figure, linearised_note
from ablations.report.plane import PLANE_LEGEND, is_placed, plane_figure
from ablations_dashboard.selection.variants import Shown, only
from ablations_dashboard.text.escape import in_markdown, with_code
from ablations_dashboard.widgets.figure import show_figure

MOST_LINEARISED = 24
"""Limit on the variants of the linearised view."""


def show_plane(results: Results, shown: Shown) -> None:
    """Show which variants move the ceiling, which only change the way to it, and the uncertainty of both."""
    plan = results.plan
    lines = [one for one in results.comparison.variants if one.name != plan.reference] if results.comparison else []
    missing = [one.name for one in lines if one.name in shown.focus and not is_placed(one)]
    left_out = f" Not drawn, as their A has no upper end yet: {', '.join(missing)}." if missing else ""
    if any(is_placed(one) for one in lines):
        show_figure(
            plane_figure(only(results, shown.names), focus=shown.focus),
            key=f"plane {plan.sweep}",
            name=f"{plan.sweep}-plane",
            alt="Difference of ceilings against ratio of compute, with intervals",
        )
    st.caption(in_markdown(f"{PLANE_LEGEND}{left_out}"))


def show_linearised(results: Results, shown: Shown) -> None:
    """Show readings on axes on which eq. 1 is a straight line; the paper's grid takes some seconds."""
    few = only(results, shown.focus[:MOST_LINEARISED])
    try:
        comparison = paper_comparison(few)
    except AblationsError as error:
        st.info(with_code(str(error)))
        return
    show_figure(
        linearised_figure(comparison, few.plan, shown.focus),
        key=f"linearised {few.plan.sweep}",
        name=f"{few.plan.sweep}-linearised",
        alt="Evaluations on axes on which eq. 1 is a straight line",
    )
    st.caption(in_markdown(f"{LINEARISED_LEGEND} {linearised_note(comparison)}"))
