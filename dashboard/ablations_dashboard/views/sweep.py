"""One sweep: its verdicts, curves, comparison, progress and training metrics."""

import time

import pandas as pd
import streamlit as st

from ablations.design.undecided import what_would_tell
from ablations.fit.words import in_words
from ablations.home.allocation import Allocation
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.report.colours import Style, styles
from ablations.report.curves import CURVES_LEGEND, curves_figure
from ablations.report.headings import comparison_headings, under
from ablations.report.verdicts import verdicts_figure
from ablations.search.record import read_search
from ablations.search.tables import note, objective_text, trial_lines
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow, share
from ablations.status.table import summary
from ablations.status.units import unit_lines
from ablations.text import counted
from ablations.verdict.results import Results
from ablations.verdict.words import glossary, line_of, method, sentence, warnings
from ablations_dashboard.charts import Axis, axis_titles, metric_figure
from ablations_dashboard.choose import choose_sweep, choose_variants
from ablations_dashboard.guard import errors_on_page
from ablations_dashboard.load import comparison_csv, load_metrics, load_results, may_change

REFRESH_S = 10
FIRST_METRICS = ("entropy", "reward_mean", "mismatch", "staleness_mean", "generator_idle", "trainer_idle")
"""Shown at the head of the list of metrics."""
SMOOTHED = (1, 5, 10, 25, 50)


@errors_on_page()
def show() -> None:
    """Choose a sweep and show it; it is read again every few seconds until the last run has ended."""
    sweep = choose_sweep()
    is_live = may_change(sweep, run_rows(sweep), now=time.time())
    variants = choose_variants(sweep.plan)
    st.fragment(show_sweep, run_every=REFRESH_S if is_live else None)(sweep, variants, is_live)


@errors_on_page()
def show_sweep(sweep: StartedSweep, variants: list[str], is_live: bool) -> None:
    """Everything about one sweep; the curves and metrics of the chosen variants."""
    sweep = sweep.reread()  # a search adds trials
    plan, rows = sweep.plan, run_rows(sweep)
    if is_live and not may_change(sweep, rows, now=time.time()):
        st.rerun()  # the whole page, which then is read no more
    results = load_results(sweep)
    st.title(plan.sweep)
    st.markdown(plan.doc)
    show_progress(plan, rows, sweep.read_allocation())
    for warning in warnings(results):
        st.warning(warning)
    if results.comparison is None:
        st.info(f"No comparison yet: {plan.reference} has no fit. {'; '.join(results.reasons)}.")
    show_trials(sweep)
    show_curves(results, variants)
    if results.comparison is not None:
        show_comparison(results)
    show_metrics(sweep, variants)


def show_progress(plan: Plan, rows: list[RunRow], allocation: Allocation | None) -> None:
    """How far the runs are."""
    spent = sum(share(row.state, plan) for row in rows) / len(rows)
    st.progress(spent, text=f"{summary(plan, rows, allocation)} of {counted(len(rows), 'run')}")
    with st.expander("Runs", expanded=any(row.state.state in (State.FAILED, State.STALE) for row in rows)):
        st.dataframe(progress_frame(plan, rows), hide_index=True, column_config=PROGRESS_COLUMNS)
    if lines := unit_lines(rows):
        with st.expander("Processes", expanded=any(line["state"] == "gone" for line in lines)):
            st.dataframe(pd.DataFrame(lines), hide_index=True)


PROGRESS_COLUMNS = {
    "compute": st.column_config.ProgressColumn("compute", format="percent", min_value=0.0, max_value=1.0),
    "pass rate": st.column_config.NumberColumn("pass rate", format="%.3f"),
}


def progress_frame(plan: Plan, rows: list[RunRow]) -> pd.DataFrame:
    """One line per run."""
    return pd.DataFrame(
        {
            "variant": row.variant,
            "seed": row.seed,
            "run": row.id,
            "state": row.state.state,
            "compute": share(row.state, plan),
            "pass rate": row.state.pass_rate,
            "step": row.state.step,
            "attempt": row.state.attempt,
            "message": row.state.said,
        }
        for row in rows
    )


