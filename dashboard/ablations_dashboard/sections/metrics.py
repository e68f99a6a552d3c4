"""One training metric of the runs of the chosen variants."""

import pandas as pd
import streamlit as st

from ablations.home.started_sweep import StartedSweep
from ablations.report.colours import Style, styles
from ablations_dashboard.drawings.metrics import Axis, axis_titles, metric_figure
from ablations_dashboard.reading.cache import load_metrics
from ablations_dashboard.selection.url import pick
from ablations_dashboard.selection.variants import Shown
from ablations_dashboard.text.escape import in_code, with_code
from ablations_dashboard.widgets.figure import show_figure

FIRST_METRICS = ("entropy", "reward_mean", "mismatch", "staleness_mean", "generator_idle", "trainer_idle")
"""Metrics at the head of the list."""
SMOOTHED = ("1", "5", "10", "25", "50")


def show_metrics(sweep: StartedSweep, shown: Shown) -> None:
    """Show a metric against compute, steps or time."""
    plan, runs = sweep.plan, drawn_runs(sweep, shown)
    if not runs:
        command = f"platform status {sweep.name} --watch {sweep.home.option}"
        st.info(f"No optimiser step yet. {in_code(command)} shows when the first one is done.")
        return
    titles: dict[str, str] = {**axis_titles(plan.compute_name)}
    names = {name for rows, _ in runs.values() for name in rows.columns} - set(titles)
    ordered = [name for name in FIRST_METRICS if name in names]
    ordered += sorted(names - set(ordered))
    left, middle, right = st.columns(3)
    with left:
        metric = pick("metric", "Metric", ordered, default=ordered[0])
    with middle:
        axis: Axis = pick(
            "metric_axis", "x axis of the metric", list(titles), default="compute_gpu_hours", format_func=titles.get
        )  # pyright: ignore[reportAssignmentType]
    with right:
        smoothed = pick("smoothed", "Smoothing", SMOOTHED, default="10", widget=st.select_slider)
    figure = metric_figure(metric, runs, axis=axis, smoothed=int(smoothed), compute_name=plan.compute_name)
    key = f"metric {plan.sweep} {metric} {axis}"
    show_figure(figure, key=key, name=f"{plan.sweep}-{metric.replace('/', '-')}", alt=f"{metric} of each run")


def drawn_runs(sweep: StartedSweep, shown: Shown) -> dict[str, tuple[pd.DataFrame, Style]]:
    """Optimiser steps and style of every run in focus that has any, by label."""
    look, runs = styles(sweep.plan, shown.focus), {}
    for variant in sweep.plan.variants:
        for run in variant.runs if variant.name in shown.focus else ():
            try:
                rows = load_metrics(sweep.home, run.id)
            except ValueError as error:
                st.warning(with_code(str(error)))
                continue
            if len(rows):
                label = variant.name if len(variant.runs) == 1 else f"{variant.name}, seed {run.seed}"
                runs[label] = rows, look[variant.name]
    return runs
