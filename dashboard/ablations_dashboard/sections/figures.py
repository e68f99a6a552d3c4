"""The figures of one or several sweeps: fits with their bands, readings and asymptotes; the differences from the
baseline as a forest plot; the plane of ceiling and compute; the linearised view; one training metric."""

import pandas as pd
import streamlit as st

from ablations.errors import AblationsError
from ablations.findings.paper_comparison import paper_comparison
from ablations.findings.results import Results
from ablations.home.started_sweep import StartedSweep
from ablations.report.documents.headline import task_of_sweep
from ablations.report.figures.axes import thinned_note
from ablations.report.figures.chart import Axis
from ablations.report.figures.colours import Style, styles
from ablations.report.figures.curves import CURVES_LEGEND, POINTS_LEGEND, Along, Counted, along_rows, curves_chart
from ablations.report.figures.forest import DIFFERENCES_LEGEND, forest_chart, left_out_note
from ablations.report.figures.planes import (
    LINEARISED_LEGEND,
    PLANE_LEGEND,
    is_placed,
    linearised_chart,
    linearised_note,
    plane_chart,
)
from ablations_dashboard.drawings.run import METRIC_LEGEND, Counter, counter_titles, metric_chart
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.reading.run_log import load_metrics
from ablations_dashboard.selection.url import pick, switch
from ablations_dashboard.selection.variants import Shown, only
from ablations_dashboard.widgets.figure import show_figure
from ablations_dashboard.widgets.links import show_run_links

CURVE_AXES = {
    "compute": "",
    "flops": "FLOPs",
    "tokens": "training tokens",
    "step": "optimiser steps",
    "wall_s": "seconds",
}
"""Counters for the horizontal axis, by the URL's word."""
MOST_FOREST_ROWS = 24
"""Limit on the rows of a readable forest plot; beyond it only the variants in colour have one."""
MOST_LINEARISED = 24
"""Limit on the variants of the linearised view."""
FIRST_METRICS = ("entropy", "reward_mean", "mismatch", "staleness_mean", "generator_idle", "trainer_idle")
"""Metrics listed first."""
SMOOTHED = ("1", "5", "10", "25", "50")


def show_curves(results: Results, shown: Shown) -> None:
    """Draw the chosen variants in colour and the others in grey, with the choices below the figure."""
    plan, place = results.plan, st.container()
    first, second, third = st.columns([2, 1, 1], vertical_alignment="bottom")
    against = pick(
        "against",
        "x axis",
        list(CURVE_AXES),
        default="compute",
        widget=first.selectbox,
        format_func=lambda name: CURVE_AXES[name] or plan.hours_name,
    )
    log = switch("log", "Logarithmic", widget=second.toggle)
    with_points = switch("points", "Evaluations", widget=third.toggle)
    counted = counted_along(results, shown, against)
    chart = curves_chart(
        results, shown=shown.focus, others=shown.others, log_compute=log, with_points=with_points, counted=counted
    )
    with place:
        show_figure(chart, name=f"{plan.sweep}-curves", view=f"{against} {log}")
    unread = [name for name in shown.focus if all(run.curve is None for run in results.variant(name).runs)]
    if unread:
        st.caption(in_markdown(f"No evaluation yet: {', '.join(unread)}."))
    if counted is not None and (left_out := [name for name in shown.focus if name not in counted.along]):
        st.caption(in_markdown(f"No {counted.axis.unit} are logged for {', '.join(left_out)}."))
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
    return Counted(axis=Axis(title=CURVE_AXES[against], unit=CURVE_AXES[against]), along=found)


def show_differences(results: Results, shown: Shown) -> None:
    """Show how much each variant differs from the baseline in level, ceiling and compute."""
    if results.comparison is None or len(results.comparison.variants) < 2:
        return
    plan = results.plan
    st.subheader(f"Differences from {in_markdown(plan.reference)}", anchor="differences")
    names = shown.names if len(shown.names) <= MOST_FOREST_ROWS else shown.focus[:MOST_FOREST_ROWS]
    chart = forest_chart(results, shown=names, focus=shown.focus)
    if chart.panels:
        show_figure(chart, name=f"{plan.sweep}-differences")
    more = len(shown.names) - len(names)
    elsewhere = f"The table has the {more} other variants." if more else ""
    left_out = left_out_note(results, shown=names)
    st.caption(in_markdown(" ".join(filter(None, (DIFFERENCES_LEGEND, left_out, elsewhere)))))