def show_trials(sweep: StartedSweep) -> None:
    """The trials of a search, best first."""
    record = read_search(sweep)
    if record is None:
        return
    st.header("Trials")
    st.caption(f"{len(record.ranked)} of {record.num_trials} trials done by {record.sampler}; {objective_text(record)}")
    st.dataframe(pd.DataFrame(trial_lines(record)), hide_index=True)
    st.caption(f"{note(record, sweep.plan.reference)}.")


def show_curves(results: Results, shown: list[str]) -> None:
    """Measured points, fits, forecasts and asymptotes of the chosen variants."""
    plan = results.plan
    st.header("Curves and forecasts")
    left, right = st.columns([1, 3])
    log = left.toggle("Logarithmic compute", value=st.query_params.get("log") == "1")
    st.query_params["log"] = str(int(log))
    names = [variant.name for variant in plan.variants]
    banded = right.multiselect("Uncertainty of", names, default=[plan.reference], key=f"banded {plan.sweep}")
    figure = curves_figure(results, shown=shown, banded=banded, log_compute=log)
    st.plotly_chart(figure, theme=None, key="curves")
    st.caption(CURVES_LEGEND)


def show_comparison(results: Results) -> None:
    """The verdict on every variant: in words, as a figure, as a table."""
    st.header(f"Comparison with {results.plan.reference}")
    st.markdown("\n".join(f"- {sentence(results, variant)}" for variant in results.variants))
    st.caption(" ".join(filter(None, (method(results), what_would_tell(results)))))
    st.plotly_chart(verdicts_figure(results), theme=None, key="verdicts")
    lines = [line_of(results, variant) for variant in results.variants]
    frame = pd.DataFrame(under(comparison_headings(results.plan), lines))
    look = styles(results.plan)
    coloured = frame.style.map(lambda name: f"color: {look[name].colour}; font-weight: 600", subset=["variant"])
    st.dataframe(coloured, hide_index=True)
    st.download_button(
        "Download as CSV", comparison_csv(results), f"{results.plan.sweep}.csv", "text/csv", icon=":material/download:"
    )
    with st.expander("How far each fit can be believed"):
        for run in results.runs:
            st.markdown(
                f"**{run.name}**: {in_words(run.fit, f' {results.plan.compute_name}') if run.fit else run.reason}"
            )
    with st.expander("What the verdicts mean"):
        for name, meaning in glossary(results):
            st.markdown(f"**{name}**: {meaning}.")


def show_metrics(sweep: StartedSweep, shown: list[str]) -> None:
    """One training metric of the runs of the chosen variants."""
    st.header("Training metrics")
    plan, runs = sweep.plan, drawn_runs(sweep, shown)
    if not runs:
        command = f"platform status {sweep.name} --watch --home {sweep.home.path}"
        st.info(f"No optimiser step yet. `{command}` shows when the first one is done.")
        return
    titles = axis_titles(plan.compute_name)
    chosen = choose_metric({name for rows, _ in runs.values() for name in rows.columns} - set(titles))
    left, right = st.columns(2)
    axis: Axis = left.radio("Against", list(titles), format_func=titles.__getitem__, horizontal=True)
    smoothed = right.select_slider("Mean over steps", SMOOTHED, value=10)
    figure = metric_figure(chosen, runs, axis=axis, smoothed=smoothed, compute_name=plan.compute_name)
    st.plotly_chart(figure, theme=None, key="metric")


def drawn_runs(sweep: StartedSweep, shown: list[str]) -> dict[str, tuple[pd.DataFrame, Style]]:
    """Optimiser steps and style of every run that has any, by label."""
    look, runs = styles(sweep.plan), {}
    for variant in sweep.plan.variants:
        for run in variant.runs if variant.name in shown else ():
            try:
                rows = load_metrics(sweep.home, run.id)
            except ValueError as error:
                st.warning(str(error))
                continue
            if len(rows):
                label = variant.name if len(variant.runs) == 1 else f"{variant.name}, seed {run.seed}"
                runs[label] = rows, look[variant.name]
    return runs


def choose_metric(names: set[str]) -> str:
    """The metric named in the URL, or the first of those that most ask for."""
    ordered = [name for name in FIRST_METRICS if name in names]
    ordered += sorted(names - set(ordered))
    asked = st.query_params.get("metric")
    chosen = st.selectbox("Metric", ordered, index=ordered.index(asked) if asked in ordered else 0)
    st.query_params["metric"] = chosen
    return chosen
