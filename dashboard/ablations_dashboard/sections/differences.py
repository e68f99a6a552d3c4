"""The differences from the baseline as a forest plot."""

import streamlit as st

from ablations.findings.results import Results
from ablations.report.document import DIFFERENCES_LEGEND
from ablations.report.forest import forest_panels, left_out_note
from ablations.report.verdicts import verdicts_figure
from ablations_dashboard.selection.variants import Shown
from ablations_dashboard.text.escape import in_markdown
from ablations_dashboard.widgets.figure import show_figure

MOST_FOREST_ROWS = 24
"""Limit on the rows of a readable forest plot; beyond it only the variants in colour have one."""


def show_differences(results: Results, shown: Shown) -> None:
    """Show by how much each variant differs from the baseline in level, ceiling and compute."""
    if results.comparison is None or len(results.comparison.variants) < 2:
        return
    plan = results.plan
    st.subheader(f"Differences from {in_markdown(plan.reference)}", anchor="differences")
    names = shown.names if len(shown.names) <= MOST_FOREST_ROWS else shown.focus[:MOST_FOREST_ROWS]
    if forest_panels(results, shown=names):
        show_figure(
            verdicts_figure(results, shown=names),
            narrow=verdicts_figure(results, shown=names, stacked=True),
            key=f"forest {plan.sweep}",
            name=f"{plan.sweep}-differences",
            alt="Each variant's difference from the baseline in level, ceiling and compute, with intervals",
        )
    more = len(shown.names) - len(names)
    elsewhere = f"The table has the {more} other variants." if more else ""
    left_out = left_out_note(results, shown=names)
    st.caption(in_markdown(" ".join(filter(None, (DIFFERENCES_LEGEND, left_out, elsewhere)))))