def show_plane(results: Results, shown: Shown) -> None:
    """Show which variants move the ceiling, which only change the speed of reaching it, and the uncertainty of both."""
    plan = results.plan
    lines = [one for one in results.comparison.variants if one.name != plan.reference] if results.comparison else []
    missing = [one.name for one in lines if one.name in shown.focus and not is_placed(one)]
    left_out = f" Not drawn, because A has no upper bound yet: {', '.join(missing)}." if missing else ""
    if any(is_placed(one) for one in lines):
        chart = plane_chart(only(results, shown.names), focus=shown.focus)
        show_figure(chart, name=f"{plan.sweep}-plane")
    st.caption(in_markdown(f"{PLANE_LEGEND}{left_out}"))


def show_linearised(results: Results, shown: Shown) -> None:
    """Show readings on axes on which eq. 1 is a straight line; the paper's grid takes a few seconds."""
    few = only(results, shown.focus[:MOST_LINEARISED])
    try:
        comparison = paper_comparison(few)
    except AblationsError as error:
        st.info(with_code(f"No linearised view: {error}."))
        return
    show_figure(linearised_chart(comparison, few.plan, shown.focus), name=f"{few.plan.sweep}-linearised")
    st.caption(in_markdown(f"{LINEARISED_LEGEND} {linearised_note(comparison)}"))


def show_metrics(sweep: StartedSweep, shown: Shown) -> None:
    """Show a metric against compute, steps or time."""
    plan, runs = sweep.plan, drawn_runs(sweep, shown)
    if not runs:
        st.info(no_steps_yet(sweep))
        return
    known = counter_titles(plan.compute_name)
    every = [rows for seeds, _ in runs.values() for rows in seeds]
    titles: dict[Counter, str] = {name: text for name, text in known.items() if all(name in rows for rows in every)}
    names = {name for rows in every for name in rows.columns} - set(known)
    ordered = [name for name in FIRST_METRICS if name in names]
    ordered += sorted(names - set(ordered))
    left, middle, right = st.columns(3)
    metric = pick("metric", "Metric", ordered, default=ordered[0], widget=left.selectbox)
    against: Counter = pick(
        "metric_axis",
        "x axis of the metric",
        list(titles),
        default="compute_gpu_hours",
        widget=middle.selectbox,
        format_func=titles.get,
    )
    smoothed = pick("smoothed", "Smoothing", SMOOTHED, default="10", widget=right.select_slider)
    chart = metric_chart(metric, runs, against=against, smoothed=int(smoothed), compute_name=plan.compute_name)
    show_figure(chart, name=f"{plan.sweep}-{metric.replace('/', '-')}", view=against)
    st.caption(METRIC_LEGEND)


def no_steps_yet(sweep: StartedSweep) -> str:
    """Why there are no training metrics to show."""
    if sweep.plan.imported:
        return "The imported files have no training metrics."
    command = f"platform status {sweep.name} --watch {sweep.home.option}"
    return f"No optimiser step yet. {in_code(command)} shows when the first one is done."


def drawn_runs(sweep: StartedSweep, shown: Shown) -> dict[str, tuple[list[pd.DataFrame], Style]]:
    """Optimiser steps of the runs and style of every variant in focus that has any, by name."""
    look, runs = styles(sweep.plan, shown.focus), dict[str, tuple[list[pd.DataFrame], Style]]()
    for variant in sweep.plan.variants:
        for run in variant.runs if variant.name in shown.focus else ():
            try:
                rows = load_metrics(sweep.run(run.id))
            except ValueError as error:
                st.warning(with_code(str(error)))
                show_run_links([run.id], {run.id: {"sweep": sweep.name, "run": run.id}})
                continue
            if len(rows):
                rows = rows.dropna(axis="columns", how="all")
                runs.setdefault(variant.name, ([], look[variant.name]))[0].append(rows)
    return runs
