"""Pictures of differences from the baseline: forest plots, the plane of ceiling and efficiency, the linearised view."""

import streamlit as st

from ablations.errors import AblationsError
from ablations.findings.paper_comparison import paper_comparison
from ablations.findings.results import Results
from ablations.report.linearised import LINEARISED_LEGEND, linearised_figure, linearised_note
from ablations.report.plane import PLANE_LEGEND, is_placed, plane_figure
from ablations.report.verdicts import verdicts_figure
from ablations_dashboard.selection.url import switch
from ablations_dashboard.selection.variants import Shown, only
from ablations_dashboard.text.escape import in_markdown
from ablations_dashboard.widgets.figure import show_figure

MOST_FOREST_ROWS = 24
"""Limit on the rows of a readable forest plot."""


def show_differences(results: Results, shown: Shown) -> None:
    """Show which variants move the ceiling, which only change the way to it, and the uncertainty of both."""
    if results.comparison is None or len(results.comparison.variants) < 2:
        return
    plan = results.plan
    st.header(f"Differences from {in_markdown(plan.reference)}", anchor="differences")
    few = only(results, shown.focus[:MOST_FOREST_ROWS])
    show_figure(
        verdicts_figure(few),
        key=f"forest {plan.sweep}",
        name=f"{plan.sweep}-differences",
        alt="Each variant's difference from the baseline in level, ceiling and compute, with intervals",
    )
    st.caption(
        "Points are estimates, bars 95 % intervals; an interval that crosses the dotted line holds no difference."
    )
    st.subheader("Ceiling and efficiency", anchor="plane")
    show_figure(
        plane_figure(only(results, shown.names), focus=shown.focus),
        key=f"plane {plan.sweep}",
        name=f"{plan.sweep}-plane",
        alt="Difference of ceilings against ratio of compute, with intervals",
    )
    missing = (
        [line.name for line in few.comparison.variants if line.name != plan.reference and not is_placed(line)]
        if few.comparison
        else []
    )
    left_out = f" Not drawn, as their A has no upper end yet: {', '.join(missing)}." if missing else ""
    st.caption(in_markdown(f"{PLANE_LEGEND}{left_out}"))
    show_linearised(results, shown)


def show_linearised(results: Results, shown: Shown) -> None:
    """Show readings on axes on which eq. 1 is a straight line; on demand, since the paper's grid takes some seconds."""
    if not switch("linearised", "Linearised view (fits the paper's grid)"):
        return
    few = only(results, shown.focus[:MOST_FOREST_ROWS])
    try:
        comparison = paper_comparison(few)
    except AblationsError as error:
        st.info(in_markdown(str(error)))
        return
    show_figure(
        linearised_figure(comparison, few.plan),
        key=f"linearised {few.plan.sweep}",
        name=f"{few.plan.sweep}-linearised",
        alt="Readings on axes on which eq. 1 is a straight line",
    )
    st.caption(in_markdown(f"{LINEARISED_LEGEND} {linearised_note(comparison)}"))
