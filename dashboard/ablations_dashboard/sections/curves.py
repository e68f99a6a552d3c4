"""The curves of one or several sweeps: fits with their bands, readings and asymptotes."""

import streamlit as st

from ablations.findings.results import Results
from ablations.report.curves import CURVES_LEGEND, POINTS_LEGEND, Along, Counted, along_rows, curves_figures
from ablations.report.series import curve_series
from ablations.report.thinning import thinned_note
from ablations.report.words.task import task_of_sweep
from ablations_dashboard.selection.url import pick, switch
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
    """Draw the chosen variants in colour and the others in grey, with the choices below the figure."""
    plan, place = results.plan, st.container()
    first, second, third = st.columns([2, 1, 1], vertical_alignment="bottom")
    with first:
        against = pick(
            "against",
            "x axis",
            list(CURVE_AXES),
            default="compute",
            format_func=lambda name: CURVE_AXES[name] or plan.hours_name,
        )
    with second:
        log = switch("log", "Logarithmic")
    with third:
        with_points = switch("points", "Evaluations")
    counted = counted_along(results, shown, against)
    series = curve_series(results, shown=shown.focus, others=shown.others, log_compute=log)
    wide, narrow = curves_figures(results, series, counted=counted, with_points=with_points)
    with place:
        show_figure(
            wide,
            narrow=narrow,
            key=f"curves {plan.sweep} {against} {log}",
            name=f"{plan.sweep}-curves",
            alt="Pass rate against compute of each variant; the table below has the numbers",
        )
    unread = [name for name in shown.focus if all(run.curve is None for run in results.variant(name).runs)]
    if unread:
        st.caption(in_markdown(f"No evaluation yet: {', '.join(unread)}."))
    if counted is not None and (left_out := [name for name in shown.focus if name not in counted.along]):
        st.caption(in_markdown(f"No {counted.name} are logged of {', '.join(left_out)}."))
    task = task_of_sweep(results.sweep)
    parts = (CURVES_LEGEND, POINTS_LEGEND if with_points else "", task, thinned_note(results, shown.focus))
    st.caption(in_markdown(" ".join(filter(None, parts))))


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
