"""The curves of one or several sweeps: readings, fits, forecasts and asymptotes."""

import streamlit as st

from ablations.findings.results import Results
from ablations.report.curves import SCREEN_LEGEND, Along, Counted, along_rows, curves_figure
from ablations.report.thinning import thinned_note
from ablations_dashboard.selection.url import pick, pick_several, switch
from ablations_dashboard.selection.variants import Shown
from ablations_dashboard.text.escape import in_markdown
from ablations_dashboard.widgets.figure import show_figure

CURVE_AXES = {
    "compute": "",
    "flops": "FLOPs",
    "tokens": "training tokens",
    "step": "optimiser steps",
    "wall_s": "seconds",
}
"""Counters for the horizontal axis, by the URL's word."""


def show_curves(results: Results, shown: Shown) -> None:
    """Draw the chosen variants in colour and the others in grey."""
    plan = results.plan
    st.header("Curves", anchor="curves")
    first, second, third = st.columns([2, 1, 3])
    with first:
        against = pick(
            "against",
            "Against",
            list(CURVE_AXES),
            default="compute",
            format_func=lambda name: CURVE_AXES[name] or plan.hours_name,
        )
    with second:
        log = switch("log", "Logarithmic")
    with third:
        wanted = pick_several("band", "Uncertainty of", shown.focus, scope=plan.sweep)
    counted = counted_along(results, shown, against)
    banded = wanted or [name for name in shown.focus if name == plan.reference]
    figure = curves_figure(
        results, shown=shown.focus, others=shown.others, banded=banded, log_compute=log, counted=counted
    )
    show_figure(
        figure,
        key=f"curves {plan.sweep} {against} {log}",
        name=f"{plan.sweep}-curves",
        alt="Pass rate against compute of each variant; the table above has the numbers",
    )
    if counted is not None and (left_out := [name for name in shown.focus if name not in counted.along]):
        st.caption(in_markdown(f"No {counted.name} are logged of {', '.join(left_out)}."))
    st.caption(f"{SCREEN_LEGEND} {thinned_note(results, shown.focus)}")


def counted_along(results: Results, shown: Shown, against: str) -> Counted | None:
    """A counter to replace compute, from the first seed of each variant whose log has it."""
    if against == "compute":
        return None
    found: dict[str, Along] = {}
    for name in shown.names:
        counts = (run.counts for run in results.variant(name).runs)
        has = next((one for one in counts if against in one and one[against].size > 1), None)
        if has is not None:
            found[name] = along_rows(has["compute_gpu_hours"], has[against])
    return Counted(title=CURVE_AXES[against], name=CURVE_AXES[against], along=found)
